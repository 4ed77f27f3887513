"""Durable sections: how often lines are written back by each technique, and what that costs. `./dev bench durable`, or see --help.

  ratios   the paper's Table III: lines flushed of all stores, for its four micro-benchmarks and six techniques; and for three larger programs
  time     all of them on tmpfs, lines flushed as to persistent memory
  clflush  the same by the instruction that the paper's processor had, which takes lines out of the cache
  block    the same on an ordinary file, whose blocks are written
  mdb      LMDB from Debian's source package, recompiled: the paper's case study, its rows of Tables II and III
  crashes  simulated power failures at random moments: none may lose or tear a section

The paper is "Adaptive Software Caching for Efficient NVRAM Data Persistence"; its words for the techniques are used: ER eager, LA lazy, AT Atlas's
table of eight lines, SC the adaptive cache, SC-offline the same with its size known from a profile of the whole run, BEST no flushes at
all. Runs are of bench/durable/durable_bench, those of mdb of bench/durable/lmdb/mdb_bench, each with a new region. A time is the median of turns, in
which techniques take their turn one after the other; a ratio of times is the median of the turns' own ratios.
"""
import collections.abc
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

from harness import command, lmdb, sources
from harness.programs import Programs
from harness.report import Report, Row

MEMORY = pathlib.Path("/dev/shm")
NAMES = {"ER": "eager", "LA": "lazy", "AT": "table", "SC": "adaptive", "BEST": "none"}  # SC-offline is fixed:LINES
OFFLINE = "SC-offline"
# Table III. The paper says that SC and SC-offline are almost the same there; its runs end before a burst of 64 Mi stores does.
PAPER = {"persistent-array": {"ER": 1, "LA": 0.00003, "AT": 0.0625, OFFLINE: 0.00003},
         "queue": {"ER": 1, "LA": 0.625, "AT": 0.625, OFFLINE: 0.625},
         "linked-list": {"ER": 1, "LA": 0.60001, "AT": 0.60001, OFFLINE: 0.60001},
         "hash": {"ER": 1, "LA": 0.50092, "AT": 0.62128, OFFLINE: 0.59531}}
PAPER_STORES = {"persistent-array": 1_000_001, "queue": 400_006, "linked-list": 49_999, "hash": 83_061}
KERNELS = ("matrix", "molecules", "tree")
WORKLOADS = (*PAPER, *KERNELS)
EXACT, CLOSE = 1e-5, 0.01  # off the paper's ratio, as a share of it
MICRO_BURST, BURST, BLOCK_BURST = 20_000, 1 << 18, 20_000
# --size and --rounds; the sizes of `ratios` are the workloads' own. So that a run takes some tenths of a second.
TIMED = {"persistent-array": (0, 20), "queue": (300_000, 1), "linked-list": (0, 40), "hash": (0, 20), "matrix": (0, 6), "molecules": (0, 100),
         "tree": (0, 1)}
BLOCK = {"persistent-array": (0, 1), "queue": (400, 1), "linked-list": (400, 1), "hash": (400, 1), "matrix": (64, 2), "molecules": (64, 2),
         "tree": (400, 1)}
MDB = "mdb"
MDB_PAIRS = 1_000_000
MDB_PAPER = {"LA": 0.05163, "AT": 0.30140, "SC": 0.11289}
TURNS, BLOCK_TURNS, MDB_TURNS = 7, 5, 5
SC_MIN, ONLINE_MAX = 1.0, 1.10
DIFFERS = 0.01  # from this share on, flush ratios are said to differ
CRASHES = 1_000_000
LIMIT_S = 300


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    mdb: pathlib.Path | None = None  # the program, when it was made

    def place(self, domain: str) -> pathlib.Path:
        return MEMORY if domain == "pmem" else self.programs.store


@dataclasses.dataclass(frozen=True)
class Setting:
    """Of all runs of one workload that are compared."""
    workload: str
    domain: str
    burst: int
    size: int = 0
    rounds: int = 1
    flush: str = "auto"  # the instruction, by --durable-flush


def run(bench: Bench, setting: Setting, technique: str, *more: str) -> dict:
    """What durable_bench prints of one run."""
    with tempfile.TemporaryDirectory(dir=bench.place(setting.domain), prefix="spillway-durable.") as directory:
        program = bench.mdb if setting.workload == MDB else bench.programs.build / "bin" / "durable_bench"
        words = [program, "--path", f"{directory}/region", "--workload", setting.workload, "--technique", technique,
                 "--domain", setting.domain, "--burst", str(setting.burst), "--size", str(setting.size), "--rounds", str(setting.rounds), *more]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                              env=os.environ | {"SPILLWAY_DURABLE_FLUSH": setting.flush})
    if done.returncode != 0:
        raise RuntimeError(f"{setting.workload}, {technique}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def techniques(bench: Bench, setting: Setting) -> dict[str, str]:
    """All six, by the paper's name; a run is spent on the profile."""
    profiled = run(bench, setting, "lazy", "--profile", "yes")["profiled_lines"]
    return {"ER": NAMES["ER"], "LA": NAMES["LA"], "AT": NAMES["AT"], "SC": NAMES["SC"], OFFLINE: f"fixed:{profiled}", "BEST": NAMES["BEST"]}


def or_failure(work: collections.abc.Callable) -> collections.abc.Callable:
    """What goes wrong with one workload of a section becomes a row, and others go on."""
    def guarded(bench: Bench, setting: Setting, section: str, *more) -> None:
        try:
            work(bench, setting, section, *more)
        except (RuntimeError, subprocess.TimeoutExpired) as why:
            bench.failure(section, setting.workload, str(why))
    return guarded


@or_failure
def ratios_beside_the_paper(bench: Bench, setting: Setting, section: str) -> None:
    runs = {name: run(bench, setting, technique) for name, technique in techniques(bench, setting).items()}
    paper = PAPER[setting.workload]
    for name, theirs in paper.items():
        part = runs[name]["papers_part"]
        ours = round(part["flush_ratio"], 5)
        lines = f", {runs[name]['lines']} lines" if name == OFFLINE else ""
        bench.add(Row(section, f"{setting.workload}, {name}: off the paper's ratio by", ratio=abs(ours - theirs) / theirs,
                      target=CLOSE if setting.workload == "hash" else EXACT, note=f"{ours:.5f}; paper: {theirs:.5f}{lines}", details=runs[name]))
    part = runs["SC"]["papers_part"]
    stores = f"{part['stores']:,} stores; paper: {PAPER_STORES[setting.workload]:,}"
    bench.add(Row(section, f"{setting.workload}, SC with a burst of {setting.burst:,} stores beside AT", ratio=_better(runs, "AT", "SC"), at_most=False,
                  note=f"{part['flush_ratio']:.5f}, {runs['SC']['lines']} lines; {stores}", details=runs["SC"]))
    if setting.workload == "queue":
        bench.add(Row(section, "queue, all threads: AT beside SC", ratio=_better(runs, "AT", "SC"), at_most=False,
                      note=f"{runs['SC']['flush_ratio']:.5f} of {runs['SC']['stores']:,} stores; the rows above are of the thread that enqueues"))


def _better(runs: dict, one: str, other: str) -> float:
    return runs[one]["flush_ratio"] / runs[other]["flush_ratio"]


@or_failure
def ratios_of_kernel(bench: Bench, setting: Setting, section: str) -> None:
    runs = {name: run(bench, setting, technique) for name, technique in techniques(bench, setting).items()}
    shown = ", ".join(f"{name} {runs[name]['flush_ratio']:.5f}" for name in ("LA", "AT", "SC", OFFLINE))
    stores = runs["SC"]["stores"] / runs["SC"]["sections"]
    bench.add(Row(section, f"{setting.workload}, AT's flushes beside SC's", ratio=_better(runs, "AT", "SC"), at_most=False, target=SC_MIN,
                  note=f"{shown}; {runs['SC']['lines']} and {runs[OFFLINE]['lines']} lines; {stores:,.0f} stores a section", details=runs))


def ratios(bench: Bench) -> None:
    for workload in PAPER:
        ratios_beside_the_paper(bench, Setting(workload, "pmem", MICRO_BURST), "ratios")
    for workload in KERNELS:
        ratios_of_kernel(bench, Setting(workload, "pmem", BURST, *TIMED[workload]), "ratios")


def measure(bench: Bench, setting: Setting, turns: int) -> dict[str, list[dict]]:
    """What was printed in each turn, by the technique."""
    how = techniques(bench, setting)
    runs = {name: [] for name in how}
    for turn in range(turns):
        names = list(how)
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            runs[name].append(run(bench, setting, how[name]))
    return runs


def add_times(bench: Bench, setting: Setting, section: str, runs: dict[str, list[dict]], has_targets: bool) -> None:
    seconds = {name: [each["seconds"] for each in of] for name, of in runs.items()}
    median = {name: statistics.median(of) for name, of in seconds.items()}
    flushed = {name: of[0]["flush_ratio"] for name, of in runs.items()}

    def row(what: str, ours: str, peer: str, **more) -> None:
        turns_own = [theirs / own for own, theirs in zip(seconds[ours], seconds[peer])]
        if more.get("at_most"):
            turns_own = [1 / each for each in turns_own]
        bench.add(Row(section, f"{setting.workload}: {what}", median[ours], median[peer], ratio=statistics.median(turns_own),
                      details={"seconds": seconds, "flush_ratios": flushed}, **more))

    differs = abs(flushed["AT"] - flushed["SC"]) > DIFFERS * flushed["SC"]
    row("SC beside AT", "SC", "AT", at_most=False, target=SC_MIN if has_targets and differs else 0,
        note=f"flushes {flushed['SC']:.5f} and {flushed['AT']:.5f} of all stores")
    row(f"SC beside {OFFLINE}", "SC", OFFLINE, at_most=True, target=ONLINE_MAX if has_targets else 0,
        note=f"{runs['SC'][0]['lines']} and {runs[OFFLINE][0]['lines']} lines")
    row(f"{OFFLINE} beside AT", OFFLINE, "AT", at_most=False, note=f"flushes {flushed[OFFLINE]:.5f}")
    row("SC beside ER", "SC", "ER", at_most=False, note=f"LA {median['LA']:.3f} s")
    row("SC beside BEST", "SC", "BEST", at_most=True, note="which is not durable")


@or_failure
def compare_times(bench: Bench, setting: Setting, section: str, turns: int, has_targets: bool) -> None:
    add_times(bench, setting, section, measure(bench, setting, turns), has_targets)


def times_by(bench: Bench, section: str, flush: str) -> None:
    for workload, (size, rounds) in TIMED.items():
        setting = Setting(workload, "pmem", max(BURST // bench.scale, 1000), size // bench.scale, max(rounds // bench.scale, 1), flush)
        compare_times(bench, setting, section, TURNS if bench.scale == 1 else 1, True)


def time(bench: Bench) -> None:
    times_by(bench, "time", "auto")


def clflush(bench: Bench) -> None:
    times_by(bench, "clflush", "clflush")


def block(bench: Bench) -> None:
    for workload, (size, rounds) in BLOCK.items():
        compare_times(bench, Setting(workload, "block", BLOCK_BURST, size, rounds), "block", BLOCK_TURNS if bench.scale == 1 else 1, False)


@or_failure
def compare_mdb(bench: Bench, setting: Setting, section: str, turns: int) -> None:
    runs = measure(bench, setting, turns)
    first = {name: of[0] for name, of in runs.items()}
    for name, theirs in MDB_PAPER.items():
        one = first[name]
        bench.add(Row(section, f"mdb, {name}: flushes of all stores beside the paper's", ratio=one["flush_ratio"] / theirs,
                      note=f"{one['flush_ratio']:.5f}; paper: {theirs:.5f}. Copying a page of 64 lines is one store here", details=one))
    stores, count = first["SC"]["stores"], first["SC"]["sections"]
    bench.add(Row(section, "mdb, AT's flushes beside SC's", ratio=_better(first, "AT", "SC"), at_most=False, target=SC_MIN,
                  note=f"paper: 2.67; {first['SC']['lines']} and {first[OFFLINE]['lines']} lines, paper: 20; {count:,} sections of {stores / count:,.0f} stores, "
                  "paper: 100,516 of 652", details=first))
    add_times(bench, setting, section, runs, True)


def mdb(bench: Bench) -> None:
    try:
        bench.mdb = lmdb.benchmark(bench.programs.build)
    except sources.Unavailable as why:
        bench.skip(MDB, str(why))
        return
    except sources.BuildFailed as why:
        bench.failure(MDB, "recompiling LMDB", str(why))
        return
    setting = Setting(MDB, "pmem", max(BURST // bench.scale, 1000), MDB_PAIRS // bench.scale)
    compare_mdb(bench, setting, MDB, MDB_TURNS if bench.scale == 1 else 1)


def crashes(bench: Bench) -> None:
    program = bench.programs.build / "tests" / "crash_test"
    if not program.exists():
        bench.skip("crashes", f"{program} was not built")
        return
    wanted = CRASHES // bench.scale // 8 * 8  # as many for each of the ways
    done = subprocess.run([program, "--gtest_filter=*random_moments*"], env=os.environ | {"SPW_CRASHES": str(wanted)}, capture_output=True, text=True,
                          check=False)
    ways = re.findall(r"^(\w+): (\d+) crashes, (\d+) sections undone", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not ways:
        bench.failure("crashes", "simulated power failures", (done.stdout + done.stderr)[-500:])
        return
    count, undone = sum(int(way[1]) for way in ways), sum(int(way[2]) for way in ways)
    bench.add(Row("crashes", f"simulated power failures of {wanted:,} that lost and tore nothing", ratio=count / wanted, at_most=False, target=1,
                  note=f"0 sections lost or torn in {count:,} crashes, {len(ways)} techniques and domains; {undone:,} unfinished ones undone"))


SECTIONS = {"ratios": ratios, "time": time, "clflush": clflush, "block": block, "mdb": mdb, "crashes": crashes}


def main(arguments: list[str]) -> int:
    made = command.parser("durable", __doc__, SECTIONS, None)
    command.add_scale(made)
    options = made.parse_args(arguments)
    if not MEMORY.is_dir():
        sys.exit(f"durable: there is no {MEMORY}, the tmpfs that stands for persistent memory")
    about = {"scale": f"1/{options.scale}", "burst": f"{MICRO_BURST:,} stores of the paper's programs for their ratios, {BLOCK_BURST:,} with blocks, "
             f"{BURST:,} otherwise", "times": f"median of {TURNS} turns, {BLOCK_TURNS} with blocks, {MDB_TURNS} of mdb"}
    return command.run(options, about, 1 << 30, lambda programs: Bench("durable", programs=programs, scale=options.scale), SECTIONS)
