"""What the mapped engine has to reach, measured in one run. `./dev bench mapped`, or see --help.

Six sections:

  in-memory    programs whose data fits: recompiled, and unmodified under `spillway run`, against native
  fills        random 4 KiB reads of a mapped file, a tenth of it in memory, against fio and the kernel's mmap
  out-of-core  programs on four times their memory, against swap and against arrays in mapped files
  streams      a sum of an array again and again, against the device's bandwidth and the kernel's mmap
  hints        the share of blocks that came in by a page fault although the program was recompiled
  umap-claim   sorting a mapped file, building a graph's lists in one (Metall's use), and searching one by 1 to 32 threads, against the kernel's mmap

"recompiled" is code of -fspillway-engine=mapped, "unmodified" the native program itself. The rules are those of
first_light.py: both sides by turns, in control groups with the same limit, the same threads and data; results are compared;
a peer that takes too long is stopped and counts as "more than". Disk sections run once unless --repetitions says otherwise.
"""
import argparse

import beyond_memory
import random_fills
import streams
from harness import command, graphs, kernels
from harness.report import Report, Row

MIB, GIB = 1 << 20, 1 << 30
THREADS = 2
RECORD_BYTES = 100
RUN_LIMIT_S = 300  # of any run but a peer's: something hangs
BUILDS = beyond_memory.BUILDS
FAULT_BUILDS = beyond_memory.FAULT_BUILDS
MEAN_TARGETS = {"recompiled": 1.05, "unmodified": 1.02}
WORST_TARGETS = {"recompiled": 1.20, "unmodified": 0}


# --- in memory -------------------------------------------------------------------------------------------------------

def in_memory_cases(scale: int) -> list[kernels.Case]:
    def micro(name, kernel, data_bytes, operations=0, rounds=3):
        arguments = (kernel, "--bytes", data_bytes // scale, "--rounds", rounds, "--threads", THREADS)
        if operations:
            arguments += ("--ops", operations // scale)
        return kernels.Case(name, "micro", arguments, data_bytes // scale)

    def terasort(mode):
        records = 4_000_000 // scale
        arguments = ("--records", records, "--mode", mode, "--progress", "off", "--threads", THREADS)
        return kernels.Case(f"TeraSort by {mode}", "terasort", arguments, 2 * RECORD_BYTES * records, phases=("sort",))

    graph_scale = graphs.scale_of(20, scale)
    graph = ("--scale", graph_scale, "--sweeps", 10, "--verify", "no", "--progress", "off", "--threads", THREADS)
    return [
        micro("sequential sum", "sum", GIB, rounds=9),
        micro("random reads", "random-read", 512 * MIB, 20_000_000),
        micro("random updates", "random-update", 512 * MIB, 20_000_000),
        micro("pointer chase", "chase", 256 * MIB, 4_000_000),
        micro("stencil", "stencil", 512 * MIB, rounds=9),
        micro("hash join", "hash-join", 512 * MIB),
        micro("std::sort of 8-byte words", "sort-words", 64 * MIB, rounds=2),
        terasort("one-call"),
        terasort("shuffle"),
        kernels.Case("", "graph", graph, graphs.bytes_while_built(graph_scale),
                     phases=("pagerank", "bfs", "components")),
    ]


def run_in_memory(bench: Report, build: str, case: kernels.Case):
    return bench.programs.spillway(2 * case.data_bytes + 256 * MIB, case.program, *case.arguments, build=build,
                                   time_limit_s=RUN_LIMIT_S)[0]


def in_memory(bench: Report) -> None:
    variants = {"native": lambda case: bench.programs.native(case.program, *case.arguments, time_limit_s=RUN_LIMIT_S)}
    for variant, build in BUILDS.items():
        variants[variant] = lambda case, build=build: run_in_memory(bench, build, case)
    rows: dict[str, list[Row]] = {variant: [] for variant in BUILDS}
    processor_rows: dict[str, list[Row]] = {variant: [] for variant in BUILDS}
    for case in in_memory_cases(bench.scale):
        try:
            times = kernels.compare(case, variants, bench.repetitions or 5)
        except kernels.Failed as failed:
            bench.failure("in memory", case.name or case.program, str(failed))
            continue
        for phase in case.phases or ("",):
            native = times["native", phase]
            for variant in BUILDS:
                ours = times[variant, phase]
                processor = ours.processor_ratio(native)
                name = f"{case.name or phase}, {variant}"
                row = Row("in memory", name, ours.wall, native.wall, ratio=ours.wall_ratio(native),
                          target=WORST_TARGETS[variant], note=f"processor {processor:.2f}",
                          details={"native": vars(native), "spillway": vars(ours), "processor_ratio": processor})
                bench.add(row)
                rows[variant].append(row)
                processor_rows[variant].append(Row("", "", ratio=processor))
    for variant in BUILDS:
        bench.add_mean("in memory", f"geometric mean, {variant}", rows[variant], MEAN_TARGETS[variant])
        bench.add_mean("in memory", f"geometric mean of processor time, {variant}", processor_rows[variant],
                       MEAN_TARGETS[variant])


# --- random fills ----------------------------------------------------------------------------------------------------

def fill_targets(_: str, threads: int) -> random_fills.Targets:
    """One thread waits for the device and then for us, one after the other: fio's rate is a fair aim from two on."""
    return random_fills.Targets(fio=0.9 if threads > 1 else 0, fio_processor=2.0, mmap=1.0,
                                mmap_processor=1.0 if threads == 16 else 0)


FILLS = random_fills.Plan(FAULT_BUILDS, {1: 150_000, 2: 250_000, 16: 600_000, 64: 600_000}, fill_targets,
                          many_threads_target=1.0)
OUT_OF_CORE = beyond_memory.Targets(mean=4.0, swap=1.0, mmap=0.95, bandwidth=0.7)
STREAMS = streams.Targets(bandwidth=0.95)


# --- all of it -------------------------------------------------------------------------------------------------------

SECTIONS = {"in-memory": in_memory, "fills": lambda bench: random_fills.fills(bench, FILLS),
            "out-of-core": lambda bench: beyond_memory.out_of_core(bench, OUT_OF_CORE),
            "streams": lambda bench: streams.streams(bench, tuple(BUILDS), STREAMS),
            "hints": beyond_memory.hints, "umap-claim": beyond_memory.umap_claim}


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = command.parser("mapped", __doc__, SECTIONS, peer_limit_s=120)
    command.add_scale(parser)
    parser.add_argument("--repetitions", type=int, default=0, metavar="N", help="[5 in memory, 1 with the disk]")
    parser.add_argument("--block", default=beyond_memory.AUTO,
                        help=f"block size of out-of-core, streams, hints and umap-claim [{beyond_memory.AUTO}]")
    parser.add_argument("--long", action="store_true", help="out-of-core: TeraSort by one call, too")
    parser.add_argument("--case", metavar="TEXT", default="", help="out-of-core and hints: only cases with this in their name")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)

    def make_bench(programs):
        return beyond_memory.Bench("mapped", programs=programs, scale=options.scale, repetitions=options.repetitions,
                                   peer_limit_s=options.peer_limit, block=options.block, long=options.long,
                                   only_case=options.case)

    about = {"scale": f"1/{options.scale}", "threads": THREADS}
    return command.run(options, about, (18 * GIB) // options.scale + GIB, make_bench, SECTIONS)
