#!/usr/bin/env python3
"""Runs the fuzz targets: run.py [--seconds N] [--seed N] [--target NAME ...] [--no-build].

Each target begins with its seeds in tests/fuzz/corpus/NAME, and with what earlier runs have found in the build folder
(corpus/NAME there), and goes on for --seconds. A line a target: runs, runs a second, edges of the code that were
reached, findings. With a finding the line below names the file with its input, and the exit code is 1. The last line
sums up.
"""
import argparse
import base64
import multiprocessing.pool
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SLOWEST_INPUT_S = 10
MEMORY_MIB = 2048
LARGEST_INPUT_BYTES = 4096
SHOWN_INPUT_BYTES = 1024  # a finding is printed where it is no longer: its file may be gone with the machine
FINDING = re.compile(r"^(?:==\d+==\s*ERROR: (.*)|SUMMARY: (.*)|.*runtime error: (.*)|spillway: (bug: .*))$", re.M)


def names_of_targets() -> list[str]:
    return sorted(re.findall(r"^spw_fuzz\((\w+)", (HERE / "CMakeLists.txt").read_text(), re.M))


def build(folder: pathlib.Path, names: list[str], jobs: int) -> None:
    if not (folder / "build.ninja").is_file():
        subprocess.run(["cmake", "--preset", "fuzz", "-B", folder], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    targets = [f"fuzz_{name}" for name in names]
    built = subprocess.run(["ninja", "-C", folder, f"-j{jobs}", *targets], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"run.py: the targets cannot be built:\n{built.stdout[-4000:]}{built.stderr}")


def number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


class Run:
    """One target's, for so many seconds."""

    def __init__(self, folder: pathlib.Path, name: str, seconds: int, seed: int) -> None:
        self.name = name
        program = folder / "bin" / "fuzz" / name
        if not program.is_file():
            sys.exit(f"run.py: there is no {program}; leave out --no-build")
        grown, findings = folder / "corpus" / name, folder / "findings" / name
        for each in (grown, findings):
            each.mkdir(parents=True, exist_ok=True)
        before = set(findings.iterdir())
        # What is written by the targets goes into memory, and is gone with the run.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(prefix="spillway-fuzz-", dir=memory) as scratch:
            began = time.monotonic()
            ran = subprocess.run([program, grown, HERE / "corpus" / name, f"-max_total_time={seconds}", f"-seed={seed}",
                                  f"-timeout={SLOWEST_INPUT_S}", f"-rss_limit_mb={MEMORY_MIB}", f"-max_len={LARGEST_INPUT_BYTES}",
                                  f"-artifact_prefix={findings}/", "-print_final_stats=1", *self.dictionary()],
                                 capture_output=True, cwd=scratch, env=os.environ | {"TMPDIR": scratch})
            self.seconds = time.monotonic() - began
        text = ran.stderr.decode(errors="replace")
        self.runs = number(r"stat::number_of_executed_units:\s*(\d+)", text) or number(r"(?m)^#(\d+)\s", text)
        self.edges = number(r" cov: (\d+)", text)
        self.inputs = sorted(set(findings.iterdir()) - before)
        self.failed = ran.returncode != 0
        self.says = text

    def dictionary(self) -> list[str]:
        words = HERE / "corpus" / f"{self.name}.dict"
        return [f"-dict={words}"] if words.is_file() else []

    def findings(self) -> int:
        return len(self.inputs) or int(self.failed)

    def line(self) -> str:
        rate = self.runs / self.seconds if self.seconds else 0
        return (f"{self.name:18} {self.runs:>10} runs {rate:>8.0f}/s {self.edges:>6} edges "
                f"{self.findings()} findings")

    def why(self) -> str:
        found = FINDING.search(self.says)
        what = next(filter(None, found.groups())) if found else self.says.strip()[-400:]
        files = ", ".join(map(str, self.inputs)) or "it left no input"
        shown = "".join(f"\n  {base64.b64encode(each.read_bytes()).decode()}" for each in self.inputs
                        if each.stat().st_size <= SHOWN_INPUT_BYTES)
        return f"  {files}: {what}{shown and ' (in base64:)'}{shown}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="for each target (10)")
    parser.add_argument("--seed", type=int, default=0, help="of what is made up; 0: another one each time (0)")
    parser.add_argument("--target", action="append", choices=names_of_targets(), help="only this one; may be repeated")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz", help="build folder (build/fuzz)")
    parser.add_argument("--no-build", action="store_true", help="run what is built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers, and targets, at a time (one a processor)")
    arguments = parser.parse_args()
    if arguments.seconds < 1:
        parser.error("--seconds: at least 1")
    if not arguments.no_build and not shutil.which("clang++-19"):
        sys.exit("run.py: the targets need clang++-19 (Debian: clang-19); ./dev setup installs it")
    folder, names = arguments.build.resolve(), arguments.target or names_of_targets()
    if not arguments.no_build:
        build(folder, names, arguments.jobs)
    runs = []
    with multiprocessing.pool.ThreadPool(arguments.jobs) as pool:
        for run in pool.imap(lambda name: Run(folder, name, arguments.seconds, arguments.seed), names):
            print(run.line(), flush=True)
            runs.append(run)
            if run.findings():
                print(run.why(), flush=True)
    hours = sum(run.seconds for run in runs) / 3600
    findings = sum(run.findings() for run in runs)
    print(f"{len(runs)} targets, {sum(run.runs for run in runs)} runs, {hours:.2f} processor-hours, {findings} findings")
    return int(findings > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
