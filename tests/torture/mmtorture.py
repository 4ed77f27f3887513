#!/usr/bin/env python3
"""Random sequences of memory calls, threads, children and accesses, natively and under Spillway with little memory: both have to return
the same. `./dev mmtorture` builds and calls this; what a sequence is made of, mmtorture.cc and its neighbours say.

Of a difference the operation that first shows it is found, the operations that it does not need are taken out, and what is left is printed
with what both runs said. A seed does the same whenever it is run: --seed S --operations N --kind KIND. Exit status 1 when there was a
difference.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

import reduce
from runs import KINDS, Sequence, Torture

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "release"
EVERY = 1  # so that what does not happen again has been seen where it was
TEXT_BEFORE = 100
TRIES = 5  # of what differs in some runs only


def report(torture: Torture, found: reduce.Found) -> None:
    difference = found.difference
    print(f"  {difference.key} {difference.native.asked}\n    native {difference.native.returned}\n    ours   "
          f"{difference.ours.returned if difference.ours.returned is not None else 'did not return'}")
    if difference.errors:
        print("    said   " + difference.errors.strip().replace("\n", "\n           "))
    if found.operations:
        print(f"  reduced to {len(found.operations)} operations:")
        for line in found.operations:
            print(f"    {line}")


def try_seed(torture: Torture, sequence: Sequence, known: set, reduces: bool) -> tuple[bool, int, dict]:
    """Whether it went as natively, how many operations were compared, and counters of the run."""
    stats = torture.place / "stats.json"
    stats.unlink(missing_ok=True)
    differs_at, ours = torture.differing_hash(sequence, EVERY)
    counters = json.loads(stats.read_text())["counters"] if stats.exists() else {}
    if differs_at is None:
        return True, sequence.count, counters
    until = Sequence(sequence.seed, differs_at)
    difference = None
    for attempt in range(TRIES):
        difference = torture.first_difference(until, max(0, differs_at - TEXT_BEFORE) if attempt == 0 else 0)
        if difference is not None:
            break
    where = f"seed {sequence.seed}, {torture.kind}"
    if difference is None:
        operation = torture.operations(False).get(str(differs_at - 1))
        print(f"{where}: not every time: {differs_at - 1} {operation and operation.asked}\n    native {operation and operation.returned}\n"
              f"    ours   exit code {ours.code}, {ours.errors[-400:]}", flush=True)
        return False, differs_at, counters
    if difference.signature() in known:
        print(f"{where}: again {difference.signature()}", flush=True)
        return False, differs_at, counters
    known.add(difference.signature())
    print(f"{where}: {difference.signature()}", flush=True)
    found = reduce.reduced(torture, until, difference) if reduces else reduce.Found(difference, until, [])
    report(torture, found)
    sys.stdout.flush()
    return False, differs_at, counters


def torture_kind(arguments: argparse.Namespace, kind: str, place: pathlib.Path) -> bool:
    torture = Torture(arguments.build, place, kind, arguments.memory, arguments.options.split(), arguments.without.split(",") if arguments.without else [])
    known: set = set()
    compared, different, evictions, began_s = 0, 0, 0, time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        same, operations, counters = try_seed(torture, Sequence(seed, arguments.operations), known, not arguments.no_reduce)
        compared += operations
        different += not same
        evictions += counters.get("evictions", 0)
        if different and not arguments.go_on:
            break
    took_s = time.monotonic() - began_s
    print(f"{kind}: {compared} operations, {evictions} evictions, {different} seeds differ; {compared / took_s:.0f} operations a second, both runs",
          flush=True)
    if different == 0 and evictions == 0:
        print(f"{kind}: nothing was evicted, so nothing was tried", flush=True)
        return False
    return different == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--kind", action="append", choices=KINDS, help="of program; may be given more than once [all]")
    parser.add_argument("--seed", type=int, default=1, help="the first [%(default)s]")
    parser.add_argument("--seeds", type=int, default=1, help="how many [%(default)s]")
    parser.add_argument("--operations", type=int, default=20000, help="of each seed [%(default)s]")
    parser.add_argument("--memory", default="16M", help="the cap [%(default)s]")
    parser.add_argument("--options", default="", help="more options of spillway run")
    parser.add_argument("--without", default="", help="operations and flags to leave out, separated by commas")
    parser.add_argument("--go-on", action="store_true", help="with the next seed after a difference")
    parser.add_argument("--no-reduce", action="store_true", help="print only the operation that shows the difference")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    good = True
    for kind in arguments.kind or KINDS:
        with tempfile.TemporaryDirectory(prefix="mmtorture.", dir=os.environ.get("TMPDIR", "/tmp")) as place:
            good &= torture_kind(arguments, kind, pathlib.Path(place))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
