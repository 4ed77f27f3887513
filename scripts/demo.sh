#!/usr/bin/env bash
# The demonstration behind `./dev demo`: demo.sh BUILD_DIR. Sorts records with a program that was only recompiled, giving it a
# quarter of the memory its data needs; the program checks its own result.
set -euo pipefail
build=$1
records=4000000  # of 100 bytes
cap=96M
data="$((records / 10000)) MB"

step() { printf '\n== %s\n' "$*"; }
show() { printf '$ %s\n' "$*"; "$@"; }

step "What this machine offers"
show "$build/bin/spillway" doctor
step "examples/terasort as everybody compiles it: $data of records, all in memory"
show "$build/examples/native/terasort" --records $records --mode shuffle --progress off
step "The same source compiled with spillway-clang++, with $cap of memory for the same $data"
show "$build/bin/spillway" run --memory $cap --stats text -- "$build/examples/spillway/terasort" --records $records --mode shuffle --progress off
step "Done: the recompiled program sorted the same records in $cap, and its check passed"
