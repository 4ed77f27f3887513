#!/bin/sh
# Writes docs/OPTIONS.md from src/process/options.inc, by way of the built tool.
set -e
cd "$(dirname "$0")/.."
build/release/bin/spillway options --markdown > docs/OPTIONS.md
