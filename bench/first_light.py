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
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time

from harness import cgroup, fio, machine, process, swap, table, workspace
from harness.programs import Programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "BENCHMARKS.md"
DOCS_BEGIN, DOCS_END = "<!-- first-light:begin -->\n", "<!-- first-light:end -->\n"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ALLOWANCE_BYTES = 64 * MIB
RECORD_BYTES = 100
PAGE_CLUSTERS = (0, 3)
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
class Row:
    section: str
    name: str
    spillway: float = 0
    peer: float = 0
    unit: str = "s"
    ratio: float = 0  # smaller is better where `at_most`, larger where not
    at_most: bool = True
    target: float = 0  # 0: none
    peer_is_lower_bound: bool = False
    note: str = ""
    failed: bool = False
    details: dict = dataclasses.field(default_factory=dict)

    def met(self) -> str:
        if self.failed:
            return "failed"
        if self.target == 0:
            return ""
        return "yes" if (self.ratio <= self.target if self.at_most else self.ratio >= self.target) else "no"


@dataclasses.dataclass
class Bench:
    programs: Programs
    sizes: Sizes
    store: pathlib.Path
    peer_limit_s: float
    block: str
    rows: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)
    peaks: list = dataclasses.field(default_factory=list)  # (name, cap, peak)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def skip(self, what: str, why: str) -> None:
        self.skipped.append({"what": what, "why": why})
        self.say(f"skipped: {what}: {why}")

    def failure(self, section: str, name: str, why: str) -> None:
        self.rows.append(Row(section, name, note=why, failed=True))
        self.say(f"FAILED: {name}: {why}")

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.say(f"{row.section}: {row.name}: ratio {row.ratio:.2f}")

    def limit(self, cap_bytes: int) -> int | None:
        return cap_bytes + ALLOWANCE_BYTES if self.programs.grouped else None


# --- in memory -------------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class InMemory:
    name: str
    program: str
    arguments: tuple
    data_bytes: int
    target: float = 0


def in_memory_cases(scale: int) -> list[InMemory]:
    def micro(name, kernel, data_bytes, operations=0, rounds=3, threads=1, target=0):
        data_bytes //= scale
        arguments = (kernel, "--bytes", data_bytes, "--rounds", rounds, "--threads", threads)
        if operations:
            arguments += ("--ops", operations // scale)
        return InMemory(name, "micro", arguments, data_bytes, target)

    def terasort(mode, target):
        records = 10_000_000 // scale
        arguments = ("--records", records, "--mode", mode, "--progress", "off")
        return InMemory(f"TeraSort, {mode}", "terasort", arguments, 2 * RECORD_BYTES * records, target)

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


def kernel_s(report: dict) -> float:
    """The time of the part that is compared: a micro benchmark's kernel, a program's sorting."""
    seconds = report["seconds"]
    return seconds["sort"] if isinstance(seconds, dict) else seconds


def in_memory(bench: Bench) -> None:
    for case in in_memory_cases(bench.sizes.in_memory_scale):
        times: dict[str, list[float]] = {"native": [], "spillway": []}
        checksums = set()
        processor_ratios = []
        for _ in range(bench.sizes.repetitions):
            native = bench.programs.native(case.program, *case.arguments, time_limit_s=RUN_LIMIT_S)
            recompiled, _ = bench.programs.spillway(2 * case.data_bytes + 256 * MIB, case.program, *case.arguments,
                                                    time_limit_s=RUN_LIMIT_S)
            failed = next((r for r in (native, recompiled) if not r.ok), None)
            if failed:
                break
            for variant, result in (("native", native), ("spillway", recompiled)):
                times[variant].append(kernel_s(result.report))
                checksums.add(result.report["checksum"])
            processor_ratios.append(recompiled.report["processor_s"] / native.report["processor_s"])
        if failed:
            bench.failure("in memory", case.name, failed.why_failed())
        elif len(checksums) != 1:
            bench.failure("in memory", case.name, f"different results: {sorted(checksums)}")
        else:
            spillway_s, native_s = (statistics.median(times[v]) for v in ("spillway", "native"))
            processor = statistics.median(processor_ratios)
            bench.add(Row("in memory", case.name, spillway_s, native_s, ratio=spillway_s / native_s, target=case.target,
                          note=f"processor {processor:.2f}", details={**times, "processor_ratio": processor}))


# --- four times as much data as memory -------------------------------------------------------------------------------

def terasort_arguments(records: int, mode: str) -> tuple:
    return ("--records", records, "--mode", mode, "--progress", "off")


def swap_bytes(records: int) -> int:
    return 2 * RECORD_BYTES * records + 256 * MIB


def best_page_cluster(bench: Bench, mode: str) -> int:
    """The setting with which the native program swaps best, found on a small instance of the same shape."""
    probe = dataclasses.replace(bench.sizes, scale=PROBE_SCALE)
    took = {}
    with swap.swap_file(bench.store, swap_bytes(probe.spill_records)):
        for cluster in PAGE_CLUSTERS:
            with swap.setting(swap.PAGE_CLUSTER, str(cluster)):
                result = bench.programs.native("terasort", *terasort_arguments(probe.spill_records, mode),
                                               limit_bytes=probe.spill_cap_bytes, time_limit_s=bench.peer_limit_s / 4)
                took[cluster] = result.seconds if result.ok else float("inf")
    return min(took, key=took.get)


def run_on_swap(bench: Bench, mode: str, time_limit_s: float) -> tuple[process.Result, int]:
    cluster = best_page_cluster(bench, mode)
    with swap.setting(swap.PAGE_CLUSTER, str(cluster)), \
            swap.swap_file(bench.store, swap_bytes(bench.sizes.spill_records)):
        result = bench.programs.native("terasort", *terasort_arguments(bench.sizes.spill_records, mode),
                                       limit_bytes=bench.limit(bench.sizes.spill_cap_bytes), time_limit_s=time_limit_s)
    return result, cluster


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
            limit_bytes=bench.limit(cap_bytes), time_limit_s=RUN_LIMIT_S)
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

@dataclasses.dataclass(frozen=True)
class Rate:
    reads_per_s: float  # from the disk
    processor_us: float  # a read from the disk


def disk_rate(result: process.Result, resident_share: float) -> Rate:
    """Places are uniform, so this share of the operations of a warmed-up round is answered from memory."""
    report = result.report
    missing = 1 - resident_share
    return Rate(report["ops"] / report["seconds"] * missing, report["processor_ns_per_op"] / missing / 1000)


def random_reads(bench: Bench) -> None:
    file = bench.store / "words"
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
    limit_bytes = bench.limit(cap_bytes)
    arguments = ("file-read", "--file", file, "--threads", threads, "--ops", operations, "--rounds", 1)
    rates: dict[str, list[Rate]] = {"spillway": [], "mmap": []}
    device, engine = [], ""
    for _ in range(bench.sizes.repetitions):
        if fio.why_not() is None:
            rate, engine = fio.random_reads_per_s(file, 4 * KIB, threads, bench.sizes.fio_s)
            device.append(rate)
        drop_page_cache(file)
        result, counters = bench.programs.spillway(cap_bytes, "micro", *arguments, limit_bytes=limit_bytes,
                                                   time_limit_s=RUN_LIMIT_S)
        if not result.ok:
            bench.failure("random reads", name, result.why_failed())
            return
        bench.peaks.append((name, cap_bytes, result.usage.peak_program_bytes))
        rates["spillway"].append(disk_rate(result, cap_bytes / bench.sizes.file_bytes))
        drop_page_cache(file)
        if limit_bytes is not None:
            result = bench.programs.native("micro", *arguments, "--advice", "random", limit_bytes=limit_bytes,
                                           time_limit_s=RUN_LIMIT_S)
            if not result.ok:
                bench.failure("random reads", f"{name}: mmap", result.why_failed())
                return
            rates["mmap"].append(disk_rate(result, limit_bytes / bench.sizes.file_bytes))
    ours = median_rate(rates["spillway"])
    details = {"counters": counters, "fio_engine": engine, "processor_us_per_miss": ours.processor_us}
    if device:
        fio_rate = statistics.median(device)
        bench.add(Row("random reads", f"{name}: fio", ours.reads_per_s, fio_rate, "reads/s",
                      ours.reads_per_s / fio_rate, at_most=False, target=0.9, note=engine, details=details))
    else:
        bench.skip(f"{name}: fio", fio.why_not())
    if rates["mmap"]:
        mmap = median_rate(rates["mmap"])
        bench.add(Row("random reads", f"{name}: mmap", ours.reads_per_s, mmap.reads_per_s, "reads/s",
                      ours.reads_per_s / mmap.reads_per_s, at_most=False, note="MADV_RANDOM", details=details))
        bench.add(Row("random reads", f"{name}: processor time a miss, mmap", ours.processor_us, mmap.processor_us,
                      "us", ours.processor_us / mmap.processor_us))
    else:
        bench.skip(f"{name}: mmap", "memory cannot be limited")


def median_rate(rates: list[Rate]) -> Rate:
    return Rate(statistics.median(r.reads_per_s for r in rates), statistics.median(r.processor_us for r in rates))


def drop_page_cache(file: pathlib.Path) -> None:
    with open(file, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def shown(value: float, unit: str) -> str:
    if value == 0:
        return ""
    return table.seconds(value) if unit == "s" else f"{value:,.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"


def markdown(rows: list[Row], about: dict, skipped: list) -> str:
    cells = []
    for row in rows:
        more = "> " if row.peer_is_lower_bound else ""
        target = f"{'≤' if row.at_most else '≥'} {row.target:g}" if row.target else ""
        cells.append([row.section, row.name, shown(row.spillway, row.unit), more + shown(row.peer, row.unit),
                      f"{more}{row.ratio:.2f}" if row.ratio else "", target, row.met(), row.note])
    lines = [f"{key}: {value}  " for key, value in about.items()]
    heads = ["section", "what", "Spillway", "peer", "ratio", "target", "met", "note"]
    lines += ["", table.table(heads, cells)]
    lines += ["", *(f"Skipped: {skip['what']}: {skip['why']}  " for skip in skipped)] if skipped else []
    return "\n".join(lines) + "\n"


def update_docs(text: str) -> None:
    before, rest = DOCS.read_text().split(DOCS_BEGIN)
    _, after = rest.split(DOCS_END)
    DOCS.write_text(before + DOCS_BEGIN + text + DOCS_END + after)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run first-light", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--store", type=pathlib.Path, help="directory on the disk to measure [the build's bench/]")
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the data, once: for trying it out")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="this section only (may be repeated)")
    parser.add_argument("--peer-limit", type=float, metavar="SECONDS",
                        help="stop a native program on swap after this long [240, with --quick 20]")
    parser.add_argument("--block", default="64K", help="block size of the TeraSort runs [64K]")
    parser.add_argument("--update-docs", action="store_true", help=f"put the table into {DOCS.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    workspace.stop_on_signals()
    sizes = QUICK if options.quick else FULL
    results = options.build / "bench"
    results.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with workspace.workspace(options.store or results) as store:
        grouped = cgroup.why_not() is None
        programs = Programs(options.build.resolve(), store, grouped)
        reason = programs.why_not_spillway()
        if reason:
            sys.exit(f"first-light: {reason}")
        workspace.need_space(store, 4 * sizes.spill_records * RECORD_BYTES + 2 * GIB)
        bench = Bench(programs, sizes, store, options.peer_limit or (20 if options.quick else 240), options.block)
        if not grouped:
            bench.skip("memory limits", cgroup.why_not())
        about = machine.describe(ROOT, store) | {"scale": "1/16" if options.quick else "1"}
        for name in options.only or SECTIONS:
            SECTIONS[name](bench)
        memory(bench)
    about["took_s"] = round(time.monotonic() - start)
    text = markdown(bench.rows, about, bench.skipped)
    rows = [dataclasses.asdict(row) | {"met": row.met()} for row in bench.rows]
    report = {"bench": "first-light", "about": about, "rows": rows, "skipped": bench.skipped}
    (results / "first-light.json").write_text(json.dumps(report, indent=1) + "\n")
    (results / "first-light.md").write_text(text)
    if options.update_docs:
        update_docs(text)
    print(text)
    bench.say(f"written: {results}/first-light.json and .md")
    return 1 if any(row.failed for row in bench.rows) else 0
