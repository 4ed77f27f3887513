"""The first comparison of Spillway with what people have without it. `./dev bench first-light`, or see --help.

Four sections, each a list of rows with what was measured, the ratio, and the target where there is one:

  in memory     programs whose data fits, recompiled against native -O3: what the instrumentation costs
  terasort      four times as much data as memory, against the native program on the kernel's swap under the same limit
  random reads  8-byte reads of a mapped file, a tenth of it in memory, against fio on the same file and against mmap
  memory        the most memory a Spillway run took, against its cap

Rules. Both sides of a row run by turns in the same run; a figure is the median of its repetitions. Both run in control
groups with the same limit: the cap and ALLOWANCE_BYTES for code, stacks and small allocations. The native side may use
whatever kernel setting suits it best (page-cluster is tried at small scale first). A native run that takes too long is
stopped, and counts as "more than" its time limit. Programs check their own results; a wrong one is a failure.
"""
import dataclasses
import pathlib
import statistics

from harness import command, fio, kernels, peers, process, reads, swap
from harness.programs import ALLOWANCE_BYTES, Programs
from harness.report import Report, Row

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
RECORD_BYTES = 100
SPILL_TARGETS = {"one-call": 1.0, "shuffle": 2.0}  # times faster than on swap, at least
RUN_LIMIT_S = 900  # of any run but a peer's on swap: something hangs


@dataclasses.dataclass(frozen=True)
class Sizes:
    scale: int  # data beyond memory is 1 / scale of the full run's
    in_memory_scale: int  # the same of data that fits; kernels of less than some milliseconds say nothing
    file_scale: int  # the same of the mapped file; sixteen threads need a cap with room for their pins
    repetitions: int
    spill_repetitions: int
    fio_s: int

    @property
    def spill_records(self) -> int:
        return 40_000_000 // self.scale

    @property
    def spill_cap_bytes(self) -> int:
        return GIB // self.scale

    @property
    def file_bytes(self) -> int:
        return 4 * GIB // self.file_scale


FULL = Sizes(scale=1, in_memory_scale=1, file_scale=1, repetitions=3, spill_repetitions=2, fio_s=8)
QUICK = Sizes(scale=16, in_memory_scale=4, file_scale=4, repetitions=1, spill_repetitions=1, fio_s=2)
PROBE_SCALE = 16  # of the full run, for choosing the kernel's settings


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    sizes: Sizes = None
    peer_limit_s: float = 0
    block: str = ""
    peaks: list = dataclasses.field(default_factory=list)  # (name, cap, peak)


# --- in memory -------------------------------------------------------------------------------------------------------

def in_memory_cases(scale: int) -> list[kernels.Case]:
    def micro(name, kernel, data_bytes, operations=0, rounds=3, threads=1, target=0):
        data_bytes //= scale
        arguments = (kernel, "--bytes", data_bytes, "--rounds", rounds, "--threads", threads)
        if operations:
            arguments += ("--ops", operations // scale)
        return kernels.Case(name, "micro", arguments, data_bytes, target)

    def terasort(mode, target):
        records = 10_000_000 // scale
        arguments = ("--records", records, "--mode", mode, "--progress", "off")
        return kernels.Case(f"TeraSort, {mode}", "terasort", arguments, 2 * RECORD_BYTES * records, target, ("sort",))

    return [
        micro("sequential sum", "sum", 2 * GIB, rounds=5, target=1.5),
        micro("sequential sum, 2 threads", "sum", 2 * GIB, rounds=5, threads=2, target=1.5),
        micro("random 8-byte reads of 8 MiB, SATC hits", "random-read", 8 * MIB, 80_000_000, target=1.6),
        micro("random 8-byte reads of 256 MiB, SATC hits", "random-read", 256 * MIB, 40_000_000, target=1.6),
        micro("random 8-byte reads of 4 GiB", "random-read", 4 * GIB, 10_000_000),
        micro("random updates", "random-update", 256 * MIB, 20_000_000),
        micro("pointer chase", "chase", 256 * MIB, 5_000_000),
        micro("std::sort of 8-byte words", "sort-words", 128 * MIB, rounds=1),
        micro("std::sort of 100-byte records", "sort-records", 256 * MIB, rounds=1),
        micro("hash-join probe", "join-probe", GIB),
        micro("unordered_map find", "map-find", 256 * MIB, 4_000_000),
        terasort("one-call", 1.3),
        terasort("shuffle", 1.3),
    ]


def in_memory(bench: Bench) -> None:
    variants = {
        "native": lambda case: bench.programs.native(case.program, *case.arguments, time_limit_s=RUN_LIMIT_S),
        "spillway": lambda case: bench.programs.spillway(2 * case.data_bytes + 256 * MIB, case.program, *case.arguments,
                                                         time_limit_s=RUN_LIMIT_S)[0],
    }
    for case in in_memory_cases(bench.sizes.in_memory_scale):
        try:
            times = kernels.compare(case, variants, bench.sizes.repetitions)
        except kernels.Failed as failed:
            bench.failure("in memory", case.name, str(failed))
            continue
        phase = case.phases[0] if case.phases else ""
        ours, native = times["spillway", phase], times["native", phase]
        processor = ours.processor / native.processor
        bench.add(Row("in memory", case.name, ours.wall, native.wall, ratio=ours.wall / native.wall, target=case.target,
                      note=f"processor {processor:.2f}",
                      details={"native": native.wall_s, "spillway": ours.wall_s, "processor_ratio": processor}))


# --- four times as much data as memory -------------------------------------------------------------------------------

def terasort_arguments(records: int, mode: str) -> tuple:
    return ("--records", records, "--mode", mode, "--progress", "off")


def terasort_job(sizes: Sizes, mode: str, limit_bytes: int | None) -> peers.Job:
    return peers.Job("terasort", terasort_arguments(sizes.spill_records, mode),
                     2 * RECORD_BYTES * sizes.spill_records + 256 * MIB, limit_bytes)


def run_on_swap(bench: Bench, mode: str, time_limit_s: float) -> tuple[process.Result, int]:
    probe = dataclasses.replace(bench.sizes, scale=PROBE_SCALE)
    return peers.on_swap(bench.programs, terasort_job(bench.sizes, mode, bench.programs.limit(bench.sizes.spill_cap_bytes)),
                         terasort_job(probe, mode, probe.spill_cap_bytes), time_limit_s)


def details_of(result: process.Result, counters: dict | None = None) -> dict:
    return {"seconds": result.seconds, "phases": result.report.get("seconds"), "processor_s": result.processor_s,
            "peak_program_bytes": result.usage.peak_program_bytes, "peak_total_bytes": result.usage.peak_total_bytes,
            "disk_read_bytes": result.disk_read_bytes, "disk_write_bytes": result.disk_write_bytes,
            "timed_out": result.timed_out, "counters": counters}


def terasort_beyond_memory(bench: Bench, mode: str) -> None:
    cap_bytes = bench.sizes.spill_cap_bytes
    data_gb = bench.sizes.spill_records * RECORD_BYTES / 1e9
    name = f"TeraSort, {mode}, {data_gb:.2g} GB, cap {cap_bytes // MIB} MiB"
    runs = []
    peer = cluster = None
    for _ in range(bench.sizes.spill_repetitions):
        result, counters = bench.programs.spillway(
            cap_bytes, "terasort", *terasort_arguments(bench.sizes.spill_records, mode), block=bench.block,
            limit_bytes=bench.programs.limit(cap_bytes), time_limit_s=RUN_LIMIT_S)
        if not result.ok:
            bench.failure("terasort", name, result.why_failed())
            return
        bench.peaks.append((name, cap_bytes, result.usage.peak_program_bytes))
        runs.append((result, counters))
        reason = swap.why_not() or (None if bench.programs.grouped else "memory cannot be limited")
        if peer is None and reason is None:  # once, in between: it takes far longer than anything else
            peer, cluster = run_on_swap(bench, mode, min(bench.peer_limit_s, 20 * result.seconds))
    spillway_s = statistics.median(result.seconds for result, _ in runs)
    row = Row("terasort", name, spillway_s, at_most=False, details={"spillway": [details_of(*run) for run in runs]})
    if peer is None:
        bench.skip(f"{name}: swap", reason)
    elif not peer.ok and not peer.timed_out:
        row.note = f"on swap: {peer.why_failed()}"
    else:
        row.peer, row.peer_is_lower_bound = peer.seconds, peer.timed_out
        row.ratio = peer.seconds / spillway_s
        row.target = SPILL_TARGETS[mode]
        row.note = f"page-cluster {cluster}"
        row.details["swap"] = details_of(peer)
    bench.add(row)


# --- random reads of a file ------------------------------------------------------------------------------------------

def random_reads(bench: Bench) -> None:
    file = bench.programs.store / "words"
    file_bytes = bench.sizes.file_bytes
    cap_bytes = file_bytes // 10 // (64 * KIB) * (64 * KIB)
    made = bench.programs.native("micro", "file-make", "--file", file, "--bytes", file_bytes)
    if not made.ok:
        bench.failure("random reads", "making the file", made.why_failed())
        return
    for threads, operations in ((1, 150_000), (2, 250_000), (16, 600_000)):
        random_reads_by(bench, file, cap_bytes, threads, operations // bench.sizes.file_scale)
    file.unlink()


def random_reads_by(bench: Bench, file: pathlib.Path, cap_bytes: int, threads: int, operations: int) -> None:
    name = f"random 8-byte reads of a file, {threads} thread{'s' if threads > 1 else ''}"
    job = reads.Reads(file, bench.sizes.file_bytes, cap_bytes, bench.programs.limit(cap_bytes), threads, operations,
                      bench.sizes.fio_s, RUN_LIMIT_S)
    try:
        measured = job.measure(bench.programs, {"spillway": "spillway"}, bench.sizes.repetitions)
    except reads.Failed as failed:
        bench.failure("random reads", name, str(failed))
        return
    for result in measured.results["spillway"]:
        bench.peaks.append((name, cap_bytes, result.usage.peak_program_bytes))
    ours, peer, mmap = (measured.rate(side) for side in ("spillway", "fio", "mmap"))
    engine = measured.fio_engine
    details = {"counters": measured.counters["spillway"], "fio_engine": engine,
               "processor_us_per_miss": ours.processor_us}
    if peer:
        bench.add(Row("random reads", f"{name}: fio", ours.reads_per_s, peer.reads_per_s, "reads/s",
                      ours.reads_per_s / peer.reads_per_s, at_most=False, target=0.9, note=engine, details=details))
    else:
        bench.skip(f"{name}: fio", fio.why_not())
    if mmap:
        bench.add(Row("random reads", f"{name}: mmap", ours.reads_per_s, mmap.reads_per_s, "reads/s",
                      ours.reads_per_s / mmap.reads_per_s, at_most=False, note="MADV_RANDOM", details=details))
        bench.add(Row("random reads", f"{name}: processor time a miss, mmap", ours.processor_us, mmap.processor_us,
                      "us", ours.processor_us / mmap.processor_us))
    else:
        bench.skip(f"{name}: mmap", "memory cannot be limited")


# --- all of it -------------------------------------------------------------------------------------------------------

def memory(bench: Bench) -> None:
    highest = {}
    for name, cap_bytes, peak_bytes in bench.peaks:
        highest[name] = (cap_bytes, max(peak_bytes, highest.get(name, (0, 0))[1]))
    for name, (cap_bytes, peak_bytes) in highest.items():
        bench.add(Row("memory", f"peak, {name}", peak_bytes / MIB, (cap_bytes + ALLOWANCE_BYTES) / MIB, "MiB",
                      peak_bytes / (cap_bytes + ALLOWANCE_BYTES), target=1.0))


SECTIONS = {
    "in-memory": in_memory,
    "terasort": lambda bench: [terasort_beyond_memory(bench, mode) for mode in ("one-call", "shuffle")],
    "random-reads": random_reads,
}


def main(arguments: list[str]) -> int:
    parser = command.parser("first-light", __doc__, SECTIONS, peer_limit_s=None)
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the data, once: for trying it out")
    parser.add_argument("--block", default="64K", help="block size of the TeraSort runs [64K]")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else FULL

    def make_bench(programs):
        return Bench("first-light", programs=programs, sizes=sizes, block=options.block,
                     peer_limit_s=options.peer_limit or (20 if options.quick else 240))

    about = {"scale": "1/16" if options.quick else "1"}
    need_bytes = 4 * sizes.spill_records * RECORD_BYTES + 2 * GIB
    return command.run(options, about, need_bytes, make_bench, SECTIONS, after=lambda bench, _: memory(bench))
