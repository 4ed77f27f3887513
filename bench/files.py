"""Buffered files (--buffer) beside direct I/O and the kernel's own buffered I/O, by fio, on the filesystem of --store. `./dev bench files`, or see --help.

  writes     random writes of 4 KiB to a file larger than the memory, by 1 to 64 jobs (ScaleCache's experiment)
  reads      random reads of it, likewise, once the caches are full
  hits       random reads and writes of a file that is in memory
  sequences  the file written and read in order
  mixes      a file server's and a mail server's requests to many files (bench/fio/*.fio)
  flush      random writes where the threads that write flush, beside one flushing thread (ScaleCache's comparison)
  striped    random writes to files on four devices beside one (bench/striped.py); striped-flush: each way of flushing there
  index      the page index by itself (page_index_bench): rates of two threads beside one's, and the size of a node

Spillway twice: by the translated engine, which for an unmodified program means that its files are all there is in managed space, and by the mapped
one, which manages its memory as well. Every job is a thread of one fio process with the psync engine. All run in a control group with the same limit, in which page cache and all
count; Spillway's --memory is that limit without what fio and the library need. A figure is the median of some turns, the kinds in another order in each; a ratio is the
median of the turns' ratios, since a disk that others use, too, is twice as fast in one minute as in the next.
"""
import collections.abc
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import striped
from harness import cgroup, command, fio
from harness.programs import Programs
from harness.machine import drop_page_cache
from harness.report import Report, Row

MIB = 1 << 20
MEMORY, FILE, SMALL_FILE = 256 * MIB, 1024 * MIB, 128 * MIB
JOBS = (1, 8, 64)
SECONDS, TURNS, WRITE_TURNS = 4, 3, 7
FILLING_S = 6  # one job's random reads take so long to fill the cap; what comes before is the disk's rate
LIMIT_S = 120
DIRECT_MIN, KERNEL_MIN = 0.95, 1.0
# What two threads do with one index, by the names of page_index_bench; `control_`: with one each, which is what the machine gives.
INDEX_RUNS = {"find_near": "lookups", "control_find_near": "lookups, an index each", "insert_own_range": "inserts, ranges of their own",
              "insert_own_leaves": "inserts, leaves in turn", "control_insert": "inserts, an index each"}
INDEX_TURNS, SCALING_MIN, NODE_BYTES_MAX = 9, 1.9, 576
# With the translated engine an unmodified program has nothing but its files in managed space.
OURS = {"Spillway": ("--engine", "translated"), "Spillway (mapped)": ("--engine", "mapped")}
FLUSHES = {f"{name} flush": ("--engine", "translated", "--dirty", "20", "--flush", name) for name in ("direct", "background")}
FIO_JOBS = pathlib.Path(__file__).parent / "fio"
MIX_FILES = {"fileserver": 10 * 256, "varmail": 16 * 400}


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None


def _settle(bench: Bench) -> None:
    """What the last turn has left to be written, or in the kernel's cache, is not to be the next one's burden."""
    os.sync()
    for file in bench.programs.store.glob("*.dat"):
        drop_page_cache(file)


def _limit(jobs: int) -> int:
    """Of a run's control group: the cap, and what fio and the library need beside it. The kernel caches in what fio leaves of both."""
    return MEMORY + 32 * MIB + jobs * MIB // 4


def _run(bench: Bench, kind: str, words: list[str], environment: dict[str, str] | None = None, jobs: int = JOBS[-1]) -> float:
    """Transfers a second of all jobs of an fio command. `kind`: one of OURS or FLUSHES, direct I/O, the kernel."""
    if kind in OURS | FLUSHES:
        words = [str(bench.programs.build / "bin" / "spillway"), "run", *(OURS | FLUSHES)[kind], "--memory", str(MEMORY), "--store", str(bench.programs.store),
                 "--buffer", "*.dat", "--", *words]
    _settle(bench)
    with cgroup.memory_group(_limit(jobs)) if bench.programs.grouped else contextlib.nullcontext() as group:
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S, preexec_fn=group.enter if group else None,
                             env=os.environ | (environment or {}))
    if run.returncode != 0:
        raise RuntimeError(f"{kind}: {run.stderr[-500:]}")
    jobs = json.loads(run.stdout[run.stdout.index("{"):])["jobs"]
    return sum(job["read"]["iops"] + job["write"]["iops"] for job in jobs)


def _fio(bench: Bench, kind: str, *options: str, jobs: int = 1, place: tuple[str, ...] = ()) -> float:
    return _run(bench, kind, [
        "fio", "--name=job", *(place or (f"--filename={bench.programs.store / 'files.dat'}",)), "--ioengine=psync", "--thread", "--time_based", f"--runtime={SECONDS}",
        "--norandommap", "--randrepeat=0", "--group_reporting", "--output-format=json", f"--invalidate={int(kind in ('direct I/O', 'the kernel'))}",
        f"--direct={int(kind == 'direct I/O')}", f"--numjobs={jobs}", *options], jobs=jobs)


def _lay_out(bench: Bench, file_bytes: int) -> None:
    """The file, written whole, since a write to a hole costs more than one to what is there."""
    file = bench.programs.store / "files.dat"
    file.unlink(missing_ok=True)
    subprocess.run(["fio", "--name=layout", f"--filename={file}", "--rw=write", "--bs=1M", f"--size={file_bytes}", "--direct=1", "--end_fsync=1"],
                   capture_output=True, check=True)


def _medians(bench: Bench, section: str, what: str, kinds: tuple[str, ...], run: collections.abc.Callable[[str], float], turns: int = TURNS) -> tuple[dict, dict] | None:
    """By kind: the median of some turns, and all of them."""
    found = {kind: [] for kind in kinds}
    try:
        for turn in range(turns):
            # What comes behind one that leaves the machine idle finds it faster.
            for kind in random.Random(turn).sample(kinds, len(kinds)):
                found[kind].append(run(kind))
    except (RuntimeError, subprocess.TimeoutExpired) as why:
        bench.failure(section, what, str(why))
        return None
    return {kind: statistics.median(each) for kind, each in found.items()}, found


def _ratio(ours: list[float], peer: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, peer, strict=True))


def _compare(bench: Bench, section: str, what: str, peers: tuple, run: collections.abc.Callable[[str], float], turns: int = TURNS) -> None:
    """A row for each of ours beside each peer: (kind, the least ratio)."""
    if (found := _medians(bench, section, what, (*OURS, *(kind for kind, _ in peers)), run, turns)) is None:
        return
    rates, all_of_them = found
    for ours in OURS:
        for kind, least in peers:
            bench.add(Row(section, f"{what}: {ours} beside {kind}", rates[ours] / 1000, rates[kind] / 1000, "k/s",
                          ratio=_ratio(all_of_them[ours], all_of_them[kind]), at_most=False, target=least, details=dict(all_of_them)))


def _jobs(count: int) -> str:
    return f"{count} job{'s' if count > 1 else ''}"


def _by_jobs(bench: Bench, section: str, mode: str, kinds: tuple, turns: int = TURNS, filling_s: int = 0) -> None:
    _lay_out(bench, FILE)
    for jobs in JOBS:
        _compare(bench, section, f"{mode}, {_jobs(jobs)}", kinds,
                 lambda kind, jobs=jobs: _fio(bench, kind, f"--size={FILE}", f"--rw={mode}", "--bs=4k", f"--ramp_time={filling_s}", jobs=jobs), turns)


def writes(bench: Bench) -> None:
    _by_jobs(bench, "writes", "randwrite", (("direct I/O", DIRECT_MIN), ("the kernel", KERNEL_MIN)), WRITE_TURNS)


def reads(bench: Bench) -> None:
    _by_jobs(bench, "reads", "randread", (("direct I/O", DIRECT_MIN), ("the kernel", KERNEL_MIN)), filling_s=FILLING_S)


def hits(bench: Bench) -> None:
    _lay_out(bench, SMALL_FILE)
    for mode in ("randread", "randwrite"):
        for jobs in (1, 2):
            _compare(bench, "hits", f"{mode}, {_jobs(jobs)}", (("the kernel", KERNEL_MIN),),
                     lambda kind, mode=mode, jobs=jobs: _fio(bench, kind, f"--size={SMALL_FILE}", f"--rw={mode}", "--bs=4k", "--ramp_time=1", jobs=jobs))


def sequences(bench: Bench) -> None:
    _lay_out(bench, FILE)
    for mode in ("write", "read"):
        for block in ("4k", "128k"):
            _compare(bench, "sequences", f"{mode}, {block}", (("the kernel", KERNEL_MIN),),
                     lambda kind, mode=mode, block=block: _fio(bench, kind, f"--size={FILE}", f"--rw={mode}", f"--bs={block}"))


def mixes(bench: Bench) -> None:
    """fio opens the files again and again, and where it is told to, drops what the kernel has cached of each as it does: so it is told not to, by any kind."""
    for mix in MIX_FILES:
        with tempfile.TemporaryDirectory(dir=bench.programs.store, prefix=f"{mix}.") as directory:
            def run(kind: str, *options: str, mix: str = mix, directory: str = directory) -> float:
                environment = {"DIRECTORY": directory, "DIRECT": "0", "INVALIDATE": "0", "SECONDS_EACH": str(SECONDS)}
                return _run(bench, kind, ["fio", "--output-format=json", *options, str(FIO_JOBS / f"{mix}.fio")], environment)
            subprocess.run(["fio", "--create_only=1", str(FIO_JOBS / f"{mix}.fio")], capture_output=True, check=True,
                           env=os.environ | {"DIRECTORY": directory, "DIRECT": "0", "INVALIDATE": "0", "SECONDS_EACH": "1"})
            _compare(bench, "mixes", f"{mix}, {MIX_FILES[mix]:,} files", (("the kernel", KERNEL_MIN),), run)


def flush(bench: Bench) -> None:
    """Files as many as jobs, and one for all."""
    each_its_own = (f"--directory={bench.programs.store}", "--filename_format=flush.$jobnum.dat")
    for what, place, jobs in (("one file", (), 8), ("a file each", each_its_own, 8), ("a file each", each_its_own, 32)):
        if not place:
            _lay_out(bench, FILE)
        size = FILE // jobs if place else FILE
        found = _medians(bench, "flush", what, tuple(FLUSHES), lambda kind, size=size, place=place, jobs=jobs: _fio(
            bench, kind, f"--size={size}", "--rw=randwrite", "--bs=4k", jobs=jobs, place=place))
        if found is not None:
            direct, background = (found[0][kind] for kind in FLUSHES)
            bench.add(Row("flush", f"{what}, {_jobs(jobs)}: direct flush beside background flush", direct / 1000, background / 1000, "k/s",
                          ratio=_ratio(*(found[1][kind] for kind in FLUSHES)), at_most=False, details=found[1]))
        for file in bench.programs.store.glob("flush.*.dat"):
            file.unlink()


def index(bench: Bench) -> None:
    """By the round of each run that was disturbed least."""
    program = bench.programs.build / "bin" / "page_index_bench"
    found = {name: ([], []) for name in INDEX_RUNS}
    node_bytes = 0.0
    for _ in range(INDEX_TURNS):
        run = subprocess.run([program, f"--benchmark_filter=^({'|'.join(INDEX_RUNS)})/", "--benchmark_min_time=0.4", "--benchmark_format=json"],
                             capture_output=True, text=True, check=True, timeout=LIMIT_S)
        by_name = {each["name"]: each for each in json.loads(run.stdout)["benchmarks"]}
        for name, rates in found.items():
            for threads in (1, 2):
                rates[threads - 1].append(by_name[f"{name}/threads:{threads}/manual_time"]["best_items_per_second"])
        node_bytes = by_name["find_near/threads:1/manual_time"]["node_bytes"]
    for name, (one, two) in found.items():
        bench.add(Row("index", f"{INDEX_RUNS[name]}: two threads beside one", statistics.median(two) / 1e6, statistics.median(one) / 1e6, "M/s",
                      ratio=_ratio(two, one), at_most=False, target=0 if name.startswith("control_") else SCALING_MIN, details={"one": one, "two": two}))
    bench.add(Row("index", "bytes of a node", ratio=node_bytes, target=NODE_BYTES_MAX))


SECTIONS = {"writes": writes, "reads": reads, "hits": hits, "sequences": sequences, "mixes": mixes, "flush": flush, "striped": striped.striped, "striped-flush": striped.striped_flush, "index": index}


def main(arguments: list[str]) -> int:
    options = command.parser("files", __doc__, SECTIONS, None).parse_args(arguments)
    if reason := fio.why_not():
        sys.exit(f"files: {reason}")
    about = {"memory": f"{MEMORY // MIB} MiB", "file": f"{FILE // MIB} MiB, and {SMALL_FILE // MIB} MiB where it is in memory",
             "each figure": f"median of {TURNS} turns of {SECONDS} s, of {WRITE_TURNS} in writes"}
    return command.run(options, about, 2 * FILE, lambda programs: Bench("files", programs=programs), SECTIONS)
