#!/usr/bin/env python3
"""Every Nth call fails: small programs, unmodified and recompiled, in which each read, write, sync, open, mapping, userfaultfd call, thread
and so on fails once and lastingly, one run each, for N from 1 to the last. README.md beside this says what a run may end as.

It says a line for each case, class of calls, error and mode, with how its runs ended, and for each kind of wrong end the first run that
had it and the command that repeats it. Exit status 1 if one was wrong; 77 if nothing can be made to fail here.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from cases import CALLS, CASES, Call, Case
from runs import HERE, Failure, Place, Run, Verdict, programs, version_of

BUILD = HERE.parents[1] / "build" / "release"
NOT_USED = 77
N_MAX = 20000  # more calls than any of the programs makes
SHOWN_BYTES = 1500


class Hunt:
    """All runs of a list of cases and calls."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments = arguments
        made = arguments.build / "tests" / "faults"
        programs(arguments.build, made)
        versions = [version_of(version) for version in range(3)]
        self.places: queue.SimpleQueue = queue.SimpleQueue()
        for number in range(arguments.jobs):
            self.places.put(Place(arguments.build, made, folder / str(number), versions))
        self.ends: collections.Counter = collections.Counter()
        self.wrong: dict[tuple, str] = {}
        self.wrong_runs = 0
        self.turn = 0
        self.lock = threading.Lock()
        self.ends_at_s = time.monotonic() + arguments.seconds if arguments.seconds else None

    def is_over(self) -> bool:
        return self.ends_at_s is not None and time.monotonic() > self.ends_at_s

    def one(self, case: Case, failure: Failure, right_output: str) -> tuple[Failure, Run, Verdict] | None:
        if self.is_over():
            return None
        place = self.places.get()
        try:
            run = place.run(case, failure)
            return failure, run, place.judge(case, run, right_output)
        finally:
            self.places.put(place)

    def numbers(self, seen: int) -> list[int]:
        """The Ns of a slice: the next one begins where this one ended, so that all of a slice are not the same Ns."""
        first, stride = self.arguments.first, self.arguments.stride
        with self.lock:
            self.turn += 1
            shift = self.turn % stride
        return list(range(first + shift, min(seen, first + self.arguments.count - 1) + 1, stride))

    def without_failure(self, case: Case, call: Call) -> tuple[str, int]:
        """What it prints, and how many calls it makes."""
        place = self.places.get()
        try:
            failure = Failure(call, call.errors[0], "once", 0)
            run = place.run(case, failure)
            verdict = place.judge(case, run, run.output)
            if run.code != 0 or verdict.wrong:
                raise RuntimeError(f"{case.name} is wrong without any failure: {verdict.wrong}; exit code {run.code}: {run.output}{run.errors}")
            return run.output, run.seen
        finally:
            self.places.put(place)

    def hunt(self, case: Case, call: Call, pool: concurrent.futures.Executor) -> None:
        if self.is_over():
            return
        output, seen = self.without_failure(case, call)
        for error in call.errors:
            for mode in call.modes(error):
                if self.arguments.error and error not in self.arguments.error or self.arguments.mode not in (None, mode):
                    continue
                self._all_numbers(case, call, error, mode, output, seen, pool)

    def _all_numbers(self, case: Case, call: Call, error: str, mode: str, output: str, seen: int, pool) -> None:
        ends: collections.Counter = collections.Counter()
        last, n_max = 0, seen
        numbers = self.numbers(seen)
        while numbers:
            results = list(pool.map(lambda n: self.one(case, Failure(call, error, mode, n), output), numbers))
            more = False
            for result in results:
                if result is None:
                    continue
                failure, run, verdict = result
                if run.failed == 0:
                    ends["nothing failed"] += 1
                    continue
                last = max(last, failure.n)
                ends["WRONG" if verdict.wrong else verdict.end] += 1
                more |= failure.n == numbers[-1]
                if verdict.wrong:
                    self.note(case, failure, run, verdict)
            # The count differs from run to run, by threads that race: on, until a run has no such call any more.
            whole = self.arguments.stride == 1 and n_max < self.arguments.first + self.arguments.count - 1
            numbers = [n_max + 1] if more and whole and n_max < N_MAX and not self.is_over() else []
            n_max += 1
        if ends:
            words = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
            print(f"{case.name} {call.name} {error} {mode}: {seen} calls, {words}", flush=True)
        self.ends.update(ends)

    def note(self, case: Case, failure: Failure, run: Run, verdict: Verdict) -> None:
        call = re.sub(r"0x[0-9a-f]+", "", run.first)
        words = re.sub(r"\d+", "N", run.errors)[-150:]
        key = (case.name, failure.call.name, failure.error, failure.mode, re.sub(r"\d+", "N", verdict.wrong), call.split("(")[0], words)
        self.wrong_runs += 1
        if key in self.wrong:
            return
        self.wrong[key] = str(failure.n)
        print(f"WRONG: {case.name}, {failure}: {verdict.wrong}\n  failed: {run.first}\n  exit code {run.code}; output: "
              f"{run.output[-300:]!r}\n  errors: {run.errors[-600:]!r}\n  again: every_nth.py --case {case.name} --call {failure.call.name} "
              f"--error {failure.error} --mode {failure.mode} --from {failure.n} --count 1", flush=True)


def show(hunt: Hunt, case: Case, call: Call, arguments: argparse.Namespace) -> None:
    """One run, with all that it says and where the call that failed came from."""
    right_output, _ = hunt.without_failure(case, call)
    place = hunt.places.get()
    failure = Failure(call, arguments.error[0], arguments.mode or "once", arguments.first)
    print(" ".join(place.command(case, failure)))
    run = place.run(case, failure, shows_stack=True)
    verdict = place.judge(case, run, right_output)
    print(f"exit code {run.code}, {run.failed} of {run.seen} failed, first {run.first}\n{verdict}\n--- output\n{run.output[-SHOWN_BYTES:]}"
          f"--- errors\n{run.errors[-SHOWN_BYTES:]}--- stack (some of it may be left from earlier calls)")
    for word in run.stack.split():
        file, _, offset = word.rpartition("+")
        name = subprocess.run(["addr2line", "-Cfpse", file, hex(int(offset, 16) - 1)], capture_output=True, text=True).stdout.strip()
        print(f"  {pathlib.Path(file).name} {name[:160]}")
    hunt.places.put(place)


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--case", action="append", metavar="NAME", help=f"{', '.join(CASES)}; may be given more than once, * matches [all]")
    parser.add_argument("--call", action="append", choices=CALLS, metavar="CLASS", help=f"{', '.join(CALLS)} [all]")
    parser.add_argument("--error", action="append", help="only this errno of those of the class, or short")
    parser.add_argument("--mode", choices=("once", "lasting"))
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="the first call that fails [1]")
    parser.add_argument("--count", type=int, default=N_MAX, help="so many Ns from it on, at most [all]")
    parser.add_argument("--stride", type=int, default=1, help="every so manieth N only, beginning with another one each time [1]")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="runs at a time [%(default)s]")
    parser.add_argument("--show", action="store_true", help="one run, of --from, with all it says and a stack of the call that failed")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if arguments.first < 1 or arguments.stride < 1 or arguments.count < 1 or arguments.jobs < 1:
        parser.error("--from, --count, --stride and --jobs are at least 1")
    return arguments


def chosen_cases(names: list[str] | None) -> list[Case]:
    if not names:
        return list(CASES.values())
    found = list(dict.fromkeys(case for name in names for case in CASES.values() if fnmatch.fnmatch(case.name, name)))
    if not found:
        sys.exit(f"every_nth: no case is called {', '.join(names)}; there are {', '.join(CASES)}")
    return found


def main() -> int:
    arguments = arguments_of()
    cases = chosen_cases(arguments.case)
    calls = [CALLS[name] for name in arguments.call or CALLS]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="every_nth.", dir=arguments.build / "tests"))
    try:
        hunt = Hunt(arguments, folder)
        if arguments.show:
            show(hunt, cases[0], calls[0], arguments)
            return 0
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for case in cases:
                for call in calls:
                    hunt.hunt(case, call, pool)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    runs = sum(hunt.ends.values())
    print(f"every Nth: {runs} runs: {', '.join(f'{count} {end}' for end, count in sorted(hunt.ends.items()))}; "
          f"{len(hunt.wrong)} kinds of wrong ends")
    return 1 if hunt.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
