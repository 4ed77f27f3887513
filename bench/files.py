"""Buffered files (--buffer) beside direct I/O and the kernel's own buffered I/O, by fio, on the filesystem of --store. `./dev bench files`, or see --help.

  writes     random writes of 4 KiB to a file larger than the memory, by 1 to 64 jobs (ScaleCache's experiment)
  reads      random reads of it, likewise
  hits       random reads and writes of a file that is in memory
  sequences  the file written and read in order

Spillway twice: by the translated engine, which for an unmodified program means that its files are all there is in managed space, and by the mapped
one, which manages its memory as well. Every job is a thread of one fio process with the psync engine, and has the memory that the kernel's buffered I/O has: by --memory, or by a control
group's limit, in which page cache and all count. A figure is the median of some turns, taken one kind after the other.
"""
import contextlib
import dataclasses
import json
import statistics
import subprocess
import sys

from harness import cgroup, command, fio
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
MEMORY, FILE, SMALL_FILE = 256 * MIB, 1024 * MIB, 128 * MIB
JOBS = (1, 8, 64)
SECONDS, TURNS = 4, 3
LIMIT_S = 120
DIRECT_MIN, KERNEL_MIN = 0.95, 1.0
# By engine: with the translated one an unmodified program has nothing but its files in managed space.
OURS = {"Spillway": "translated", "Spillway (mapped)": "mapped"}
# fio itself, and what the library needs beside the cap.
GROUP_SPARE = 96 * MIB


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None


def _fio(bench: Bench, kind: str, *options: str) -> float:
    """Transfers a second of all jobs. `kind`: one of OURS, direct I/O, the kernel."""
    words = ["fio", "--name=job", f"--filename={bench.programs.store / 'files.dat'}", "--ioengine=psync", "--thread", "--time_based", f"--runtime={SECONDS}",
             "--norandommap", "--randrepeat=0", "--group_reporting", "--output-format=json", f"--invalidate={int(kind not in OURS)}", f"--direct={int(kind == 'direct I/O')}",
             *options]
    if kind in OURS:
        words = [str(bench.programs.build / "bin" / "spillway"), "run", "--engine", OURS[kind], "--memory", str(MEMORY), "--store", str(bench.programs.store), "--buffer", "*.dat",
                 "--", *words]
    is_limited = kind == "the kernel" and bench.programs.grouped
    with cgroup.memory_group(MEMORY + GROUP_SPARE) if is_limited else contextlib.nullcontext() as group:
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S, preexec_fn=group.enter if group else None)
    if run.returncode != 0:
        raise RuntimeError(f"{kind}: {run.stderr[-500:]}")
    job = json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]
    return job["read"]["iops"] + job["write"]["iops"]


def _lay_out(bench: Bench, file_bytes: int) -> None:
    """The file, written whole, since a write to a hole costs more than one to what is there."""
    file = bench.programs.store / "files.dat"
    file.unlink(missing_ok=True)
    subprocess.run(["fio", "--name=layout", f"--filename={file}", "--rw=write", "--bs=1M", f"--size={file_bytes}", "--direct=1", "--end_fsync=1"],
                   capture_output=True, check=True)


def _compare(bench: Bench, section: str, what: str, file_bytes: int, kinds: tuple, *options: str) -> None:
    """Medians of the kinds, and a row for each of ours beside each: (kind, the least ratio)."""
    found = {kind: [] for kind in (*OURS, *(kind for kind, _ in kinds))}
    try:
        for _ in range(TURNS):
            for kind, rates in found.items():
                rates.append(_fio(bench, kind, f"--size={file_bytes}", *options))
    except (RuntimeError, subprocess.TimeoutExpired) as why:
        return bench.failure(section, what, str(why))
    rates = {kind: statistics.median(each) for kind, each in found.items()}
    for ours in OURS:
        for kind, least in kinds:
            bench.add(Row(section, f"{what}: {ours} beside {kind}", rates[ours] / 1000, rates[kind] / 1000, "k/s", ratio=rates[ours] / rates[kind],
                          at_most=False, target=least, details=dict(found)))


def _by_jobs(bench: Bench, section: str, mode: str, kinds: tuple) -> None:
    _lay_out(bench, FILE)
    for jobs in JOBS:
        _compare(bench, section, f"{mode}, {jobs} job{'s' if jobs > 1 else ''}", FILE, kinds, f"--rw={mode}", "--bs=4k", f"--numjobs={jobs}")


def writes(bench: Bench) -> None:
    _by_jobs(bench, "writes", "randwrite", (("direct I/O", DIRECT_MIN), ("the kernel", KERNEL_MIN)))


def reads(bench: Bench) -> None:
    _by_jobs(bench, "reads", "randread", (("direct I/O", DIRECT_MIN), ("the kernel", KERNEL_MIN)))


def hits(bench: Bench) -> None:
    _lay_out(bench, SMALL_FILE)
    for mode in ("randread", "randwrite"):
        for jobs in (1, 2):
            _compare(bench, "hits", f"{mode}, {jobs} job{'s' if jobs > 1 else ''}", SMALL_FILE, (("the kernel", KERNEL_MIN),), f"--rw={mode}", "--bs=4k",
                     f"--numjobs={jobs}", "--ramp_time=1")


def sequences(bench: Bench) -> None:
    _lay_out(bench, FILE)
    for mode in ("write", "read"):
        for block in ("4k", "128k"):
            _compare(bench, "sequences", f"{mode}, {block}", FILE, (("the kernel", KERNEL_MIN),), f"--rw={mode}", f"--bs={block}")


SECTIONS = {"writes": writes, "reads": reads, "hits": hits, "sequences": sequences}


def main(arguments: list[str]) -> int:
    options = command.parser("files", __doc__, SECTIONS, None).parse_args(arguments)
    if reason := fio.why_not():
        sys.exit(f"files: {reason}")
    about = {"memory": f"{MEMORY // MIB} MiB", "file": f"{FILE // MIB} MiB, and {SMALL_FILE // MIB} MiB where it is in memory",
             "each figure": f"median of {TURNS} turns of {SECONDS} s"}
    return command.run(options, about, 2 * FILE, lambda programs: Bench("files", programs=programs), SECTIONS)
