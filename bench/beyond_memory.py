"""The sections of bench/mapped.py, one also of bench/fast_disk.py, whose data is larger than memory."""
import dataclasses
import pathlib

from harness import cgroup, fio, graphs, machine, peers, process, programs, swap
from harness.programs import Programs
from harness.report import Report, Row

MIB, GIB = 1 << 20, 1 << 30
THREADS = 2
BUILDS = {"recompiled": "mapped", "unmodified": "native"}  # variant to the build that runs under Spillway
FAULT_BUILDS = BUILDS | {"faults by signals": programs.SIGNALS}  # unmodified, too
RECORD_BYTES = 100
MEMORY_SHARE = 4  # one part of so many of the data fits
PROBE_SCALE = 16  # of a case, for choosing the kernel's settings
RUN_LIMIT_S = 600  # of our own runs: something hangs
CAP_BYTES_MIN = 32 * MIB
PEER_LIMIT_S_MIN = 10
SWAP_PATIENCE, MMAP_PATIENCE = 4, 2  # a peer is stopped after so many times our own, better, time
FAULT_SHARE_TARGET = 0.02
AUTO = "auto"  # Spillway chooses the block size
UMAP_THREADS = (1, 2, 8, 32)
GRAPH_EDGES, GRAPH_EDGE_BYTES = 16 << 20, 34  # of the graph that is built in a file, as Metall's bench does
GRAPH_TARGET_LEAST = 2.0
UMAP_TARGET_LEAST, UMAP_TARGET_MEAN = 1.22, 1.9  # what its paper reports over mmap: from, to


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: str
    arguments: tuple
    data_bytes: int
    cap_bytes: int
    phase: str = ""  # of the program's report; "": what the program names as its measured part, or all of it
    block: str = ""  # where the command line names a size, too; "": as it says
    read_percent: int = 0  # where access is sequential: of its disk traffic, about
    in_mean: bool = True


@dataclasses.dataclass(frozen=True)
class Targets:
    """Of out_of_core: times faster than a peer."""

    mean: float  # over swap
    swap: float  # each row
    mmap: float
    bandwidth: float = 0  # of the device's; 0: not held against it
    all_in_mean: bool = False  # also the random updates


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    repetitions: int = 0  # 0: as many as a section likes
    peer_limit_s: float = 0
    block: str = ""
    long: bool = False
    only_case: str = ""
    random_updates: int = 150_000  # divided by the scale
    runs: dict = dataclasses.field(default_factory=dict)  # our own, by (case, variant): used by two sections

    def ours(self, case: Case, variant: str) -> tuple[process.Result, dict]:
        if (case.name, variant) not in self.runs:
            machine.settle(self.programs.store)
            block = AUTO if self.block == AUTO else case.block or self.block
            self.runs[case.name, variant] = self.programs.spillway(
                case.cap_bytes, case.program, *case.arguments, build=BUILDS[variant], block=block,
                limit_bytes=self.programs.limit(case.cap_bytes), time_limit_s=RUN_LIMIT_S)
        return self.runs[case.name, variant]


def cap_of(data_bytes: int) -> int:
    return max(CAP_BYTES_MIN, data_bytes // MEMORY_SHARE // (64 << 10) * (64 << 10))


def cases(bench: Bench, scale: int) -> list[Case]:
    def terasort(mode):
        records = 40_000_000 // scale
        arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
        return Case(f"TeraSort by {mode}", "terasort", arguments, 2 * RECORD_BYTES * records,
                    max(CAP_BYTES_MIN, GIB // scale))

    def micro(name, kernel, rounds=1, operations=0, **more):
        data_bytes = GIB // scale
        arguments = (kernel, "--bytes", data_bytes, "--rounds", rounds, "--warmups", 0, "--threads", THREADS)
        if operations:
            arguments += ("--ops", max(1000, operations // scale))
        return Case(name, "micro", arguments, data_bytes, cap_of(data_bytes), **more)

    def pagerank():
        graph_scale = graphs.scale_of(22, scale)
        arguments = ("--graph", graphs.file_of(bench.programs, graph_scale), "--run", "pagerank", "--sweeps", 5, "--verify", "no",
                     "--progress", "off", "--threads", THREADS)
        data_bytes = graphs.bytes_of(graph_scale)
        return Case("PageRank", "graph", arguments, data_bytes, cap_of(data_bytes), phase="pagerank")

    def wanted(name):
        return bench.only_case.lower() in name.lower()

    makers = {
        "TeraSort by shuffle": lambda: terasort("shuffle"),
        "TeraSort by one-call": lambda: terasort("one-call"),
        "radix sort": lambda: micro("radix sort", "radix-sort", read_percent=66),
        "stencil": lambda: micro("stencil", "stencil", rounds=4, read_percent=50),
        "hash join": lambda: micro("hash join", "hash-join"),
        "PageRank": pagerank,
        "random updates": lambda: micro("random updates", "random-update", operations=bench.random_updates, block="4K",
                                        in_mean=False),
    }
    if not bench.long:
        del makers["TeraSort by one-call"]
    return [make() for name, make in makers.items() if wanted(name)]


def measured_s(case: Case, result: process.Result) -> float:
    """Of the measured part; of a run that was stopped, as much of it as there was."""
    if not result.ok:
        return result.seconds - result.timed_from_s if result.timed_from_s else 0
    if case.phase:
        return result.report["seconds"][case.phase]
    return result.report.get("total_s", result.seconds)


def details_of(result: process.Result, counters: dict | None = None) -> dict:
    return {"seconds": result.seconds, "processor_s": result.processor_s, "report": result.report,
            "peak_program_bytes": result.usage.peak_program_bytes, "peak_total_bytes": result.usage.peak_total_bytes,
            "disk_read_bytes": result.disk_read_bytes, "disk_write_bytes": result.disk_write_bytes,
            "timed_out": result.timed_out, "counters": counters}


# --- against swap and mapped files -----------------------------------------------------------------------------------

def peer_job(case: Case, limit_bytes: int | None) -> peers.Job:
    return peers.Job(case.program, case.arguments, case.data_bytes + 256 * MIB, limit_bytes)


def run_peers(bench: Bench, case: Case, ours_s: float) -> dict[str, tuple[process.Result, str]]:
    """By name, with a note on how they ran."""
    found = {}
    if not bench.programs.grouped:
        bench.skip(f"{case.name}: peers", cgroup.why_not())
        return found
    job = peer_job(case, bench.programs.limit(case.cap_bytes))
    if swap.why_not():
        bench.skip(f"{case.name}: swap", swap.why_not())
    else:
        probe_case = next(c for c in cases(bench, bench.scale * PROBE_SCALE) if c.name == case.name)
        limit_s = min(bench.peer_limit_s, max(PEER_LIMIT_S_MIN, SWAP_PATIENCE * ours_s))
        result, cluster = peers.on_swap(bench.programs, job, peer_job(probe_case, probe_case.cap_bytes), limit_s)
        found["swap"] = result, f"page-cluster {cluster}"
    limit_s = min(bench.peer_limit_s, max(PEER_LIMIT_S_MIN, MMAP_PATIENCE * ours_s))
    found["mmap"] = peers.on_mapped_files(bench.programs, job, limit_s), "arrays in mapped files"
    return found


def out_of_core(bench: Bench, targets: Targets) -> None:
    against_swap: dict[str, list[Row]] = {variant: [] for variant in BUILDS}
    for case in cases(bench, bench.scale):
        runs = {variant: bench.ours(case, variant) for variant in BUILDS}
        failed = [f"{variant}: {result.why_failed()}" for variant, (result, _) in runs.items() if not result.ok]
        for why in failed:
            bench.failure("out of core", case.name, why)
        runs = {variant: run for variant, run in runs.items() if run[0].ok}
        if not runs:
            continue
        found = run_peers(bench, case, min(result.seconds for result, _ in runs.values()))
        for variant, run in runs.items():
            for peer, (result, note) in found.items():
                row = row_against(bench, case, variant, run, peer, result, note, targets)
                if row and peer == "swap" and (case.in_mean or targets.all_in_mean):
                    against_swap[variant].append(row)
            if case.read_percent and targets.bandwidth:
                bandwidth_row(bench, case, variant, run[0], targets.bandwidth)
    for variant, rows in against_swap.items():
        bench.add_mean("out of core", f"geometric mean against swap, {variant}", rows, targets.mean)


def traffic(result: process.Result) -> str:
    return f"{result.disk_read_bytes / MIB:,.0f} + {result.disk_write_bytes / MIB:,.0f}"


def row_against(bench: Bench, case: Case, variant: str, run: tuple, peer: str, result: process.Result, note: str,
                targets: Targets) -> Row | None:
    name = f"{case.name}, {variant}: {peer}"
    ours_s, peer_s = measured_s(case, run[0]), measured_s(case, result)
    if case.program == "terasort":  # all of it is measured
        peer_s = result.seconds
    if not result.ok and not result.timed_out:
        bench.failure("out of core", name, result.why_failed())
    elif peer_s == 0:
        bench.skip(name, f"stopped after {result.seconds:.0f} s, before its measured part began")
    elif result.ok and result.report["checksum"] != run[0].report["checksum"]:
        bench.failure("out of core", name, f"different results: {result.report} and {run[0].report}")
    else:
        limit_bytes = bench.programs.limit(case.cap_bytes)
        about = (f"{note}; all in {limit_bytes >> 20} MiB, --memory {case.cap_bytes >> 20} MiB; "
                 f"MiB read + written: {traffic(run[0])}, peer {traffic(result)}")
        row = Row("out of core", name, ours_s, peer_s, ratio=peer_s / ours_s, at_most=False,
                  target=targets.mmap if peer == "mmap" else targets.swap, peer_is_lower_bound=result.timed_out, note=about,
                  details={"spillway": details_of(*run), "peer": details_of(result), "memory_bytes": case.cap_bytes,
                           "limit_bytes": limit_bytes})
        bench.add(row)
        return row
    return None


def bandwidth_row(bench: Bench, case: Case, variant: str, result: process.Result, target: float) -> None:
    name = f"{case.name}, {variant}: the disk's bandwidth"
    if fio.why_not():
        bench.skip(name, fio.why_not())
        return
    file = bench.programs.store / "sequential"
    device = fio.sequential_bytes_per_s(file, case.data_bytes, case.read_percent, 4 if bench.scale == 1 else 1)
    file.unlink()
    seconds = measured_s(case, result)
    rate = result.disk_bytes_between(result.timed_from_s, result.timed_from_s + seconds) / seconds
    bench.add(Row("out of core", name, rate / MIB, device / MIB, "MiB/s", rate / device, False, target,
                  note=f"{case.read_percent} % reads"))


# --- hints or faults -------------------------------------------------------------------------------------------------

def hints(bench: Bench) -> None:
    words = bench.programs.store / "words"
    words_bytes = GIB // bench.scale
    bench.programs.native("micro", "file-make", "--file", words, "--bytes", words_bytes)
    arguments = ("file-read", "--file", words, "--ops", 100_000 // bench.scale, "--rounds", 1, "--threads", THREADS)
    file_read = Case("random reads of a file", "micro", arguments, words_bytes, cap_of(words_bytes), block="4K")
    total = {"fault_misses": 0, "hint_misses": 0, "unit_fills": 0, "readahead_fills": 0}
    for case in [*cases(bench, bench.scale), *([file_read] if not bench.only_case else [])]:
        result, counters = bench.ours(case, "recompiled")
        if not result.ok or not counters:
            bench.failure("hints", case.name, result.why_failed() if not result.ok else "no statistics were written")
            continue
        for name in total:
            total[name] += counters[name]
        hints_row(bench, case.name, counters)
    words.unlink()
    hints_row(bench, "all of them", total)


def hints_row(bench: Bench, name: str, counters: dict) -> None:
    blocks = sum(counters[name] for name in ("fault_misses", "hint_misses", "unit_fills", "readahead_fills"))
    share = counters["fault_misses"] / max(1, blocks)
    bench.add(Row("hints", f"{name}: blocks that came in by a fault", counters["fault_misses"], blocks, "blocks",
                  share, target=FAULT_SHARE_TARGET, details=counters))


# --- UMap's own claim ------------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Claim:
    name: str
    program: str
    arguments: tuple
    file: pathlib.Path
    data_bytes: int
    phase: str  # "": total_s
    makes_its_file: bool = False
    least: float = UMAP_TARGET_LEAST


def umap_claim(bench: Bench) -> None:
    if not bench.programs.grouped:
        bench.skip("umap-claim", cgroup.why_not())
        return
    words, grown = bench.programs.store / "to-sort", bench.programs.store / "grown"
    graph_scale = graphs.scale_of(22, bench.scale)
    graph = graphs.file_of(bench.programs, graph_scale)
    claims = [
        Claim("sort", "micro", ("file-sort", "--file", words), words, GIB // bench.scale, ""),
        Claim("building a graph", "micro", ("file-graph", "--file", grown, "--bytes", 2 * GIB, "--ops", GRAPH_EDGES // bench.scale), grown,
              GRAPH_EDGES // bench.scale * GRAPH_EDGE_BYTES, "", makes_its_file=True, least=GRAPH_TARGET_LEAST),
        Claim("BFS", "graph", ("--graph", graph, "--load", "map", "--run", "bfs", "--verify", "no", "--progress", "off"),
              graph, graphs.bytes_of(graph_scale), "bfs"),
    ]
    rows: dict[str, list[Row]] = {variant: [] for variant in FAULT_BUILDS}
    for claim in claims:
        for threads in UMAP_THREADS:
            for variant, row in umap_rows(bench, claim, threads).items():
                if claim.least == UMAP_TARGET_LEAST:  # the mean is of what its paper has
                    rows[variant].append(row)
    words.unlink(missing_ok=True)
    grown.unlink(missing_ok=True)
    for variant in FAULT_BUILDS:
        bench.add_mean("UMap's claim", f"geometric mean against mmap, {variant}", rows[variant], UMAP_TARGET_MEAN)


def prepare(bench: Bench, claim: Claim) -> None:
    """The file as it was before any run, and nothing of it in the page cache."""
    if claim.makes_its_file:
        claim.file.unlink(missing_ok=True)
    elif claim.program == "micro":
        bench.programs.native("micro", "file-make", "--file", claim.file, "--bytes", claim.data_bytes)
    machine.settle(bench.programs.store)


def umap_rows(bench: Bench, claim: Claim, threads: int) -> dict[str, Row]:
    cap_bytes = cap_of(claim.data_bytes)
    limit_bytes = bench.programs.limit(cap_bytes)
    arguments = (*claim.arguments, "--threads", threads)
    prepare(bench, claim)
    peer = bench.programs.native(claim.program, *arguments, limit_bytes=limit_bytes, time_limit_s=bench.peer_limit_s)
    name = f"{claim.name}, {threads} thread{'s' if threads > 1 else ''}"
    if not peer.ok and not peer.timed_out:
        bench.failure("UMap's claim", f"{name}: mmap", peer.why_failed())
        return {}
    case = Case(claim.name, claim.program, arguments, claim.data_bytes, cap_bytes, phase=claim.phase)
    rows = {}
    for variant, build in FAULT_BUILDS.items():
        prepare(bench, claim)
        result, counters = bench.programs.spillway(cap_bytes, claim.program, *arguments, build=build, block=bench.block,
                                                   map_files=claim.file, limit_bytes=limit_bytes,
                                                   time_limit_s=RUN_LIMIT_S)
        if not result.ok:
            bench.failure("UMap's claim", f"{name}, {variant}", result.why_failed())
            continue
        ours_s, peer_s = measured_s(case, result), measured_s(case, peer)
        rows[variant] = Row("UMap's claim", f"{name}, {variant}: mmap", ours_s, peer_s, ratio=peer_s / ours_s,
                            at_most=False, target=claim.least, peer_is_lower_bound=peer.timed_out,
                            details={"spillway": details_of(result, counters), "peer": details_of(peer)})
        bench.add(rows[variant])
    return rows
