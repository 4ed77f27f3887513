"""The experiments of TriCache's paper (OSDI 2022), scaled to this machine. `./dev bench tricache`, or see --help.

  in-memory  what recompiling costs where everything fits, against the paper's own overheads (section 4)
  random     8-byte reads, and 4 KiB pages read word by word, over the share of reads that hit memory (Figure 13)
  sort       TeraSort by one call and by shuffle, over memory (Figure 11)
  graph      PageRank, components and BFS, over memory (Figure 9)
  kv         mixgraph on a plain table in a mapped file, over memory (Figure 10)
  threads    PageRank and the key-value workload, by numbers of threads (Figure 14)
  maps       std::map and std::unordered_map of 50 million nodes, built, walked and searched, in a quarter of their size
  levels     the translated engine without one level or another, and what passes each (Tables 1 and 2)

Systems: both engines on recompiled programs; the native program on swap (data in memory) or with the kernel's mmap (data in
files); all in control groups with the same limit, the cap and ALLOWANCE_BYTES. Results have to agree. A system that takes too long
is stopped: "more than". Figures go to tricache.json, and as charts to SVG files beside it.
"""
import dataclasses
import pathlib

import levels
from harness import chart, command, fio, graphs, kernels, machine, process, reads, swap
from harness.programs import Programs
from harness.report import Report, Row

CHARTS = command.ROOT / "docs" / "charts"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
ENGINES = {"translated": "spillway", "mapped": "mapped"}  # system to build
WITHOUT_VIEW = "translated, without a view"
THREADS, READERS = 2, 8
RUN_LIMIT_S = 600
PATIENCE = 4  # a peer is stopped after so many times the slower engine's time
REPETITIONS = 5  # in memory
FIO_S = 4
FIO_TARGET = 0.95
HIT_PERCENTS = (100, 90, 80, 50, 10)
MEMORY_PERCENTS = (110, 50, 25, 12)  # of the data
THREAD_COUNTS = (1, 2, 4, 8, 16, 32)
RECORD_BYTES = 100
CAP_BYTES_MIN = 48 * MIB
# Time against native's, at most; of the translated engine.
PAPER_OVERHEADS = {"pagerank": 1.34, "components": 1.64, "bfs": 1.24, "TeraSort, one-call": 1.14, "TeraSort, shuffle": 1.01,
                   "8B Random, SATC hits": 1 / 0.57, "8B Random, SATC misses": 1 / 0.11, "4KB Random": 1 / 0.84}


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    peer_limit_s: float = 0
    charts: dict = dataclasses.field(default_factory=dict)  # file name to chart.Chart

    def cap(self, bytes_wanted: int) -> int:
        return max(CAP_BYTES_MIN, bytes_wanted // (64 * KIB) * (64 * KIB))

    def draw(self, name: str, title: str, x_name: str, y_name: str, settings: list[str], lines: dict) -> None:
        self.charts[f"{name}.svg"] = chart.Chart(title, x_name, y_name, settings, list(lines.values()))


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
    options: tuple = ()  # of `spillway run`, besides
    target: float = 0  # times as good as the peer, at least

    @property
    def unit(self) -> str:
        return "k/s" if self.rate_of else "s"

    def figure(self, result: process.Result) -> float:
        """Seconds, or thousands a second."""
        seconds = result.report.get("seconds", 0)
        seconds = seconds[self.phase] if self.phase else result.report.get("total_s", seconds) or result.seconds
        return result.report[self.rate_of] / seconds / 1e3 if self.rate_of else seconds

    def times_as_good(self, ours: float, theirs: float) -> float:
        return 0.0 if theirs == 0 else ours / theirs if self.rate_of else theirs / ours


def run_engines(bench: Bench, section: str, name: str, experiment: Experiment) -> dict[str, process.Result]:
    results = {}
    for engine, build in ENGINES.items():
        machine.settle(bench.programs.store)
        result, _ = bench.programs.spillway(
            experiment.cap_bytes, experiment.program, *experiment.arguments, build=build, block=experiment.block, options=experiment.options,
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
    machine.settle(bench.programs.store)
    if experiment.file:
        return "mmap", bench.programs.native(experiment.program, *arguments, limit_bytes=limit_bytes, time_limit_s=limit_s)
    if swap.why_not():
        bench.skip("swap", swap.why_not())
        return "swap", None
    with swap.swap_file(bench.programs.store, 6 * experiment.cap_bytes + GIB):
        return "swap", bench.programs.native(experiment.program, *arguments, limit_bytes=limit_bytes, time_limit_s=limit_s)


def compare(bench: Bench, section: str, name: str, setting: str, experiment: Experiment, lines: dict[str, chart.Line]
            ) -> dict[str, float]:
    """Runs all systems at one setting: a row for each engine, a point for each system. Returns the engines' figures."""
    ours = run_engines(bench, section, name, experiment)
    if not ours:
        return {}
    limit_s = min(bench.peer_limit_s, max(10, PATIENCE * max(result.seconds for result in ours.values())))
    peer_name, peer = run_peer(bench, experiment, limit_s)
    peer_figure = 0.0
    if peer is not None and peer.ok:
        peer_figure = experiment.figure(peer)
    elif peer is not None and peer.timed_out and not experiment.rate_of:
        peer_figure = max(0.0, peer.seconds - (peer.timed_from_s or 0))
    elif peer is not None and not peer.timed_out:
        bench.failure(section, f"{name}, {peer_name}", peer.why_failed())
    figures = {}
    for engine, result in ours.items():
        if peer is not None and peer.ok and peer.report["checksum"] != result.report["checksum"]:
            bench.failure(section, f"{name}, {engine}", f"not {peer_name}'s result: {result.report}")
            continue
        figures[engine] = experiment.figure(result)
        lines.setdefault(engine, chart.Line(engine, {})).points[setting] = figures[engine]
        ratio = experiment.times_as_good(figures[engine], peer_figure)
        bench.add(Row(section, f"{name}, {engine}: {peer_name}", figures[engine], peer_figure, experiment.unit, ratio, False,
                      experiment.target if ratio else 0, peer_is_lower_bound=bool(peer and peer.timed_out),
                      note="" if peer_figure else f"no {peer_name}"))
    if peer_figure:
        line = lines.setdefault(peer_name, chart.Line(peer_name, {}))
        line.points[setting] = peer_figure
        if peer.timed_out:
            line.lower_bounds.add(setting)
    return figures


# --- in memory -------------------------------------------------------------------------------------------------------

def in_memory_cases(bench: Bench, words: pathlib.Path, words_bytes: int) -> list[kernels.Case]:
    graph_scale = graphs.scale_of(20, bench.scale)
    graph_arguments = ("--scale", graph_scale, "--sweeps", 10, "--verify", "no", "--progress", "off", "--threads", THREADS)
    cases = [kernels.Case("", "graph", graph_arguments, graphs.bytes_while_built(graph_scale),
                          phases=("pagerank", "components", "bfs"))]
    records = 4_000_000 // bench.scale
    for mode in ("one-call", "shuffle"):
        arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
        cases.append(kernels.Case(f"TeraSort, {mode}", "terasort", arguments, 2 * RECORD_BYTES * records, phases=("sort",)))

    def reading(name, hot_bytes, read_bytes, ops):
        arguments = ("file-hits", "--file", words, "--hot", hot_bytes, "--hits", 100, "--read", read_bytes, "--threads", THREADS,
                     "--ops", ops // bench.scale, "--rounds", 3)
        return kernels.Case(name, "micro", arguments, words_bytes)

    return [*cases,
            reading("8B Random, SATC hits", 8 * MIB, 8, 40_000_000),
            reading("8B Random, SATC misses", words_bytes - MIB, 8, 10_000_000),
            reading("4KB Random", words_bytes - MIB, 4096, 1_000_000)]


def in_memory(bench: Bench) -> None:
    words, words_bytes = bench.programs.store / "words-in-memory", 2 * GIB // bench.scale
    bench.programs.native("micro", "file-make", "--file", words, "--bytes", words_bytes)
    variants = {"native": lambda case: bench.programs.native(case.program, *case.arguments, time_limit_s=RUN_LIMIT_S)}
    options = {engine: () for engine in ENGINES} | {WITHOUT_VIEW: ("--levels", "all")}
    for variant, more in options.items():
        variants[variant] = lambda case, build=ENGINES.get(variant, "spillway"), more=more: bench.programs.spillway(
            2 * case.data_bytes + 256 * MIB, case.program, *case.arguments, build=build, options=more, time_limit_s=RUN_LIMIT_S)[0]
    for case in in_memory_cases(bench, words, words_bytes):
        try:
            times = kernels.compare(case, variants, REPETITIONS)
        except kernels.Failed as failed:
            bench.failure("in memory", case.name or case.program, str(failed))
            continue
        for phase in case.phases or ("",):
            name, native = case.name or phase, times["native", phase]
            for variant in options:
                ours = times[variant, phase]
                bench.add(Row("in memory", f"{name}, {variant}", ours.wall, native.wall, ratio=ours.wall_ratio(native),
                              target=PAPER_OVERHEADS[name], note=f"processor {ours.processor_ratio(native):.2f}",
                              details={"native": vars(native), "spillway": vars(ours)}))
    words.unlink()


# --- Figure 13 -------------------------------------------------------------------------------------------------------

def random_reads(bench: Bench) -> None:
    file, file_bytes = bench.programs.store / "words", 4 * GIB // bench.scale
    made = bench.programs.native("micro", "file-make", "--file", file, "--bytes", file_bytes)
    if not made.ok:
        return bench.failure("random", "making the file", made.why_failed())
    for read_bytes, title in ((8, "8B Random"), (4096, "4KB Random")):
        lines: dict[str, chart.Line] = {}
        for percent in HIT_PERCENTS:
            hit_rate(bench, file, bench.cap(file_bytes // 8), read_bytes, title, percent, lines)
        bench.draw(f"random-{read_bytes}", f"{title}: reads of a mapped file", "reads that hit memory", "thousand reads a second",
                   [f"{p} %" for p in HIT_PERCENTS], lines)
    file.unlink()


def fio_rate(file: pathlib.Path) -> fio.Reads | None:
    if fio.why_not():
        return None
    machine.settle(file.parent)
    return fio.random_reads(file, reads.READ_BYTES, READERS, FIO_S)


def hit_rate(bench: Bench, file: pathlib.Path, cap_bytes: int, read_bytes: int, title: str, percent: int, lines: dict) -> None:
    misses = 1 - percent / 100
    ops = int(min(400_000 / misses if misses else 40_000_000, 40_000_000) / bench.scale)
    ops = ops if read_bytes == 8 or misses else ops // 20
    arguments = ("file-hits", "--file", file, "--hot", cap_bytes // 2, "--hits", percent, "--read", read_bytes, "--threads", READERS,
                 "--ops", ops, "--rounds", 1)
    experiment = Experiment("micro", arguments, cap_bytes, "4K", file, rate_of="ops", peer_arguments=("--advice", "random"),
                            target=1.0 if misses else 0)
    name = f"{title}, {percent} % hits"
    # The disk is faster at one minute than at another: fio runs before and after, and the mean of its rates counts.
    before = fio_rate(file) if misses else None
    figures = compare(bench, "random", name, f"{percent} %", experiment, lines)
    if not misses:
        return
    if before is None:
        return bench.skip(f"{name}: fio", fio.why_not())
    after = fio_rate(file)
    peer_reads_per_s = (before.reads_per_s + after.reads_per_s) / 2
    for engine, figure in figures.items():
        # The cold part is larger than memory, but a share of it is there.
        cold_share = cap_bytes // 2 / (file.stat().st_size - cap_bytes // 2)
        missed = figure * misses * (1 - cold_share)
        spread = f"fio {before.reads_per_s / 1e3:.1f}, {after.reads_per_s / 1e3:.1f}"
        bench.add(Row("random", f"{name}, {engine}: fio", missed, peer_reads_per_s / 1e3, "k misses/s",
                      missed * 1e3 / peer_reads_per_s, False, FIO_TARGET, note=spread))


# --- Figure 11 -------------------------------------------------------------------------------------------------------

def over_memory(bench: Bench, section: str, title: str, chart_name: str, y_name: str, make_experiment) -> None:
    """make_experiment: from a percentage of the data."""
    lines: dict[str, chart.Line] = {}
    for percent in MEMORY_PERCENTS:
        compare(bench, section, f"{title}, {percent} % of the data", f"{percent} %", make_experiment(percent), lines)
    bench.draw(chart_name, title, "memory, of the data", y_name, [f"{p} %" for p in MEMORY_PERCENTS], lines)


def sort(bench: Bench) -> None:
    records = 10_000_000 // bench.scale
    for mode in ("one-call", "shuffle"):
        arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
        over_memory(bench, "sort", f"TeraSort, {mode}", f"terasort-{mode}", "seconds",
                    lambda percent, arguments=arguments: Experiment(
                        "terasort", arguments, bench.cap(2 * records * RECORD_BYTES * percent // 100 + 32 * MIB), "64K",
                        phase="sort"))


# --- Figure 9 --------------------------------------------------------------------------------------------------------

def graph_file(bench: Bench) -> tuple[pathlib.Path, int]:
    scale = graphs.scale_of(21, bench.scale)
    return graphs.file_of(bench.programs, scale), graphs.bytes_of(scale)


def graph_experiment(file: pathlib.Path, algorithm: str, threads: int, cap_bytes: int) -> Experiment:
    arguments = ("--graph", file, "--run", algorithm, "--sweeps", 5, "--verify", "no", "--progress", "off", "--threads", threads)
    return Experiment("graph", arguments, cap_bytes, "4K", phase=algorithm)


def graph(bench: Bench) -> None:
    file, data_bytes = graph_file(bench)
    for algorithm in ("pagerank", "components", "bfs"):
        over_memory(bench, "graph", algorithm, f"graph-{algorithm}", "seconds",
                    lambda percent, algorithm=algorithm: graph_experiment(file, algorithm, THREADS,
                                                                          bench.cap(data_bytes * percent // 100)))


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
    over_memory(bench, "kv", "mixgraph on a plain table", "kv", "thousand operations a second",
                lambda percent: kv_experiment(bench, file, bench.cap(data_bytes * percent // 100 + 32 * MIB), READERS))


# --- Figure 14 -------------------------------------------------------------------------------------------------------

def by_threads(bench: Bench, title: str, chart_name: str, y_name: str, make_experiment) -> None:
    """make_experiment: from a number of threads."""
    lines: dict[str, chart.Line] = {}
    for count in THREAD_COUNTS:
        compare(bench, "threads", f"{title}, {count} threads", str(count), make_experiment(count), lines)
    bench.draw(chart_name, f"{title}, a quarter in memory", "threads", y_name, [str(count) for count in THREAD_COUNTS], lines)


def threads(bench: Bench) -> None:
    file, data_bytes = graph_file(bench)
    by_threads(bench, "PageRank", "threads-pagerank", "seconds",
               lambda count: graph_experiment(file, "pagerank", count, bench.cap(data_bytes // 4)))
    table, table_bytes = table_file(bench)
    by_threads(bench, "mixgraph", "threads-kv", "thousand operations a second",
               lambda count: kv_experiment(bench, table, bench.cap(table_bytes // 4), count))


# --- std::map --------------------------------------------------------------------------------------------------------

def maps(bench: Bench) -> None:
    nodes, finds = 50_000_000 // bench.scale, 400_000 // bench.scale
    for container, title, node_bytes in (("ordered", "std::map", 48), ("hashed", "std::unordered_map", 32)):
        arguments = ("--container", container, "--nodes", nodes, "--finds", finds, "--threads", READERS)
        # Small objects beyond the quota are managed. The quota comes on top of the cap, so here there is none.
        experiment = Experiment("map", arguments, bench.cap(nodes * node_bytes // 4), "4K", options=("--quota", 0))
        compare(bench, "maps", f"{title}, {nodes / 1e6:.3g} M nodes in a quarter", "", experiment, {})


SECTIONS = {"in-memory": in_memory, "random": random_reads, "sort": sort, "graph": graph, "kv": kv, "threads": threads,
            "maps": maps, "levels": levels.levels}


def main(arguments: list[str]) -> int:
    parser = command.parser("tricache", __doc__, SECTIONS, peer_limit_s=60)
    command.add_scale(parser)
    options = parser.parse_args(arguments)

    def make_bench(programs):
        return Bench("tricache", programs=programs, scale=options.scale, peer_limit_s=options.peer_limit)

    def write_charts(bench, results):
        if reason := chart.why_not():
            return bench.skip("charts", reason)
        for target in [results, *([CHARTS] if options.update_docs else [])]:
            target.mkdir(parents=True, exist_ok=True)
            for file, drawn in bench.charts.items():
                if drawn.lines:
                    drawn.write(target / file)

    about = {"scale": f"1/{options.scale}", "threads": THREADS}
    return command.run(options, about, (12 * GIB) // options.scale + GIB, make_bench, SECTIONS, after=write_charts)
