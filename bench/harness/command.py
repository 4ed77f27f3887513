"""What the benchmarks' command lines have in common, and what every run of one does around its sections."""
import argparse
import pathlib
import sys
import time

from . import cgroup, machine, workspace
from .programs import Programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "BENCHMARKS.md"


def parser(name: str, text: str, sections: dict, peer_limit_s: float | None, own_disk: bool = False
           ) -> argparse.ArgumentParser:
    """`peer_limit_s`: the default; None where the benchmark has one of its own for each size. own_disk: it makes the
    one to measure, and sets `store`."""
    made = argparse.ArgumentParser(prog=f"bench/run {name}", description=text.splitlines()[0])
    made.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    if not own_disk:
        made.add_argument("--store", type=pathlib.Path, help="directory on the disk to measure [the build's bench/]")
    made.add_argument("--results", type=pathlib.Path, help="directory for what is written [the build's bench/]")
    made.add_argument("--only", choices=sections, action="append", help="this section only (may be repeated)")
    made.add_argument("--peer-limit", type=float, metavar="SECONDS", default=peer_limit_s,
                      help="stop a peer after this long, if not after some times our own time "
                      f"[{peer_limit_s or 'depends on the size'}]")
    made.add_argument("--update-docs", action="store_true", help="put what was measured into docs/")
    return made


def add_scale(made: argparse.ArgumentParser, usual: int = 1) -> None:
    def power_of_two(text: str) -> int:
        value = int(text)
        if value < 1 or value & (value - 1):
            raise argparse.ArgumentTypeError(f"{text} is no power of two")
        return value

    made.add_argument("--scale", type=power_of_two, default=usual, metavar="N",
                      help=f"1/N of the data: for trying it out [{usual}]")


def run(options: argparse.Namespace, about: dict, need_bytes: int, make_bench, sections: dict, after=None) -> int:
    """make_bench: from Programs to a Report; sections: name to function of it; after(bench, results), where there is more
    to write. Returns the exit code."""
    workspace.stop_on_signals()
    results = options.results or options.build / "bench"
    results.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with workspace.workspace(options.store or options.build / "bench") as store:
        bench = make_bench(Programs(options.build.resolve(), store, cgroup.why_not() is None))
        if reason := bench.programs.why_not_spillway():
            sys.exit(f"{bench.name}: {reason}")
        workspace.need_space(store, need_bytes)
        if not bench.programs.grouped:
            bench.skip("memory limits", cgroup.why_not())
        about = machine.describe(ROOT, store) | about
        for name in options.only or sections:
            sections[name](bench)
        if after:
            after(bench, results)
    about["took_s"] = round(time.monotonic() - start)
    text = bench.write(results, about)
    if options.update_docs:
        bench.update_docs(DOCS, text)
    print(text)
    return 1 if bench.failed() else 0
