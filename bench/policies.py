"""Eviction policies and miss-ratio curves, on synthetic traces and on the project's own. `./dev bench policies`, or see --help.

  policies   miss ratios of all policies, in a simulated cache of six sizes: whether the default is the best one
  sets       page sets (SA-cache's Figure 6): whether frequencies with history miss no more than CLOCK does
  iops       random reads through the cache (SA-cache's Figure 3), ranked and in page sets, beside direct I/O with as many threads
  advise     what --curve on costs a program, and whether twice the memory brings what the curve says
  blocks     --block auto, beside fixed block sizes, on programs of different kinds, recompiled for either engine and unmodified
  shares     what fixed shares of memory for parts of the data would miss less than all of it competing does, in a simulated cache
  estimates  miss-ratio curves: how far the linear-time ones are off the exact one, and what an access costs

The project's own traces are those of its examples, recorded with --trace. Every figure is of the same traces on every machine but for
times. Figures go to policies.json.
"""
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

from harness import command, fio, machine, table
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
DEFAULT = "clock2q+"
POINTS_MAX = 1.0  # of the miss ratio, above the best policy
ERROR_POINTS_MAX = 2.0
# Of one thread: the order of its uses is the same each time. program, arguments, memory
OWN_TRACES = (
    ("terasort-one-call", "terasort", ("--records", 100_000, "--mode", "one-call", "--progress", "off", "--threads", 1)),
    ("terasort-shuffle", "terasort", ("--records", 100_000, "--mode", "shuffle", "--progress", "off", "--threads", 1)),
    ("graph", "graph", ("--scale", 14, "--sweeps", 3, "--verify", "no", "--progress", "off", "--threads", 1)),
    ("map-ordered", "map", ("--container", "ordered", "--nodes", 300_000, "--finds", 100_000)),
    ("map-hashed", "map", ("--container", "hashed", "--nodes", 300_000, "--finds", 200_000)),
    ("hash-join", "micro", ("hash-join", "--bytes", 16 * MIB, "--rounds", 1, "--warmups", 0)),
    ("sort-words", "micro", ("sort-words", "--bytes", 16 * MIB, "--rounds", 1, "--warmups", 0)),
)
RECORD_LIMIT_S = 600
# What `spillway advise` does, held against runs without it and with twice the memory. program, arguments, memory
ADVISED = (
    ("PageRank", "graph", ("--scale", 21, "--run", "pagerank", "--sweeps", 5, "--verify", "no", "--progress", "off", "--threads", 2), 256 * MIB),
    ("TeraSort, shuffle", "terasort", ("--records", 4_000_000, "--mode", "shuffle", "--progress", "off", "--threads", 2), 200 * MIB),
    ("std::map", "map", ("--nodes", 6_000_000, "--finds", 200_000, "--threads", 8), 96 * MIB),
)
ADVISE_COST_MAX = 1.10  # the paper on durable sections reports 6.8 % for its sampling
ADVISE_TURNS = 3
# Random reads: blocks of 4 KiB of the file, how long and how often each kind reads, by so many threads, with these policies.
IOPS_BLOCKS, IOPS_SECONDS, IOPS_TURNS = 1 << 20, 1, 8
IOPS_THREADS = (1, 2, 16, 64)
IOPS_POLICIES = (DEFAULT, "sa-nrlfu")
IOPS_MIN = 0.95
# And by one thread with so many in flight.
BATCH_IN_FLIGHT, BATCH_MEMORY, BATCH_SECONDS, BATCH_TURNS = 32, 64 * MIB, 3, 3
MIXED = "scan beside random updates"
# Programs whose best block size is held against --block auto. program, arguments, memory. The last one mixes patterns.
TUNED = (
    ("PageRank", "graph", ("--scale", 20, "--run", "pagerank", "--sweeps", 5, "--verify", "no", "--progress", "off", "--threads", 2), 96 * MIB),
    ("BFS", "graph", ("--scale", 20, "--run", "bfs", "--sweeps", 5, "--verify", "no", "--progress", "off", "--threads", 2), 96 * MIB),
    ("TeraSort, one-call", "terasort", ("--records", 3_000_000, "--mode", "one-call", "--progress", "off", "--threads", 2), 128 * MIB),
    ("TeraSort, shuffle", "terasort", ("--records", 3_000_000, "--mode", "shuffle", "--progress", "off", "--threads", 2), 128 * MIB),
    ("std::map", "map", ("--nodes", 3_000_000, "--finds", 100_000, "--threads", 8), 64 * MIB),
    ("hash join", "micro", ("hash-join", "--bytes", 256 * MIB, "--rounds", 1, "--warmups", 0), 128 * MIB),
    (MIXED, "micro", ("scan-and-update", "--bytes", 512 * MIB, "--ops", 20_000, "--rounds", 1, "--warmups", 0, "--threads", 2), 128 * MIB),
)
BLOCKS = ("4K", "16K", "64K", "256K")
BLOCK_BEHIND_MAX = 1.05
BLOCK_AHEAD_MIN = 1.3  # where patterns are mixed
BLOCK_TURNS = 3
BLOCK_LIMIT_S, BLOCK_PATIENCE = 120, 3  # a fixed size that takes so many times what auto does is not the best one


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    row: str = ""  # of section blocks, only programs in whose name this is
    found: list = dataclasses.field(default_factory=list)  # what policy_bench printed
    recorded: list[pathlib.Path] = dataclasses.field(default_factory=list)  # the project's own traces, in the workspace
    matrices: list[str] = dataclasses.field(default_factory=list)

    def markdown(self, about: dict) -> str:
        return super().markdown(about) + "".join("\n" + text + "\n" for text in self.matrices)

    def traces(self) -> list:
        """What policy_bench says of each trace; it runs once."""
        self.found = self.found or self.simulated()
        return self.found

    def simulated(self, *options: str) -> list:
        self.recorded = self.recorded or [file for file in (record(self, *own) for own in OWN_TRACES) if file]
        run = subprocess.run([self.programs.build / "bin" / "policy_bench", "--accesses", str(2_000_000 // self.scale), "--data",
                              str(40_000 // self.scale), *options, *self.recorded], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(run.stdout)


def record(bench: Bench, name: str, program: str, arguments: tuple) -> pathlib.Path | None:
    file = bench.programs.store / name
    result, _ = bench.programs.spillway(1024 * MIB, program, *arguments, options=("--levels", "shared", "--trace", file, "--threshold", 1,
                                                                              "--quota", 0), time_limit_s=RECORD_LIMIT_S)
    if not result.ok:
        bench.failure("traces", name, result.why_failed())
        return None
    bench.say(f"recorded {name}: {file.stat().st_size // 8:,} uses in {result.seconds:.0f} s")
    return file


def points(share: float) -> float:
    return 100 * share


def mean_ratios(trace: dict) -> dict[str, float]:
    """Of each policy, over the sizes, in points."""
    rows = trace["miss_ratios"]
    return {policy: points(statistics.mean(row["miss_ratio"][policy] for row in rows)) for policy in rows[0]["miss_ratio"]}


def policies(bench: Bench) -> None:
    by_trace = {trace["trace"]: mean_ratios(trace) for trace in bench.traces()}
    names = [name for name in next(iter(by_trace.values())) if not name.startswith("sa-")]
    means = {name: statistics.mean(ratios[name] for ratios in by_trace.values()) for name in names}
    best = min(means, key=means.get)
    bench.add(Row("policies", f"{DEFAULT}, the default: mean miss ratio over all traces", means[DEFAULT], means[best], "%",
                  ratio=means[DEFAULT] - means[best], target=POINTS_MAX, note=f"best: {best}; ratio is in points"))
    for trace, ratios in by_trace.items():
        least = min(names, key=lambda name: ratios[name])
        bench.add(Row("policies", f"{DEFAULT}, {trace}", ratios[DEFAULT], ratios[least], "%", ratio=ratios[DEFAULT] - ratios[least],
                      note=f"best: {least}"))
    every = list(next(iter(by_trace.values())))
    cells = [[trace, *(f"{ratios[name]:.1f}" for name in every)] for trace, ratios in by_trace.items()]
    cells.append(["mean", *(f"{statistics.mean(ratios[name] for ratios in by_trace.values()):.1f}" for name in every)])
    bench.matrices.append("Miss ratios in per cent, means over caches of 2, 5, 10, 20, 40 and 60 % of a trace's blocks:\n\n"
                          + table.table(["trace", *every], cells))


def sets(bench: Bench) -> None:
    for trace in bench.traces():
        if not trace["trace"].startswith("ycsb"):
            continue
        for row in trace["miss_ratios"]:
            ratios = {name: points(ratio) for name, ratio in row["miss_ratio"].items()}
            bench.add(Row("sets", f"{trace['trace']}, {points(row['size']):.0f} % of the blocks: sa-nrlfu, clock", ratios["sa-nrlfu"],
                          ratios["clock"], "%", ratio=ratios["sa-nrlfu"] / ratios["clock"], target=1,
                          note=f"sa-lfu {ratios['sa-lfu']:.1f}, sa-lru {ratios['sa-lru']:.1f}"))


def shares(bench: Bench) -> None:
    for trace in bench.simulated("--shares", DEFAULT):
        for row in trace["shares"]:
            shared, best = points(row["shared"]), points(row["best_shares"])
            bench.add(Row("shares", f"{trace['trace']}, {points(row['size']):.0f} % of the blocks: {DEFAULT}, best fixed shares of eight parts",
                          shared, best, "%", ratio=shared / best if best else 1))


def estimates(bench: Bench) -> None:
    for name in ("timescale reuse", "sample"):
        errors = {trace["trace"]: points(trace["estimates"][name]["error"]) for trace in bench.traces()}
        cost = statistics.median(trace["estimates"][name]["ns_per_access"] for trace in bench.traces())
        exact = statistics.median(trace["estimates"]["exact"]["ns_per_access"] for trace in bench.traces())
        worst = max(errors, key=errors.get)
        bench.add(Row("estimates", f"{name}: mean error over all traces, in points", ratio=statistics.mean(errors.values()),
                      target=ERROR_POINTS_MAX, note=f"worst: {worst}, {errors[worst]:.1f}"))
        bench.add(Row("estimates", f"{name}: an access, exact stack distance", cost, exact, "ns", ratio=cost / exact))


def one_advised(bench: Bench, name: str, program: str, arguments: tuple, memory_bytes: int, engine: str, build: str) -> None:
    def run(memory: int, curve: str) -> tuple[float, dict]:
        machine.settle(bench.programs.store)
        result, counters = bench.programs.spillway(memory, program, *arguments, build=build, options=("--curve", curve, "--quota", 0),
                                                   time_limit_s=RECORD_LIMIT_S)
        if not result.ok:
            raise RuntimeError(f"{name}, {engine}: {result.why_failed()}")
        report = json.loads((bench.programs.store / "stats.json").read_text())
        return result.seconds, report | {"reads": counters["fills"] + counters["unit_fills"] + counters["readahead_fills"]}

    plain, advised = [], []
    for _ in range(ADVISE_TURNS):
        plain.append(run(memory_bytes, "off")[0])
        seconds, report = run(memory_bytes, "on")
        advised.append(seconds)
    ratio = statistics.median(a / b for a, b in zip(advised, plain, strict=True))
    bench.add(Row("advise", f"{name}, {engine}: time with --curve on", statistics.median(advised), statistics.median(plain), ratio=ratio,
                  target=ADVISE_COST_MAX))
    predicted = [point["reads"] for point in report["curve"] if point["memory_bytes"] <= 2 * memory_bytes][-1]
    measured = run(2 * memory_bytes, "off")[1]["reads"]
    bench.add(Row("advise", f"{name}, {engine}: blocks read with twice the memory, estimated and measured", predicted, measured, "blocks",
                  ratio=predicted / max(1, measured), note=f"with this memory {report['reads']:,}"))


def advise(bench: Bench) -> None:
    for name, program, arguments, memory_bytes in ADVISED:
        for engine, build in (("mapped", "mapped"), ("translated", "spillway")):
            one_advised(bench, name, program, arguments, max(memory_bytes // bench.scale, 16 * MIB), engine, build)


def batches(bench: Bench, file: pathlib.Path) -> None:
    """One thread that asks for many blocks at a time (spw_batch), beside fio that has as many reads under way."""
    rates = {policy: [] for policy in ("fio", *IOPS_POLICIES)}
    for _ in range(BATCH_TURNS):
        rates["fio"].append(fio.random_reads(file, 4096, 1, BATCH_SECONDS, BATCH_IN_FLIGHT).reads_per_s)
        for policy in IOPS_POLICIES:
            run = subprocess.run([bench.programs.spillway_command, "run", "--memory", str(BATCH_MEMORY), "--store", bench.programs.store,
                                  "--policy", policy, "--", bench.programs.build / "bin" / "batch_bench", file, str(BATCH_SECONDS),
                                  str(BATCH_IN_FLIGHT)], stdout=subprocess.PIPE, text=True, check=True)
            rates[policy].append(json.loads(run.stdout)["reads_per_s"])
    for policy in IOPS_POLICIES:
        bench.add(Row("iops", f"{policy}, one thread, a batch of {BATCH_IN_FLIGHT}: reads a second, fio's with as many under way",
                      statistics.median(rates[policy]), statistics.median(rates["fio"]), "reads/s",
                      ratio=statistics.median(a / b for a, b in zip(rates[policy], rates["fio"], strict=True)), at_most=False))


def iops(bench: Bench) -> None:
    """The disk drifts from one second to the next: ratios of neighbouring turns, and their median."""
    file, blocks = bench.programs.store / "iops", IOPS_BLOCKS // bench.scale
    with file.open("wb") as out:
        for _ in range(blocks // 256):
            out.write(os.urandom(MIB))
        os.fsync(out.fileno())
    machine.settle(bench.programs.store)
    run = subprocess.run([bench.programs.build / "bin" / "iops_bench", file, str(blocks), str(IOPS_SECONDS), str(IOPS_TURNS),
                          *map(str, IOPS_THREADS), "--", *IOPS_POLICIES], stdout=subprocess.PIPE, text=True, check=True)
    batches(bench, file)
    file.unlink()
    for found in json.loads(run.stdout):
        rates = found["reads_per_s"]
        for policy in IOPS_POLICIES:
            ratios = {peer: statistics.median(ours / theirs for ours, theirs in zip(rates[policy], rates[peer], strict=True))
                      for peer in ("direct", "direct, spread")}
            bench.add(Row("iops", f"{policy}, {found['threads']} threads: reads a second, direct I/O into as much memory",
                          statistics.median(rates[policy]), statistics.median(rates["direct, spread"]), "reads/s",
                          ratio=ratios["direct, spread"], target=IOPS_MIN, at_most=False,
                          note=f"{ratios['direct']:.2f} of direct I/O into one buffer a thread"))


def one_tuned(bench: Bench, name: str, program: str, arguments: tuple, memory_bytes: int, engine: str, build: str) -> None:
    """Ratios of one turn, and their median: the disk drifts."""
    turns = []
    for _ in range(BLOCK_TURNS):
        machine.settle(bench.programs.store)
        seconds = {}
        for block in ("auto", *BLOCKS):
            limit_s = BLOCK_PATIENCE * seconds["auto"] if seconds else BLOCK_LIMIT_S
            result, _ = bench.programs.spillway(memory_bytes, program, *arguments, block=block, build=build, options=("--quota", 0),
                                                time_limit_s=limit_s)
            seconds[block] = result.seconds if result.ok else math.inf
            if seconds["auto"] == math.inf:
                bench.failure("blocks", f"{name}, {engine}", result.why_failed())
                return
        turns.append(seconds)
    medians = {block: statistics.median(turn[block] for turn in turns) for block in ("auto", *BLOCKS)}
    best = min(BLOCKS, key=medians.get)
    bench.add(Row("blocks", f"{name}, {engine}: auto, the best of {', '.join(BLOCKS)}", medians["auto"], medians[best],
                  ratio=statistics.median(turn["auto"] / turn[best] for turn in turns),
                  target=round(1 / BLOCK_AHEAD_MIN, 2) if name == MIXED else BLOCK_BEHIND_MAX,
                  note=", ".join(f"{block}: {medians[block]:.1f} s" if medians[block] < math.inf else f"{block}: stopped" for block in BLOCKS)))


def blocks(bench: Bench) -> None:
    for name, program, arguments, memory_bytes in TUNED:
        if bench.row not in name:
            continue
        for engine, build in (("mapped", "mapped"), ("translated", "spillway"), ("unmodified", "native")):
            one_tuned(bench, name, program, arguments, memory_bytes, engine, build)


SECTIONS = {"policies": policies, "sets": sets, "iops": iops, "advise": advise, "blocks": blocks, "shares": shares, "estimates": estimates}


def main(arguments: list[str]) -> int:
    parser = command.parser("policies", __doc__, SECTIONS, peer_limit_s=60)
    command.add_scale(parser)
    parser.add_argument("--row", default="", metavar="TEXT", help="of section blocks only programs whose name has this in it")
    options = parser.parse_args(arguments)
    if not any(options.row in program[0] for program in TUNED):
        parser.error(f"--row {options.row}: no program of section blocks is called so: {'; '.join(program[0] for program in TUNED)}")

    def make_bench(programs):
        return Bench("policies", programs=programs, scale=options.scale, row=options.row)

    return command.run(options, {"scale": f"1/{options.scale}"}, 2 << 30, make_bench, SECTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
