#!/usr/bin/env python3
"""The demonstration: programs written for memory, on four times more data than the memory they get.

Sorts 4 GB with 1 GiB in two ways, checks the results, and analyses a graph of four times its memory; each beside the
same source, compiled natively, on the kernel's swap under the same limit (which needs root; without it that side is
skipped). A table at the end has times, bytes through the disk and peak memory. Takes about ten minutes, with `--quick`
about one. Nothing is left behind, however it ends.
"""
import argparse
import dataclasses
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from harness import cgroup, process, swap, table, workspace  # noqa: E402
from harness.programs import Programs  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
ALLOWANCE_BYTES = 64 * MIB  # for code, stacks and small allocations, on both sides
RECORD_BYTES = 100
SORT_MODES = ("one-call", "shuffle")
GRAPH_PHASES = ("build", "pagerank", "bfs", "components")


@dataclasses.dataclass(frozen=True)
class Sizes:
    records: int
    sort_cap_bytes: int
    graph_scale: int
    graph_cap_bytes: int
    peer_limit_s: float

    @property
    def data_bytes(self) -> int:
        return self.records * RECORD_BYTES

    @property
    def graph_bytes_while_built(self) -> int:
        return (32 * 12 + 32) << self.graph_scale

    @property
    def swap_bytes(self) -> int:
        return max(2 * self.data_bytes, self.graph_bytes_while_built) + 256 * MIB


FULL = Sizes(40_000_000, GIB, 23, 256 * MIB, 180)
QUICK = Sizes(2_500_000, 64 * MIB, 20, 32 * MIB, 20)


class Demo:
    def __init__(self, programs: Programs, sizes: Sizes, block: str):
        self.programs = programs
        self.sizes = sizes
        self.block = block
        self.rows: list[list[str]] = []
        self.failed = False
        self.why_no_swap = swap.why_not() or (None if programs.grouped else cgroup.why_not())

    def say(self, text: str) -> None:
        print(f"\n== {text}", file=sys.stderr, flush=True)

    def limit(self, cap_bytes: int) -> int | None:
        return cap_bytes + ALLOWANCE_BYTES if self.programs.grouped else None

    def spillway(self, cap_bytes: int, name: str, *arguments) -> process.Result:
        result, _ = self.programs.spillway(cap_bytes, name, *arguments, block=self.block,
                                           limit_bytes=self.limit(cap_bytes), show_progress=True)
        self.failed = self.failed or not result.ok
        return result

    def on_swap(self, cap_bytes: int, time_limit_s: float, name: str, *arguments) -> process.Result | None:
        if self.why_no_swap:
            print(f"skipped: {self.why_no_swap}", file=sys.stderr)
            return None
        with swap.swap_file(self.programs.store, self.sizes.swap_bytes):
            return self.programs.native(name, *arguments, limit_bytes=self.limit(cap_bytes),
                                        time_limit_s=time_limit_s, show_progress=True)

    def add_row(self, what: str, side: str, result: process.Result | None, outcome: str) -> None:
        if result is None:
            self.rows.append([what, side, "skipped", "", "", "", ""])
            return
        took = f"> {table.seconds(result.seconds)}" if result.timed_out else table.seconds(result.seconds)
        self.rows.append([what, side, took, table.mebibytes(result.disk_read_bytes),
                          table.mebibytes(result.disk_write_bytes), table.mebibytes(result.usage.peak_program_bytes),
                          "stopped" if result.timed_out else outcome])

    # --- sorting -----------------------------------------------------------------------------------------------------

    def sort(self) -> None:
        data, sorted_data = self.programs.store / "records", self.programs.store / "sorted"
        self.say(f"making {self.sizes.data_bytes / 1e9:.2g} GB of records")
        made = self.programs.native("teragen", "--records", self.sizes.records, "--output", data, show_progress=True)
        if not made.ok:
            sys.exit(f"teragen failed: {made.why_failed()}")
        cap = self.sizes.sort_cap_bytes
        for mode in SORT_MODES:
            what = f"TeraSort, {mode}, {self.sizes.data_bytes / 1e9:.2g} GB in {cap // MIB} MiB"
            arguments = ("--input", data, "--output", sorted_data, "--mode", mode)
            self.say(f"{what}: Spillway")
            result = self.spillway(cap, "terasort", *arguments)
            self.add_row(what, "Spillway", result, self.validated(sorted_data, made.report, result))
            self.say(f"{what}: native on swap, for at most {self.sizes.peer_limit_s:.0f} s")
            result = self.on_swap(cap, self.sizes.peer_limit_s, "terasort", *arguments)
            outcome = self.validated(sorted_data, made.report, result) if result and result.ok else "failed"
            self.add_row(what, "native on swap", result, outcome)
        data.unlink()

    def validated(self, sorted_data: pathlib.Path, made: dict, result: process.Result) -> str:
        if not result.ok:
            return result.why_failed()
        check = self.programs.native("teravalidate", sorted_data, "--records", made["records"], "--checksum",
                                     made["checksum"])
        sorted_data.unlink()
        self.failed = self.failed or not check.ok
        return "validated" if check.ok else "WRONG"

    # --- a graph -----------------------------------------------------------------------------------------------------

    def graph(self) -> None:
        cap = self.sizes.graph_cap_bytes
        arguments = ("--scale", self.sizes.graph_scale)
        what = f"R-MAT graph of 2^{self.sizes.graph_scale} vertices in {cap // MIB} MiB"
        self.say(f"{what}: Spillway")
        result = self.spillway(cap, "graph", *arguments)
        self.add_graph_rows(what, "Spillway", result)
        self.say(f"{what}: native on swap, for at most {self.sizes.peer_limit_s:.0f} s")
        self.add_graph_rows(what, "native on swap", self.on_swap(cap, self.sizes.peer_limit_s, "graph", *arguments))

    def add_graph_rows(self, what: str, side: str, result: process.Result | None) -> None:
        outcome = "" if result is None else "checked" if result.ok else result.why_failed()
        self.add_row(what, side, result, outcome)
        if result is not None and result.ok:
            for phase in GRAPH_PHASES:
                self.rows.append([f"  {phase}", side, table.seconds(result.report["seconds"][phase]), "", "", "", ""])

    def print_table(self) -> None:
        heads = ["what", "side", "time", "disk read", "disk written", "peak memory", "result"]
        print("\n" + table.table(heads, self.rows) + "\n")
        if self.why_no_swap:
            print(f"Native on swap was skipped: {self.why_no_swap}.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--store", type=pathlib.Path, help="directory on the disk to use [the build's bench/]")
    parser.add_argument("--quick", action="store_true", help="a sixteenth of the data")
    parser.add_argument("--peer-limit", type=float, metavar="SECONDS", help="stop a program on swap after this long")
    parser.add_argument("--block", default="64K", help="Spillway's block size [64K]")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    workspace.stop_on_signals()
    sizes = QUICK if options.quick else FULL
    if options.peer_limit:
        sizes = dataclasses.replace(sizes, peer_limit_s=options.peer_limit)
    with workspace.workspace(options.store or options.build / "bench") as store:
        workspace.need_space(store, 2 * sizes.data_bytes + sizes.swap_bytes + GIB)
        programs = Programs(options.build.resolve(), store, grouped=cgroup.why_not() is None)
        reason = programs.why_not_spillway()
        if reason:
            sys.exit(f"demo: {reason}")
        demo = Demo(programs, sizes, options.block)
        demo.sort()
        demo.graph()
    demo.print_table()
    return 1 if demo.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; nothing is left behind", file=sys.stderr)
        sys.exit(130)
