#!/usr/bin/env python3
"""Runs the `; RUN:` lines of one .ll file, each with a shell, and fails where one fails.

usage: run_filecheck.py FILE name=value...

In a line, %s is the file and %name the value given for it: %opt (with the pass loaded), %filecheck, %not (inverts).
"""
import pathlib
import re
import subprocess
import sys


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    values = {"s": str(source), "not": "!", **dict(pair.split("=", 1) for pair in sys.argv[2:])}
    lines = re.findall(r"^; RUN: (.*)$", source.read_text(), re.M)
    if not lines:
        sys.exit(f"{source}: no RUN line")
    for line in lines:
        command = re.sub(r"%(\w+)", lambda match: values[match.group(1)], line)
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
        if done.returncode:
            sys.exit(f"{command}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
