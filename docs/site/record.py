#!/usr/bin/env python3
"""Makes the picture of the README: runs sort.py in a control group, as it is and under Spillway, and draws what came.

record.py [--spillway PROGRAM] [--store DIR] [--options WORDS]. It needs root for the control group, the system's Python
with numpy, and 5 GiB in DIR. What was typed and what came is kept as text beside the picture, in demo.txt of
docs/guide/pictures. `--draw` only draws that anew.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import terminal  # noqa: E402
from harness import cgroup  # noqa: E402

TEXT, PICTURE = HERE.parent / "guide/pictures/demo.txt", HERE.parent / "guide/pictures/demo.svg"
CAP, GROUP_BYTES, LIMIT_S = "256M", (256 + 64) << 20, 600
TITLE = "A sort of 1 GiB is killed in a container of 320 MiB, and finishes there under Spillway with a cap of 256 MiB."


def run(command: list[str], folder: str) -> tuple[str, int, float, int]:
    """In a control group of GROUP_BYTES: what it printed, exit status, seconds, and its peak of anonymous bytes."""
    began = time.monotonic()
    with cgroup.memory_group(GROUP_BYTES) as group:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=group.enter
        )
        while process.poll() is None and time.monotonic() - began < LIMIT_S:
            group.sample()
            time.sleep(0.02)
        group.kill_all()
        printed = process.stdout.read()
    return printed, process.wait(), time.monotonic() - began, group.usage.peak_program_bytes


def record(words: argparse.Namespace) -> list[str]:
    with tempfile.TemporaryDirectory(dir=words.store, prefix="spillway-record-") as folder:
        (pathlib.Path(folder) / "sort.py").write_bytes((HERE / "sort.py").read_bytes())
        printed, status, _, _ = run(["python3", "sort.py"], folder)
        if status != -9:
            sys.exit(f"record: sort.py was to be killed in {GROUP_BYTES >> 20} MiB, but ended with {status}: {printed}")
        arguments = ["run", "--memory", CAP, "--store", words.store, *words.options.split(), "--", "python3", "sort.py"]
        lines = [
            "$ python3 sort.py  # numpy sorts 1 GiB, in a container of 320 MiB",
            "Killed",
            f"$ spillway {' '.join(arguments)}",
        ]
        printed, status, seconds, peak = run([words.spillway, *arguments], folder)
        if status != 0:
            sys.exit(f"record: the run under Spillway ended with {status}: {printed}")
        print(f"{seconds:.1f} s, {peak / 2**20:.0f} MiB at most", file=sys.stderr)
        return lines + printed.rstrip().split("\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spillway", default=str(ROOT / "build/release/bin/spillway"))
    parser.add_argument("--store", default="/var/tmp")
    parser.add_argument("--options", default="--stats text", help="more options of spillway run (%(default)s)")
    parser.add_argument("--draw", action="store_true", help="only draw demo.txt anew")
    words = parser.parse_args()
    if not words.draw:
        if cgroup.why_not():
            sys.exit(f"record: {cgroup.why_not()}")
        os.environ["PATH"] = f"/usr/bin:{os.environ['PATH']}"
        TEXT.write_text("\n".join(record(words)) + "\n")
    PICTURE.write_text(terminal.svg(TEXT.read_text().splitlines(), TITLE))


if __name__ == "__main__":
    main()
