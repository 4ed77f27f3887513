#!/usr/bin/env python3
"""Every Nth call fails: small programs, unmodified and recompiled, in which each read, write, sync, open, mapping, userfaultfd call, thread
and so on fails once and lastingly, one run each, for N from 1 to the last. README.md beside this says what a run may end as.

It says a line for each case, class of calls, error and mode, with how its runs ended, and for each kind of wrong end the first run that
had it and the command that repeats it. Exit status 1 if one was wrong; 77 if nothing can be made to fail here.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import math
import os
import pathlib
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cases import CALLS, CASES, Call, Case
from runs import HERE, VERSIONS, Failure, Place, Run, Unavailable, Verdict, programs, version_of

BUILD = HERE.parents[1] / "build" / "release"
NOT_USED = 77
N_MAX = 20000  # more calls than any of the programs makes
SHOWN_BYTES = 1500


class Hunt:
    """Runs with a failure each, and how they ended."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.arguments = arguments
        made = arguments.build / "tests" / "faults"
        programs(arguments.build, made)
        versions = [version_of(version) for version in range(VERSIONS)]
        self.places: queue.SimpleQueue = queue.SimpleQueue()
        for number in range(arguments.jobs):
            self.places.put(Place(arguments.build, made, folder / str(number), versions))
        self.ends: collections.Counter = collections.Counter()
        self.wrong: set[tuple] = set()
        self.turn = arguments.shift
        self.without: dict[str, tuple[str, dict]] = {}
        self.ends_at_s = time.monotonic() + arguments.seconds if arguments.seconds else None

    def is_over(self) -> bool:
        return self.ends_at_s is not None and time.monotonic() > self.ends_at_s

    def one(self, case: Case, failure: Failure) -> tuple[Failure, Run, Verdict] | None:
        if self.is_over():
            return None
        place = self.places.get()
        try:
            run = place.run(case, failure)
            return failure, run, place.judge(case, run, self.without[case.name][0], failure.mode == "lasting")
        finally:
            self.places.put(place)

    def calls_of(self, case: Case, call: Call) -> int:
        """How many there are in a run without failures, which is made first."""
        if case.name not in self.without:
            place = self.places.get()
            everything = dataclasses.replace(CALLS["allocations"], calls=tuple(sorted({name for call in CALLS.values() for name in call.calls})))
            run = place.run(case, Failure(everything, "ENOMEM", "once", 0))
            verdict = place.judge(case, run, run.output)
            self.places.put(place)
            if run.code != 0 or verdict.wrong:
                raise RuntimeError(f"{case.name} is wrong without any failure: {verdict.wrong}; exit code {run.code}: {run.output}{run.errors}")
            self.without[case.name] = run.output, run.counts
        return sum(self.without[case.name][1][name] for name in call.calls)

    def wanted(self, call: Call) -> list[tuple[str, str]]:
        return [(error, mode) for error in call.errors for mode in call.modes(error)
                if (not self.arguments.error or error in self.arguments.error) and self.arguments.mode in (None, mode)]

    def hunt(self, case: Case, call: Call, pool: concurrent.futures.Executor) -> None:
        """All Ns, or those of the slice."""
        for error, mode in self.wanted(call):
            if not self.is_over():
                self._all_numbers(case, call, error, mode, pool)

    def _all_numbers(self, case: Case, call: Call, error: str, mode: str, pool: concurrent.futures.Executor) -> None:
        seen, end = self.calls_of(case, call), self.arguments.first + self.arguments.count
        stride = max(self.arguments.stride, math.ceil(seen / self.arguments.most))
        self.turn += 1  # the next class begins with another N, so that a slice has not the same ones of each
        ends: collections.Counter = collections.Counter()
        numbers = list(range(self.arguments.first + self.turn % stride, min(seen + 1, end), stride))
        while numbers:
            results = [result for result in pool.map(lambda n: self.one(case, Failure(call, error, mode, n)), numbers) if result]
            ends.update(self.end_of(case, *result) for result in results)
            # Threads race, so that one run makes more calls than another: on, until there is none to fail any more.
            has_more = bool(results) and results[-1][0].n == numbers[-1] and results[-1][1].failed > 0
            numbers = [numbers[-1] + 1] if has_more and stride == 1 and numbers[-1] + 1 < end else []
        if ends:
            words = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
            print(f"{case.name} {call.name} {error} {mode}: {seen} calls, {words}", flush=True)
        self.ends.update(ends)

    def sample(self, cases: list[Case], calls: list[Call], pool: concurrent.futures.Executor) -> None:
        """So many runs of any, chosen by the seed: cases and kinds of failure as likely as each other, and Ns within each."""
        dice = random.Random(self.arguments.seed)
        kinds = [(case, call, error, mode) for case in cases for call in calls for error, mode in self.wanted(call) if self.calls_of(case, call) > 0]
        chosen = [dice.choice(kinds) for _ in range(self.arguments.sample)]
        failures = [(case, Failure(call, error, mode, dice.randint(1, self.calls_of(case, call)))) for case, call, error, mode in chosen]
        for result in pool.map(lambda one: (one[0], self.one(*one)), failures):
            if result[1]:
                self.ends[self.end_of(result[0], *result[1])] += 1

    def end_of(self, case: Case, failure: Failure, run: Run, verdict: Verdict) -> str:
        """A word for the table. What is wrong is said."""
        if run.failed == 0:
            return "nothing failed"
        if verdict.wrong:
            self.note(case, failure, run, verdict)
            return "WRONG"
        if self.arguments.say and verdict.end != "right":
            print(f"{case.name}, {failure}: {run.first}: {run.errors.strip()}", flush=True)
        return verdict.end

    def note(self, case: Case, failure: Failure, run: Run, verdict: Verdict) -> None:
        call = re.sub(r"0x[0-9a-f]+", "", run.first)
        words = re.sub(r"\d+", "N", run.errors)[-150:]
        key = (case.name, failure.call.name, failure.error, failure.mode, re.sub(r"\d+", "N", verdict.wrong), call.split("(")[0], words)
        if key in self.wrong:
            return
        self.wrong.add(key)
        print(f"WRONG: {case.name}, {failure}: {verdict.wrong}\n  failed: {run.first}\n  exit code {run.code}; output: "
              f"{run.output[-300:]!r}\n  errors: {run.errors[-600:]!r}\n  again: every_nth.py --case {case.name} --call {failure.call.name} "
              f"--error {failure.error} --mode {failure.mode} --from {failure.n} --count 1", flush=True)


def show(hunt: Hunt, case: Case, call: Call, arguments: argparse.Namespace) -> None:
    """One run, with all that it says and where the call that failed came from."""
    seen = hunt.calls_of(case, call)
    place = hunt.places.get()
    failure = Failure(call, arguments.error[0] if arguments.error else call.errors[0], arguments.mode or "once", arguments.first)
    print(" ".join(place.command(case, failure)))
    run = place.run(case, failure, shows_stack=True)
    verdict = place.judge(case, run, hunt.without[case.name][0], failure.mode == "lasting")
    print(f"exit code {run.code}, {run.failed} of {run.seen} failed (without failures {seen}), first {run.first}\n{verdict}\n--- output\n{run.output[-SHOWN_BYTES:]}"
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
    parser.add_argument("--most", type=int, default=N_MAX, help="so many Ns of each case and kind of failure, evenly spread, at most [all]")
    parser.add_argument("--shift", type=int, default=0, help="which of the Ns a stride begins with: with 0 to stride - 1 all are run [0]")
    parser.add_argument("--sample", type=int, metavar="RUNS", help="so many runs, of any case and failure")
    parser.add_argument("--seed", type=int, default=1, help="of --sample [1]")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="runs at a time [%(default)s]")
    parser.add_argument("--say", action="store_true", help="also what runs say that were stopped or told")
    parser.add_argument("--show", action="store_true", help="one run, of --from, with all it says and a stack of the call that failed")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if arguments.first < 1 or arguments.stride < 1 or arguments.count < 1 or arguments.most < 1 or arguments.jobs < 1:
        parser.error("--from, --count, --most, --stride and --jobs are at least 1")
    return arguments


def chosen_cases(names: list[str] | None) -> list[Case]:
    if not names:
        return list(CASES.values())
    found = list(dict.fromkeys(case for name in names for case in CASES.values() if fnmatch.fnmatch(case.name, name)))
    if not found:
        sys.exit(f"every_nth: no case is called {', '.join(names)}; there are {', '.join(CASES)}")
    return found


def run_all(hunt: Hunt, cases: list[Case], calls: list[Call], pool: concurrent.futures.Executor) -> None:
    if hunt.arguments.sample:
        return hunt.sample(cases, calls, pool)
    for case in cases:
        for call in calls:
            hunt.hunt(case, call, pool)
    return None


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
            try:
                run_all(hunt, cases, calls, pool)
            except BaseException:
                hunt.ends_at_s = 0  # what has not begun does not begin
                raise
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return NOT_USED
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    runs = sum(hunt.ends.values())
    if runs == hunt.ends["nothing failed"]:
        print("every Nth: no call was made to fail, so nothing was tried")
        return 1
    print(f"every Nth: {runs} runs: {', '.join(f'{count} {end}' for end, count in sorted(hunt.ends.items()))}; "
          f"{len(hunt.wrong)} kinds of wrong ends")
    return 1 if hunt.wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("every_nth: interrupted")
