"""The experiments of TriCache's paper (OSDI 2022), scaled to this machine. `./dev bench tricache`, or see --help.

  random   8-byte reads, and 4 KiB pages read word by word, over the share of reads that hit memory (Figure 13)
  sort     TeraSort by one call and by shuffle, over memory (Figure 11)
  graph    PageRank, components and BFS, over memory (Figure 9)
  kv       mixgraph on a plain table in a mapped file, over memory (Figure 10)
  threads  PageRank and the key-value workload, by numbers of threads (Figure 14)

Systems: both engines on recompiled programs; the native program on swap (data in memory) or with the kernel's mmap (data in
files); all in control groups with the same limit, the cap and ALLOWANCE_BYTES. Results have to agree. A system that takes too long
is stopped: "more than". Figures go to tricache.json, and as charts to SVG files beside it.
"""
import argparse
import dataclasses
import pathlib
import sys
import time

from harness import cgroup, chart, machine, process, reads, swap, workspace
from harness.programs import Programs
from harness.report import Report, Row

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHARTS = ROOT / "docs" / "charts"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ENGINES = {"translated": "spillway", "mapped": "mapped"}  # system to build
THREADS = 2
SETTLE_S = 3  # before each run: a disk that has just taken much is slower for a while
RUN_LIMIT_S = 600
PATIENCE = 6  # a peer is stopped after so many times the slower engine's time
HIT_PERCENTS = (100, 90, 80, 50, 10)
MEMORY_PERCENTS = (110, 50, 25, 12)  # of the data
THREAD_COUNTS = (1, 2, 4, 8, 16, 32)
RECORD_BYTES, PAIR_BYTES, EDGE_FACTOR = 100, 100, 16
CAP_BYTES_MIN = 48 * MIB


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    peer_limit_s: float = 0
    charts: dict = dataclasses.field(default_factory=dict)  # file name to chart.Chart

    def cap(self, bytes_wanted: int) -> int:
        return max(CAP_BYTES_MIN, bytes_wanted // (64 * KIB) * (64 * KIB))


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One program at one setting. `file`: what it maps; "" where its data is in memory."""
    program: str
    arguments: tuple
    cap_bytes: int
    block: str
    file: pathlib.Path | None = None
    phase: str = ""
    rate_of: str = ""  # a member of the report that counts what is done; "": time is what counts
    peer_arguments: tuple = ()

    def figure(self, result: process.Result) -> float:
        """Seconds, or thousands a second."""
        seconds = result.report.get("seconds", 0)
        seconds = seconds[self.phase] if self.phase else result.report.get("total_s", seconds) or result.seconds
        return result.report[self.rate_of] / seconds / 1e3 if self.rate_of else seconds


def run_engines(bench: Bench, section: str, name: str, experiment: Experiment) -> dict[str, process.Result]:
    results = {}
    for engine, build in ENGINES.items():
        if experiment.file:
            reads.drop_page_cache(experiment.file)
        time.sleep(SETTLE_S)
        result, _ = bench.programs.spillway(
            experiment.cap_bytes, experiment.program, *experiment.arguments, build=build, block=experiment.block,
            limit_bytes=bench.programs.limit(experiment.cap_bytes), time_limit_s=RUN_LIMIT_S)
        if result.ok:
            results[engine] = result
        else:
            bench.failure(section, f"{name}, {engine}", result.why_failed())
    return results


def run_peer(bench: Bench, experiment: Experiment, limit_s: float) -> tuple[str, process.Result | None]:
    """Which one it was, and what came of it."""
    limit_bytes = bench.programs.limit(experiment.cap_bytes)
    arguments = (*experiment.arguments, *experiment.peer_arguments)
    if limit_bytes is None:
        return "peer", None
    time.sleep(SETTLE_S)
    if experiment.file:
        reads.drop_page_cache(experiment.file)
        return "mmap", bench.programs.native(experiment.program, *arguments, limit_bytes=limit_bytes, time_limit_s=limit_s)
    if swap.why_not():
        bench.skip("swap", swap.why_not())
        return "swap", None
    with swap.swap_file(bench.programs.store, 6 * experiment.cap_bytes + GIB):
        return "swap", bench.programs.native(experiment.program, *arguments, limit_bytes=limit_bytes, time_limit_s=limit_s)


def compare(bench: Bench, section: str, name: str, setting: str, experiment: Experiment, lines: dict[str, chart.Line]) -> None:
    """Runs all systems at one setting: a row for each engine, a point for each system."""
    ours = run_engines(bench, section, name, experiment)
    if not ours:
        return
    limit_s = min(bench.peer_limit_s, max(10, PATIENCE * max(result.seconds for result in ours.values())))
    peer_name, peer = run_peer(bench, experiment, limit_s)
    peer_figure = 0.0
    if peer is not None and peer.ok:
        peer_figure = experiment.figure(peer)
    elif peer is not None and peer.timed_out and not experiment.rate_of:
        peer_figure = max(0.0, peer.seconds - (peer.timed_from_s or 0))
    elif peer is not None and not peer.timed_out:
        bench.failure(section, f"{name}, {peer_name}", peer.why_failed())
    unit = "k/s" if experiment.rate_of else "s"
    for engine, result in ours.items():
        figure = experiment.figure(result)
        ratio = 0.0 if peer_figure == 0 else figure / peer_figure if experiment.rate_of else peer_figure / figure
        if peer is not None and peer.ok and peer.report.get("checksum") != result.report.get("checksum"):
            bench.failure(section, f"{name}, {engine}", f"not {peer_name}'s result: {result.report}")
            continue
        lines.setdefault(engine, chart.Line(engine, {})).points[setting] = figure
        bench.add(Row(section, f"{name}, {engine}: {peer_name}", figure, peer_figure, unit, ratio, False, 1.0 if ratio else 0,
                      peer_is_lower_bound=bool(peer and peer.timed_out), note="" if peer_figure else f"no {peer_name}"))
    if peer_figure:
        line = lines.setdefault(peer_name, chart.Line(peer_name, {}))
        line.points[setting] = peer_figure
        if peer.timed_out:
            line.lower_bounds.add(setting)


# --- Figure 13 -------------------------------------------------------------------------------------------------------

def random_reads(bench: Bench) -> None:
    file, file_bytes = bench.programs.store / "words", 4 * GIB // bench.scale
    made = bench.programs.native("micro", "file-make", "--file", file, "--bytes", file_bytes)
    if not made.ok:
        return bench.failure("random", "making the file", made.why_failed())
    cap_bytes = bench.cap(file_bytes // 8)
    for read_bytes, title in ((8, "8B Random"), (4096, "4KB Random")):
        lines: dict[str, chart.Line] = {}
        for percent in HIT_PERCENTS:
            misses = {100: 0, 90: 0.1, 80: 0.2, 50: 0.5, 10: 0.9}[percent]
            ops = int(min(400_000 / misses if misses else 40_000_000, 40_000_000) / bench.scale)
            ops = ops if read_bytes == 8 or misses else ops // 20
            arguments = ("file-hits", "--file", file, "--hot", cap_bytes // 2, "--hits", percent, "--read", read_bytes, "--threads",
                         8, "--ops", ops, "--rounds", 1)
            experiment = Experiment("micro", arguments, cap_bytes, "4K", file, rate_of="ops", peer_arguments=("--advice", "random"))
            compare(bench, "random", f"{title}, {percent} % hits", f"{percent} %", experiment, lines)
        bench.charts[f"random-{read_bytes}.svg"] = chart.Chart(
            f"{title}: reads of a mapped file", "reads that hit memory", "thousand reads a second", [f"{p} %" for p in HIT_PERCENTS],
            list(lines.values()))
    file.unlink()


# --- Figure 11 -------------------------------------------------------------------------------------------------------

def sort(bench: Bench) -> None:
    records = 10_000_000 // bench.scale
    for mode in ("one-call", "shuffle"):
        lines: dict[str, chart.Line] = {}
        for percent in MEMORY_PERCENTS:
            arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
            experiment = Experiment("terasort", arguments, bench.cap(2 * records * RECORD_BYTES * percent // 100 + 32 * MIB), "64K",
                                    phase="sort")
            compare(bench, "sort", f"TeraSort, {mode}, {percent} % of the data", f"{percent} %", experiment, lines)
        bench.charts[f"terasort-{mode}.svg"] = chart.Chart(
            f"TeraSort by {mode}", "memory, of the data", "seconds", [f"{p} %" for p in MEMORY_PERCENTS], list(lines.values()))


# --- Figure 9 --------------------------------------------------------------------------------------------------------

def graph_file(bench: Bench) -> tuple[pathlib.Path, int]:
    scale = 21 - (bench.scale - 1).bit_length()
    file = bench.programs.store / f"graph-{scale}"
    if not file.exists():
        made = bench.programs.native("graph", "--scale", scale, "--edge-factor", EDGE_FACTOR, "--save", file, "--run", "bfs",
                                     "--verify", "no", "--progress", "off")
        if not made.ok:
            raise RuntimeError(f"making the graph: {made.why_failed()}")
    return file, (EDGE_FACTOR * 8 + 16) << scale


def graph_arguments(file: pathlib.Path, algorithm: str, threads: int) -> tuple:
    return ("--graph", file, "--run", algorithm, "--sweeps", 5, "--verify", "no", "--progress", "off", "--threads", threads)


def graph(bench: Bench) -> None:
    file, data_bytes = graph_file(bench)
    for algorithm in ("pagerank", "components", "bfs"):
        lines: dict[str, chart.Line] = {}
        for percent in MEMORY_PERCENTS:
            experiment = Experiment("graph", graph_arguments(file, algorithm, THREADS), bench.cap(data_bytes * percent // 100), "64K",
                                    phase=algorithm)
            compare(bench, "graph", f"{algorithm}, {percent} % of the data", f"{percent} %", experiment, lines)
        bench.charts[f"graph-{algorithm}.svg"] = chart.Chart(
            algorithm, "memory, of the data", "seconds", [f"{p} %" for p in MEMORY_PERCENTS], list(lines.values()))


# --- Figure 10 -------------------------------------------------------------------------------------------------------

def table_file(bench: Bench) -> tuple[pathlib.Path, int]:
    pairs = 16_000_000 // bench.scale
    file = bench.programs.store / "table"
    if not file.exists():
        made = bench.programs.native("kv", "make", "--file", file, "--pairs", pairs)
        if not made.ok:
            raise RuntimeError(f"making the table: {made.why_failed()}")
    return file, file.stat().st_size


def kv_experiment(bench: Bench, file: pathlib.Path, cap_bytes: int, threads: int) -> Experiment:
    arguments = ("run", "--file", file, "--ops", 400_000 // bench.scale, "--threads", threads)
    return Experiment("kv", arguments, cap_bytes, "4K", file, rate_of="ops", peer_arguments=("--advice", "random"))


def kv(bench: Bench) -> None:
    file, data_bytes = table_file(bench)
    lines: dict[str, chart.Line] = {}
    for percent in MEMORY_PERCENTS:
        experiment = kv_experiment(bench, file, bench.cap(data_bytes * percent // 100 + 32 * MIB), 8)
        compare(bench, "kv", f"mixgraph, {percent} % of the data", f"{percent} %", experiment, lines)
    bench.charts["kv.svg"] = chart.Chart("mixgraph on a plain table", "memory, of the data", "thousand operations a second",
                                         [f"{p} %" for p in MEMORY_PERCENTS], list(lines.values()))


# --- Figure 14 -------------------------------------------------------------------------------------------------------

def threads(bench: Bench) -> None:
    file, data_bytes = graph_file(bench)
    lines: dict[str, chart.Line] = {}
    for count in THREAD_COUNTS:
        experiment = Experiment("graph", graph_arguments(file, "pagerank", count), bench.cap(data_bytes // 4), "64K", phase="pagerank")
        compare(bench, "threads", f"pagerank, {count} threads", str(count), experiment, lines)
    bench.charts["threads-pagerank.svg"] = chart.Chart("PageRank, a quarter in memory", "threads", "seconds",
                                                       [str(count) for count in THREAD_COUNTS], list(lines.values()))
    table, table_bytes = table_file(bench)
    lines = {}
    for count in THREAD_COUNTS:
        compare(bench, "threads", f"mixgraph, {count} threads", str(count),
                kv_experiment(bench, table, bench.cap(table_bytes // 4), count), lines)
    bench.charts["threads-kv.svg"] = chart.Chart("mixgraph, a quarter in memory", "threads", "thousand operations a second",
                                                 [str(count) for count in THREAD_COUNTS], list(lines.values()))


SECTIONS = {"random": random_reads, "sort": sort, "graph": graph, "kv": kv, "threads": threads}


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run tricache", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--store", type=pathlib.Path, help="directory on the disk to measure [the build's bench/]")
    parser.add_argument("--results", type=pathlib.Path, help="directory for what is written [the build's bench/]")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="1/N of the data: for trying it out [1]")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="this section only (may be repeated)")
    parser.add_argument("--peer-limit", type=float, metavar="SECONDS", default=60, help="stop a peer after this long [60]")
    parser.add_argument("--update-docs", action="store_true", help=f"put the charts into {CHARTS.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if options.scale < 1 or options.scale & (options.scale - 1):
        parser.error("--scale is a power of two")
    return options


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    workspace.stop_on_signals()
    results = options.results or options.build / "bench"
    results.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with workspace.workspace(options.store or options.build / "bench") as store:
        grouped = cgroup.why_not() is None
        programs = Programs(options.build.resolve(), store, grouped)
        if reason := programs.why_not_spillway():
            sys.exit(f"tricache: {reason}")
        workspace.need_space(store, (12 * GIB) // options.scale + GIB)
        bench = Bench("tricache", programs=programs, scale=options.scale, peer_limit_s=options.peer_limit)
        if not grouped:
            bench.skip("memory limits", cgroup.why_not())
        about = machine.describe(ROOT, store) | {"scale": f"1/{options.scale}", "threads": THREADS}
        for name in options.only or SECTIONS:
            SECTIONS[name](bench)
    about["took_s"] = round(time.monotonic() - start)
    text = bench.write(results, about)
    targets = [results, *([CHARTS] if options.update_docs else [])]
    for target in targets:
        target.mkdir(parents=True, exist_ok=True)
        for file, drawn in bench.charts.items():
            if drawn.lines:
                drawn.write(target / file)
    print(text)
    return 1 if bench.failed() else 0
