"""Data beyond memory on a device that is not the limit. `./dev bench fast-disk`, or see --help.

The disk is ext4 on a zram device, made for the run and taken away afterwards: what is left to measure is what each side
does itself. Four sections:

  fills        random 4 KiB reads of a mapped file, a tenth of it in memory, against fio and the kernel's mmap
  latency      how long one such read takes that misses: percentiles, against the kernel's mmap
  out-of-core  programs on four times their memory, against swap and against arrays in mapped files, on the same device
  streams      a sum of an array again and again, against the device's bandwidth and the kernel's mmap

The rules are those of mapped.py, whose sections these are. Without root or zram all of it is skipped: exit code 77.
"""
import argparse
import pathlib
import sys
import tempfile

import beyond_memory
import random_fills
import streams
from harness import command, programs, workspace, zram

MIB, GIB = 1 << 20, 1 << 30
NAME = "fast-disk"
USUAL_SCALE = 4  # memory takes the place of the disk
DEVICE_SHARE = 2  # the device's size to what sections store at a time: where files are removed, blocks stay in memory
# Less than elsewhere: data is small here, and these programs' code, stacks and small allocations take a few MiB.
ALLOWANCE_BYTES = 8 * MIB
SKIPPED = 77
BUILDS = beyond_memory.BUILDS
WAYS = {"recompiled": BUILDS["recompiled"], "translated": "spillway", "unmodified": BUILDS["unmodified"],
        "faults by signals": programs.SIGNALS, "faults by events": programs.EVENTS}
TIMED = {"unmodified": BUILDS["unmodified"]}
# As many by any number of threads, seconds of reading: what is waited for is a processor.
READS = 2_400_000
LATENCIES = {2: READS, 16: READS}
RANDOM_UPDATES = 2_000_000


def fill_targets(variant: str, threads: int) -> random_fills.Targets:
    """None for what a user does not choose without cause: they say which part of the default costs what."""
    if variant == "recompiled":
        return random_fills.Targets(fio=0.85 if threads <= 2 else 0, mmap=1.4, mmap_processor=1.0)
    return random_fills.Targets(mmap=1.0, mmap_processor=1.0) if variant in BUILDS else random_fills.Targets()


FILLS = random_fills.Plan(WAYS, dict.fromkeys((1, 2, 16, 64), READS), fill_targets, repetitions=3)
OUT_OF_CORE = beyond_memory.Targets(mean=1.5, swap=1.0, mmap=0.95, all_in_mean=True)
STREAMS = streams.Targets(bandwidth=0.7)
SECTIONS = {
    "fills": lambda bench: random_fills.fills(bench, FILLS),
    "latency": lambda bench: random_fills.latency(bench, TIMED, LATENCIES, p99_target=1.0),
    "out-of-core": lambda bench: beyond_memory.out_of_core(bench, OUT_OF_CORE),
    "streams": lambda bench: streams.streams(bench, tuple(BUILDS), STREAMS),
}


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = command.parser(NAME, __doc__, SECTIONS, peer_limit_s=120, own_disk=True)
    command.add_scale(parser, USUAL_SCALE)
    parser.add_argument("--repetitions", type=int, default=0, metavar="N", help="of fills and latency [3, 1]")
    parser.add_argument("--block", default=beyond_memory.AUTO, help=f"block size of out-of-core and streams [{beyond_memory.AUTO}]")
    parser.add_argument("--long", action="store_true", help="out-of-core: TeraSort by one call, too")
    parser.add_argument("--case", metavar="TEXT", default="", help="out-of-core: only cases with this in their name")
    return parser.parse_args(arguments)


def skipped(reason: str) -> int:
    print(f"skipped: {NAME}: {reason}", file=sys.stderr)
    return SKIPPED


def main(arguments: list[str]) -> int:
    options = parse_arguments(arguments)
    need_bytes = (18 * GIB) // options.scale + GIB
    if reason := zram.why_not(DEVICE_SHARE * need_bytes):
        return skipped(reason)
    workspace.stop_on_signals()
    with workspace.workspace(pathlib.Path(tempfile.gettempdir())) as directory:
        try:
            with workspace.undisturbed():
                disk = zram.make_disk(directory, DEVICE_SHARE * need_bytes)
        except zram.Unavailable as reason:
            return skipped(str(reason))
        return run_on(disk, options, need_bytes)


def run_on(disk: zram.Disk, options: argparse.Namespace, need_bytes: int) -> int:
    options.store = disk.mount

    def make_bench(runnable):
        runnable.allowance_bytes = ALLOWANCE_BYTES
        bench = beyond_memory.Bench(NAME, programs=runnable, scale=options.scale, repetitions=options.repetitions,
                                    peer_limit_s=options.peer_limit, block=options.block, long=options.long,
                                    only_case=options.case, random_updates=RANDOM_UPDATES)
        if disk.algorithm != zram.ALGORITHM:
            bench.skip(f"{zram.ALGORITHM} on zram", f"the kernel does not offer it: {disk.algorithm}")
        return bench

    about = {"scale": f"1/{options.scale}", "threads": beyond_memory.THREADS,
             "device": f"zram, {disk.algorithm}, {DEVICE_SHARE * need_bytes // MIB} MiB"}
    return command.run(options, about, need_bytes, make_bench, SECTIONS)
