#!/usr/bin/env python3
"""Sums up what `./dev test` ran: test_summary.py PART...

For each part, build/PART/test-results holds `finished` (the part was built and run to its end), ctest.xml (ctest's JUnit
report; absent for a part that only builds), `skipped` (why the part could not be run) and gtest/*.xml (one GoogleTest
report a test program). A GoogleTest program counts by its cases, any other test as one. Prints which took longest, and what
failed and what was skipped, each with its reason; the last line is exactly "N passed, N failed, N skipped". Exit status 1 when anything failed.
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as xml

Outcome = collections.namedtuple("Outcome", "part name result reason")
SLOWEST_SHOWN = 10
REASON_CHARACTERS_MAX = 300


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


def part_outcomes(root: pathlib.Path, part: str) -> list[Outcome]:
    results = root / "build" / part / "test-results"
    if not (results / "finished").exists():
        return [Outcome(part, "build", "failed", "does not build")]
    if (results / "skipped").exists():
        return [Outcome(part, "all", "skipped", last_line((results / "skipped").read_text()))]
    if not (results / "ctest.xml").exists():
        return [Outcome(part, "build", "passed", "")]
    found = []
    for case in xml.parse(results / "ctest.xml").iter("testcase"):
        whole = ctest_outcome(part, case)
        report = results / "gtest" / f"{whole.name}.xml"
        cases = gtest_outcomes(part, report) if report.exists() else []
        found += cases or [whole]
        if cases and whole.result == "failed" and all(c.result != "failed" for c in cases):
            found.append(whole)  # the cases were fine but the program was not: it crashed late, leaked or hung
    return found


def show_slowest(root: pathlib.Path, parts: list[str]) -> None:
    times = []
    for part in parts:
        report = root / "build" / part / "test-results" / "ctest.xml"
        if report.exists():
            times += [(float(case.get("time", 0)), part, case.get("name")) for case in xml.parse(report).iter("testcase")]
    for seconds, part, name in sorted(times, reverse=True)[:SLOWEST_SHOWN]:
        print(f"slowest: {seconds:.0f} s {part} {name}")


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    parts = sys.argv[1:]
    outcomes = [outcome for part in parts for outcome in part_outcomes(root, part)]
    print("\n== summary")
    for part in parts:
        count = collections.Counter(o.result for o in outcomes if o.part == part)
        print(f"{part:8} {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    show_slowest(root, parts)
    for result in ("skipped", "failed"):
        for o in outcomes:
            if o.result == result:
                print(f"{result}: {o.part} {o.name}" + (f": {o.reason}" if o.reason else ""))
    count = collections.Counter(o.result for o in outcomes)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
