"""The section of bench/tricache.py that takes the translated engine apart (the paper's Tables 1 and 2).

What each level is worth: programs without it, against the same with all levels. What an access costs that a level answers: 8-byte
reads of 8 MiB, all of them hits there, less what they cost natively. How many accesses pass each level: counted by programs
compiled with -fspillway-count. A run that takes too long is stopped: "more than".
"""
import dataclasses

from harness import graphs, machine, process
from harness.report import Row

MIB = 1 << 20
THREADS = 2
PATIENCE = 40  # a run with less is stopped after so many times the time with all
RUN_LIMIT_S = 300
ABLATIONS = {"libaio": ("--io", "libaio"), "no direct SATC": ("--levels", "private"), "no private SATC": ("--levels", "direct"),
             "shared cache only": ("--levels", "shared"), "delegation only": ("--levels", "owner")}
HIT_LEVELS = {"resident view": "view", "direct SATC": "all", "private SATC": "private", "shared cache": "shared",
              "owner, by delegation": "owner"}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: str
    arguments: tuple
    cap_bytes: int
    phase: str  # of its report

    def run(self, bench, build: str, options: tuple, limit_s: float) -> tuple[process.Result, dict]:
        machine.settle(bench.programs.store)
        return bench.programs.spillway(self.cap_bytes, self.program, *self.arguments, build=build, block="16K", options=options,
                                       limit_bytes=bench.programs.limit(self.cap_bytes), time_limit_s=limit_s)

    def seconds(self, result: process.Result) -> float:
        return result.report["seconds"][self.phase] if result.ok else result.seconds - (result.timed_from_s or 0)


def cases(bench) -> list[Case]:
    graph_scale = graphs.scale_of(20, bench.scale)
    pagerank = ("--graph", graphs.file_of(bench.programs, graph_scale), "--run", "pagerank", "--sweeps", 2, "--verify", "no",
                "--progress", "off", "--threads", THREADS)
    records = 2_000_000 // bench.scale

    def terasort(mode):
        arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
        return Case(f"TeraSort, {mode}", "terasort", arguments, bench.cap(2 * 100 * records // 4), "sort")

    return [Case("PageRank", "graph", pagerank, bench.cap(graphs.bytes_of(graph_scale) // 4), "pagerank"), terasort("shuffle"),
            terasort("one-call")]


def ablations(bench, case: Case) -> None:
    whole, _ = case.run(bench, "spillway", (), RUN_LIMIT_S)
    if not whole.ok:
        return bench.failure("levels", case.name, whole.why_failed())
    for name, options in ABLATIONS.items():
        less, _ = case.run(bench, "spillway", options, min(RUN_LIMIT_S, PATIENCE * whole.seconds))
        if not less.ok and not less.timed_out:
            bench.failure("levels", f"{case.name}, {name}", less.why_failed())
        elif less.ok and less.report["checksum"] != whole.report["checksum"]:
            bench.failure("levels", f"{case.name}, {name}", "another result than with all levels")
        else:
            ours, peer = case.seconds(whole), case.seconds(less)
            bench.add(Row("levels", f"{case.name}, all levels: {name}", ours, peer, ratio=peer / ours, at_most=False,
                          peer_is_lower_bound=less.timed_out))


def miss_rates(bench, case: Case) -> None:
    result, counters = case.run(bench, "counted", (), RUN_LIMIT_S)
    if not result.ok or not counters:
        return bench.failure("levels", f"{case.name}, counted", result.why_failed())
    for level in ("direct", "private", "shared"):
        misses, all_of_them = counters[f"{level}_misses"], counters[f"{level}_hits"] + counters[f"{level}_misses"]
        bench.add(Row("levels", f"{case.name}: misses of the {level} level", misses, all_of_them, "accesses",
                      misses / max(1, all_of_them)))


def hit_costs(bench) -> None:
    megahertz = float(machine.first_match("/proc/cpuinfo", "cpu MHz"))
    operations = 40_000_000 // bench.scale

    def nanoseconds(run, ops):
        result = run("micro", "random-read", "--bytes", 8 * MIB, "--ops", ops, "--rounds", 3, "--threads", 1)
        if not result.ok:
            raise RuntimeError(result.why_failed())
        return result.report["processor_s"] / result.report["rounds"] / ops * 1e9

    native = nanoseconds(lambda *arguments: bench.programs.native(*arguments, time_limit_s=RUN_LIMIT_S), operations)
    for level, setting in HIT_LEVELS.items():
        took = nanoseconds(lambda *arguments, setting=setting: bench.programs.spillway(
            256 * MIB, *arguments, options=("--levels", setting), time_limit_s=RUN_LIMIT_S)[0], operations // 8)
        bench.add(Row("levels", f"a read that hits, {level}: native", took, native, "ns", took / native,
                      note=f"{(took - native) * megahertz / 1e3:.0f} cycles more"))


def levels(bench) -> None:
    hit_costs(bench)
    for case in cases(bench):
        ablations(bench, case)
        miss_rates(bench, case)
