#!/usr/bin/env python3
"""What takes too long for every commit: nightly.py [--quick] [PART...], on a release build. `./dev nightly` builds it and calls this.

Runs one part after the other, each to its end however the others went, and says a line for each. What they print goes to
build/nightly/PART.log; of one that failed the last lines are shown. Then a row of all of them is written at the top of the table of
docs/NIGHTLY.md, and what all rows sum up to above it. Exit status 1 when a part failed. --quick: a small slice of each, to try this, and the row says so.
"""
import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
DOCUMENT = ROOT / "docs" / "NIGHTLY.md"
PARTS = ("slow", "llvm22", "csmith", "models", "crashes", "tidy", "rights", "mmtorture", "bare", "gcc_torture", "power", "fuzz", "faults")
PART_LIMIT_S = 4 * 3600
LOG_LINES_SHOWN = 30
CSMITH_PROGRAMS, CSMITH_PROGRAMS_QUICK = 1000, 6  # 1000 take half an hour
# Less than the quick number has too few of the rare cases that the test wants to have seen. 2,000,000 take some ten minutes.
CRASHES, CRASHES_QUICK = 2_000_000, 40_000
POWER_CUTS, POWER_CUTS_QUICK = 100_000, 240  # half an hour
FUZZ_TARGET_S = 20 * 60  # each of six: 2 processor-hours a run
FAULT_NUMBERS, FAULTS_QUICK = 60, 100  # Ns of each case and kind of failure, other ones each night; runs
NOT_USED = 77
FIRST = datetime.datetime(2026, 1, 1)
SYSTEM_PYTHON = "/usr/bin/python3"  # has Debian's pytest
TORTURE_SEEDS, TORTURE_SEEDS_QUICK = 50, 1  # for each kind of program; of 20,000 operations
# Other parts have them.
NOT_AMONG_THE_SLOW = "^model_|killed_"
# Of the words of a row's cells, where runs add up. One that failed adds nothing.
ADDED_UP = {"csmith": re.compile(r"\b(\d+) (same as native), 0 wrong"), "power": re.compile(r"\b(\d+) (cuts), .*\b0 lost"),
            "fuzz": re.compile(r"\b([\d.]+) (processor-hours), 0 findings")}
SUM_LINE = re.compile(r"^All rows together: .*$", re.MULTILINE)
RULE = re.compile(r"^\|(?: *:?-+:? *\|)+$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Outcome:
    part: str
    result: str  # "passed", "failed", "skipped" or "not run"
    words: str = ""
    seconds: float = 0

    def cell(self) -> str:
        """Of the table."""
        if self.result == "not run":
            return self.result
        result = f"**{self.result}**" if self.result == "failed" else self.result
        # What a log says may hold anything; a cell ends at a bar.
        words = self.words.replace("|", "/").replace("\n", " ")
        return f"{result}{': ' + words if words else ''}; {duration(self.seconds)}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def row(when: datetime.datetime, commit: str, quick: bool, outcomes: list[Outcome]) -> str:
    by_part = {outcome.part: outcome for outcome in outcomes}
    cells = [by_part.get(part, Outcome(part, "not run")).cell() for part in PARTS]
    return f"| {' | '.join([f'{when:%Y-%m-%d %H:%M}' + (', quick' if quick else ''), commit, *cells])} |"


def with_row(document: str, line: str) -> str:
    """The document with the row as the first of the table that has as many columns."""
    rule = next((rule for rule in RULE.finditer(document) if rule[0].count("|") == line.count("|")), None)
    if rule is None:
        raise ValueError(f"no table with {line.count('|') - 1} columns")
    return f"{document[:rule.end()]}\n{line}{document[rule.end():]}"


def with_sums(document: str) -> str:
    """The document, if it has a line for them, with what the cells of its passed runs add up to."""
    cells = [cell.strip() for line in document.splitlines() if line.count("|") == len(PARTS) + 3 for cell in line.split("|")]
    sums = []
    for part, words in ADDED_UP.items():
        found = [match for cell in cells if cell.startswith("passed") and (match := words.search(cell))]
        if found:
            sums.append(f"{part}: {sum(float(match[1]) for match in found):,.10g} {found[0][2]} in {len(found)} run{'s' if len(found) > 1 else ''}")
    return SUM_LINE.sub(lambda _: f"All rows together: {', '.join(sums) or 'nothing yet'}.", document)


def tests_words(reports: list[pathlib.Path]) -> str:
    """How many tests passed, failed and were skipped, by the reports of ctest and pytest."""
    suites = [suite for report in reports for suite in xml.parse(report).iter("testsuite")]

    def sum_of(*counts: str) -> int:
        return sum(int(suite.get(count, 0)) for suite in suites for count in counts)
    failed, skipped = sum_of("failures", "errors"), sum_of("skipped", "disabled")
    return f"{sum_of('tests') - failed - skipped} passed, {failed} failed, {skipped} skipped"


def last_line(log: pathlib.Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def number_of(when: datetime.datetime) -> int:
    """Of a run, one a minute: seeds follow from it, so that no two try the same, and are short enough for csmith (32 bits)."""
    return int((when - FIRST).total_seconds()) // 60


def commands(part: str, quick: bool, when: datetime.datetime, logs: pathlib.Path) -> list[list]:
    """What the part runs, in order."""
    def ctest(*arguments: str) -> list:
        return ["ctest", "--test-dir", BUILD, "--output-on-failure", "--no-tests=error", "-j", os.cpu_count(),
                "--output-junit", logs / f"{part}.xml", *arguments]

    def endtoend(*arguments: str) -> list:
        return [SYSTEM_PYTHON, "-B", "-m", "pytest", ROOT / "tests/endtoend", f"--build={BUILD}", "-n", os.cpu_count(),
                "--junit-xml", logs / f"{part}.endtoend.xml", *arguments]

    number = number_of(when)
    models = [[sys.executable, "-B", ROOT / "tests/model/check_model.py", model, BUILD / "tests/model" / f"{model.stem}_large",
               "safety" if quick else "large"] for model in sorted(ROOT.glob("tests/model/*.pml"))]
    programs, crashes = (CSMITH_PROGRAMS_QUICK, CRASHES_QUICK) if quick else (CSMITH_PROGRAMS, CRASHES)
    # By itself, since ctest ends it after two minutes.
    simulated = ["env", f"SPW_CRASHES={crashes}", f"SPW_CRASHES_SEED={number * CRASHES}", BUILD / "tests" / "crash_test", "--gtest_brief=1"]
    torture = ["--seed", number * TORTURE_SEEDS, "--seeds", TORTURE_SEEDS_QUICK if quick else TORTURE_SEEDS, "--operations", 20000, "--go-on"]
    found = {
        "slow": [endtoend("-k", "test_long_random_operations_end and [translated]")] if quick else
                [ctest("-L", "slow", "-E", NOT_AMONG_THE_SLOW), endtoend("-m", "slow", "-k", "not killed_")],
        "llvm22": [[ROOT / "dev", "test", *([] if quick else ["--slow"]), "llvm22"]],
        "csmith": [[sys.executable, "-B", ROOT / "tests/csmith/csmith_test.py", BUILD, "--count", programs, "--seed", number * CSMITH_PROGRAMS]],
        "models": models,
        "crashes": [simulated, *([] if quick else [ctest("-R", "killed_"), endtoend("-k", "killed_")])],
        "rights": [["env", "SPW_USERFAULT=none", *endtoend("-k", "[mapped] or [unmodified]", "-m", "root" if quick else "not slow")]],
        "mmtorture": [[sys.executable, "-B", ROOT / "tests/torture/mmtorture.py", "--build", BUILD, *torture]],
        "bare": [[sys.executable, "-B", ROOT / "tests/packages/bare_machine.py", *(["--quick"] if quick else [])]],
        "gcc_torture": [[sys.executable, "-B", ROOT / "tests/gcc_torture/gcc_torture_test.py", "--build", BUILD, "--setup",
                         *(["--slice", "1/100"] if quick else [])]],
        "power": [[SYSTEM_PYTHON, "-B", ROOT / "tests/power/power_cuts.py", BUILD, "--points", POWER_CUTS_QUICK if quick else POWER_CUTS,
                   "--seed", number * POWER_CUTS, "--jobs", os.cpu_count()]],
        "faults": [[sys.executable, "-B", ROOT / "tests/faults/every_nth.py", "--build", BUILD, "--shift", number,
                    *(["--sample", FAULTS_QUICK, "--seed", number] if quick else ["--most", FAULT_NUMBERS])]],
        "fuzz": [[ROOT / "dev", "fuzz", "--seconds", 10 if quick else FUZZ_TARGET_S]],
        "tidy": [[sys.executable, ROOT / "scripts/clang_tidy.py", "--changed" if quick else "--all"]],
    }
    return found[part]


def limit_of(part: str) -> float:
    """Of one of its commands. The fuzz targets share the processors."""
    return PART_LIMIT_S if part != "fuzz" else max(PART_LIMIT_S, 7 * FUZZ_TARGET_S / os.cpu_count())


def run(command: list, log, limit_s: float) -> int:
    """Its exit code; -1: it took too long, and all that it had started is gone."""
    log.write(f"$ {' '.join(map(str, command))}\n")
    log.flush()
    process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(limit_s)
    except BaseException as stopped:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(stopped, subprocess.TimeoutExpired):
            return -1
        raise


def run_part(part: str, quick: bool, when: datetime.datetime, logs: pathlib.Path) -> Outcome:
    reports, log = [logs / f"{part}.xml", logs / f"{part}.endtoend.xml"], logs / f"{part}.log"
    for report in reports:
        report.unlink(missing_ok=True)
    began_s = time.monotonic()
    with log.open("w") as opened:
        codes = [run(command, opened, limit_of(part)) for command in commands(part, quick, when, logs)]
    written = [report for report in reports if report.exists()]
    words = tests_words(written) if written else last_line(log)
    if -1 in codes:
        words = f"took longer than {duration(limit_of(part))}"
    result = "failed" if any(code not in (0, NOT_USED) for code in codes) else "skipped" if NOT_USED in codes else "passed"
    return Outcome(part, result, words.removeprefix("skipped: "), time.monotonic() - began_s)


def commit_name() -> str:
    """Of what is run, with a plus if more than is committed."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{DOCUMENT.relative_to(ROOT)}")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small slice of each part; the row says so")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"no such part: {part} ({', '.join(PARTS)})")
    when, commit = datetime.datetime.now(), commit_name()
    logs = ROOT / "build" / "nightly"
    logs.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for part in arguments.parts or PARTS:
        print(f"{part}: running", flush=True)
        outcomes.append(run_part(part, arguments.quick, when, logs))
        print(f"{part}: {outcomes[-1].cell()}", flush=True)
        if outcomes[-1].result == "failed":
            lines = (logs / f"{part}.log").read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            print("\n".join(f"  {line}" for line in lines), file=sys.stderr)
    DOCUMENT.write_text(with_sums(with_row(DOCUMENT.read_text(), row(when, commit, arguments.quick, outcomes))))
    failed = [outcome.part for outcome in outcomes if outcome.result == "failed"]
    print(f"nightly: {'failed: ' + ', '.join(failed) if failed else 'no part failed'}; the row is in {DOCUMENT.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
