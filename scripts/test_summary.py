#!/usr/bin/env python3
"""Sums up what `./dev test` ran: test_summary.py PART...

For each part, build/PART/test-results holds `finished` (the part was built and run to its end), ctest.xml and endtoend.xml
(the JUnit reports of ctest and pytest; those that the part runs), `skipped` (why the part could not be run) and gtest/*.xml (one
GoogleTest report a test program). A GoogleTest program counts by its cases, any other test as one. Prints which took longest, and
what failed and what was skipped, each with its reason; the last line is exactly "N passed, N failed, N skipped". Exit status 1
when anything failed.

SPW_EXPECT in the environment names, with commas, what this machine must have (the names are those of EXPECTABLE): a test that was
skipped because it is missing counts as failed. Exit status 2: no such name. SPW_PART_LOGS names the folder where .ci/run keeps
PART.log and, where it failed, PART.failed of each part that ran before the tests.
"""
import collections
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

Outcome = collections.namedtuple("Outcome", "part name result reason")
SLOWEST_SHOWN = 10
REASON_CHARACTERS_MAX = 300
FAILED_LINES_SHOWN = 15  # of each part of continuous integration before the tests
# What pytest, cargo, compilers and our own programs say of a failure.
LOOKS_FAILED = re.compile(r"^(E  |[A-Z]+\d{3,4} )|^(?!== ).*(\berror\b|\bfailed\b|panicked)", re.IGNORECASE)
# What a machine can be expected to have, and what the reasons of tests that are skipped without it say.
EXPECTABLE = {
    "userfaultfd": r"userfault|are served by the ",
    "io_uring": r"io_uring",
    "libaio": r"io_setup",
    "o_direct": r"O_DIRECT",
    "root": r"needs root|mount a small|can be mounted",
    "syscall_dispatch": r"syscall user dispatch",
    "seccomp": r"seccomp",
    "spin": r"\bspin is missing",
    "csmith": r"\bcsmith\b",
    "gcc_torture": r"no sources of GCC",
    "nbd": r"nbdkit|qemu-nbd",
    "ceph": r"Ceph is not installed",
    "llvm22": r"^not installed: .*llvm-22",
}


class Part:
    """What one part left behind; the reports of ctest and pytest are read once."""

    def __init__(self, root: pathlib.Path, name: str):
        self.name = name
        self.results = root / "build" / name / "test-results"
        self.cases = self._testcases("ctest.xml")
        self.endtoend = self._testcases("endtoend.xml")

    def _testcases(self, report: str) -> list[xml.Element] | None:
        """None where there is no report; none where it is empty, which is how `./dev test` says that pytest broke off."""
        path = self.results / report
        if not path.exists():
            return None
        return list(xml.parse(path).iter("testcase")) if path.stat().st_size > 0 else []

    def times(self) -> list[tuple[float, str]]:
        named = [(case, case.get("name")) for case in self.cases or []] + [(case, pytest_name(case)) for case in self.endtoend or []]
        return [(float(case.get("time", 0)), name) for case, name in named]


def last_line(text: str | None) -> str:
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def one_line(text: str | None) -> str:
    return " | ".join(line.strip() for line in (text or "").splitlines() if line.strip())[:REASON_CHARACTERS_MAX]


def gtest_outcomes(part: str, report: pathlib.Path) -> list[Outcome]:
    found = []
    for case in xml.parse(report).iter("testcase"):
        name = f'{case.get("classname")}.{case.get("name")}'
        skipped = case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            found.append(Outcome(part, name, "failed", one_line(failure.get("message"))))
        elif skipped is not None:
            found.append(Outcome(part, name, "skipped", last_line(skipped.get("message"))))
        elif case.get("status") == "run":
            found.append(Outcome(part, name, "passed", ""))
    return found


def ctest_outcome(part: str, case: xml.Element) -> Outcome:
    status, name = case.get("status"), case.get("name")
    if status == "run":
        return Outcome(part, name, "passed", "")
    if status == "disabled" or case.find("skipped") is not None:
        return Outcome(part, name, "skipped", last_line(case.findtext("system-out")))
    said = last_line(case.findtext("system-out"))
    failure = case.find("failure")
    why = failure.get("message", "") if failure is not None else status
    return Outcome(part, name, "failed", f"{why}: {said}"[:REASON_CHARACTERS_MAX])


def pytest_name(case: xml.Element) -> str:
    """As pytest takes it."""
    file = case.get("classname", "").replace(".", "/")
    return f'{file}.py::{case.get("name")}' if file else case.get("name")  # a file that cannot be read is a case, too


def pytest_outcome(part: str, case: xml.Element) -> Outcome:
    for tag, result in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(tag)
        if found is not None:
            message = found.get("message")
            return Outcome(part, pytest_name(case), result, last_line(message) if result == "skipped" else one_line(message))
    return Outcome(part, pytest_name(case), "passed", "")


def endtoend_outcomes(part: Part) -> list[Outcome]:
    if part.endtoend == []:
        return [Outcome(part.name, "endtoend", "failed", "pytest did not run to its end; what it printed says why")]
    return [pytest_outcome(part.name, case) for case in part.endtoend or []]


def part_outcomes(part: Part) -> list[Outcome]:
    results = part.results
    if not (results / "finished").exists():
        return [Outcome(part.name, "build", "failed", "does not build")]
    if (results / "skipped").exists():
        return [Outcome(part.name, "all", "skipped", last_line((results / "skipped").read_text()))]
    if part.cases is None and part.endtoend is None:
        return [Outcome(part.name, "build", "passed", "")]
    found = endtoend_outcomes(part)
    for case in part.cases or []:
        whole = ctest_outcome(part.name, case)
        report = results / "gtest" / f"{whole.name}.xml"
        cases = gtest_outcomes(part.name, report) if report.exists() else []
        found += cases or [whole]
        if cases and whole.result == "failed" and all(c.result != "failed" for c in cases):
            found.append(whole)  # the cases were fine but the program was not: it crashed late, leaked or hung
    return found


def as_expected(outcome: Outcome, expected: list[str]) -> Outcome:
    """A test that was skipped because something is missing that is expected here has failed."""
    missing = next((name for name in expected if re.search(EXPECTABLE[name], outcome.reason)), None)
    if outcome.result != "skipped" or not missing:
        return outcome
    return outcome._replace(result="failed", reason=f"skipped, though {missing} is expected here (SPW_EXPECT): {outcome.reason}")


def show_slowest(parts: list[Part]) -> None:
    times = [(seconds, part.name, name) for part in parts for seconds, name in part.times()]
    for seconds, part, name in sorted(times, reverse=True)[:SLOWEST_SHOWN]:
        print(f"slowest: {seconds:.0f} s {part} {name}")


def show_failed_before() -> None:
    """The ends of what those parts of continuous integration printed that have failed before the tests (.ci/run)."""
    if not (logs := os.environ.get("SPW_PART_LOGS")):
        return
    for failed in sorted(pathlib.Path(logs).glob("*.failed")):
        print(f"failed before the tests: ./dev {failed.stem}")
        lines = failed.with_suffix(".log").read_text(errors="replace").splitlines()
        found = [line for line in lines if LOOKS_FAILED.search(line)]
        for line in found[-FAILED_LINES_SHOWN:] or lines[-FAILED_LINES_SHOWN:]:
            print(f"  {line[:REASON_CHARACTERS_MAX]}")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    expected = [name for name in os.environ.get("SPW_EXPECT", "").split(",") if name]
    unknown = [name for name in expected if name not in EXPECTABLE]
    if unknown:
        print(f"SPW_EXPECT: there is no {', '.join(unknown)} (there are {', '.join(EXPECTABLE)})", file=sys.stderr)
        return 2
    parts = [Part(root, name) for name in sys.argv[1:]]
    outcomes = [as_expected(outcome, expected) for part in parts for outcome in part_outcomes(part)]
    print("\n== summary")
    for part in parts:
        count = collections.Counter(o.result for o in outcomes if o.part == part.name)
        print(f"{part.name:8} {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    show_slowest(parts)
    for result in ("skipped", "failed"):
        for o in outcomes:
            if o.result == result:
                print(f"{result}: {o.part} {o.name}" + (f": {o.reason}" if o.reason else ""))
    show_failed_before()
    count = collections.Counter(o.result for o in outcomes)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
