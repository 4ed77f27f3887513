#!/usr/bin/env python3
"""Programs as they are: ./dev programs [NAME...] [OPTIONS]. Runs rows of docs/PROGRAMS.md; README.md beside this file says how.

NAME: a row, a file of rows (all of its rows), or a shell pattern. Exit code 1 if a row FAILED, 77 if all were skipped, 2 for
a usage that is wrong.
"""
import argparse
import fnmatch
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench")]
sys.dont_write_bytecode = True

import packages  # noqa: E402
import page  # noqa: E402
import runner  # noqa: E402
from harness import workspace  # noqa: E402
from row import Row  # noqa: E402

EXIT_FAILED, EXIT_USAGE, EXIT_SKIPPED = 1, 2, 77


def families() -> dict[str, list[Row]]:
    """Of each file of rows."""
    found = {}
    for path in sorted((HERE / "rows").glob("*.py")):
        specification = importlib.util.spec_from_file_location("rows_" + path.stem, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        if hasattr(module, "ROWS"):
            found[path.stem] = module.ROWS
    return found


def chosen(found: dict[str, list[Row]], names: list[str]) -> list[Row]:
    rows = [row for family in found.values() for row in family]
    picked = []
    for name in names:
        matching = found.get(name) or [row for row in rows if fnmatch.fnmatchcase(row.name, name)]
        if not matching:
            print(f"dev: programs has no row {name} (./dev programs --list)", file=sys.stderr)
            sys.exit(EXIT_USAGE)
        picked += [row for row in matching if row not in picked]
    return picked if names else rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev programs", description="Runs programs of others, unmodified, on data of four "
                                     "times the cap, and compares them with native runs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a row, a file of rows, or a shell pattern; all of them if none is named")
    parser.add_argument("--list", action="store_true", help="names the rows and runs none")
    parser.add_argument("--short", action="store_true", help="only those that take seconds")
    parser.add_argument("--setup", action="store_true", help="first installs what they need, with apt and pip")
    parser.add_argument("--no-swap", action="store_true", help="without the run beside swap")
    parser.add_argument("--record", action="store_true", help="puts what was found into docs/PROGRAMS.md")
    parser.add_argument("--build", type=pathlib.Path, default=runner.ROOT / "build" / "release", help="of Spillway")
    parser.add_argument("--place", type=pathlib.Path, help="directory on the disk to use [the build's programs/]")
    return parser.parse_args()


def told(outcome: runner.Outcome) -> str:
    line = f"{outcome.result:8} {outcome.row.name:24}"
    if outcome.spillway_s:
        swap = "" if not outcome.swap_s else f", swap {'> ' if outcome.swap_note else ''}{outcome.swap_s:.1f} s"
        line += (f" cap {outcome.row.cap_mib} MiB, peak {outcome.peak_bytes >> 20} of native's "
                 f"{outcome.native_peak_bytes >> 20} MiB, native {outcome.native_s:.1f} s, Spillway {outcome.spillway_s:.1f} s{swap}")
    return f"{line}: {outcome.why}" if outcome.why else line


def run_rows(rows: list[Row], options: argparse.Namespace) -> list[runner.Outcome]:
    logs = options.build / "programs"
    logs.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with workspace.workspace(options.place or logs) as place:
        made = runner.Runner(options.build.resolve(), place, with_swap=not options.no_swap)
        if not made.grouped:
            print(f"programs: caps are not checked: {runner.cgroup.why_not()}")
        if not options.no_swap and made.why_no_swap:
            print(f"programs: nothing is run beside swap: {made.why_no_swap}")
        for row in rows:
            outcome = made.try_row(row)
            outcomes.append(outcome)
            print(told(outcome), flush=True)
            if options.record:  # row by row: a run that is stopped has recorded what it found
                page.record(outcome)
            if outcome.details:
                (logs / f"{row.name}.log").write_text(told(outcome) + "\n" + outcome.details)
    return outcomes


def main() -> int:
    options = parse()
    rows = [row for row in chosen(families(), options.names) if row.short or not options.short]
    if options.list:
        for row in rows:
            print(f"{row.name:24} {row.about}")
        return 0
    if not (options.build / "bin" / "spillway").exists():
        print(f"programs: {options.build} has no bin/spillway: ./dev build makes it", file=sys.stderr)
        return EXIT_USAGE
    if options.setup:
        packages.install(rows)
    workspace.stop_on_signals()
    outcomes = run_rows(rows, options)
    count = {result: sum(outcome.result == result for outcome in outcomes)
             for result in (runner.OK, runner.REMARK, runner.REFUSED, runner.FAILED, runner.SKIPPED)}
    print(", ".join(f"{number} {result}" for result, number in count.items() if number))
    if count[runner.FAILED]:
        print(f"logs: {options.build / 'programs'}")
        return EXIT_FAILED
    return EXIT_SKIPPED if count[runner.SKIPPED] == len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
