"""scripts/nightly.py: the row and the table it writes, and that a part that fails keeps no other from running."""
import datetime
import importlib.util
import sys
from unittest import mock

import tool_case

PAGE = """# Nightly runs

| part | what runs |
|---|---|
| slow | the slow ones |

| date | commit | slow | llvm22 | csmith | models | crashes | tidy | rights | mmtorture | bare | gcc_torture | power | fuzz | faults |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 2026-01-01 02:00 | abc | passed; 3 s | passed; 3 s | passed; 3 s | passed; 3 s | passed; 3 s | passed; 3 s | not run | not run | not run | not run | not run | not run | not run |
"""
WHEN = datetime.datetime(2026, 1, 2, 3, 4)


class Nightly(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        spec = importlib.util.spec_from_file_location("nightly", self.source / "scripts" / "nightly.py")
        self.nightly = importlib.util.module_from_spec(spec)
        sys.modules["nightly"] = self.nightly
        spec.loader.exec_module(self.nightly)

    def test_the_newest_row_is_the_first_of_its_table(self):
        row = self.nightly.row(WHEN, "def", False, [])
        lines = self.nightly.with_row(PAGE, row).splitlines()
        self.assertEqual(lines, [*PAGE.splitlines()[:8], row, *PAGE.splitlines()[8:]])

    def test_a_table_without_rows_gets_its_first(self):
        page = "".join(PAGE.splitlines(keepends=True)[:8])
        self.assertEqual(self.nightly.with_row(page, self.nightly.row(WHEN, "def", False, [])).count("2026-01-02"), 1)

    def test_a_page_without_such_a_table_is_refused(self):
        with self.assertRaises(ValueError):
            self.nightly.with_row("# Nightly runs\n", self.nightly.row(WHEN, "def", False, []))

    def test_what_passed_adds_up(self):
        def row(result: str, programs: int, hours: str) -> str:
            return self.nightly.row(WHEN, "def", False, [self.nightly.Outcome("csmith", result, f"{programs} same as native, 0 wrong, 9 skipped"),
                                                         self.nightly.Outcome("fuzz", "passed", f"6 targets, 9 runs, {hours} processor-hours, 0 findings")])
        page = PAGE.replace("\n| date", "\nAll rows together: nothing yet.\n\n| date")
        for one in row("passed", 900, "1.25"), row("failed", 50, "0.50"), row("passed", 300, "2.00"):
            page = self.nightly.with_sums(self.nightly.with_row(page, one))
        self.assertIn("\nAll rows together: csmith: 1,200 same as native in 2 runs, fuzz: 3.75 processor-hours in 3 runs.\n", page)
        self.assertEqual(self.nightly.with_sums(PAGE), PAGE)

    def test_no_seed_is_tried_in_two_runs_of_a_minute_apart(self):
        def seeds(part: str, count: str, when: datetime.datetime) -> range:
            words = self.nightly.commands(part, False, when, self.source)[0]
            first = words[words.index("--seed") + 1]
            return range(first, first + words[words.index(count) + 1])
        for part, count in ("csmith", "--count"), ("mmtorture", "--seeds"), ("power", "--points"):
            one, other = (seeds(part, count, WHEN + datetime.timedelta(minutes=minutes)) for minutes in range(2))
            self.assertEqual(one.stop, other.start, part)
        self.assertLess(seeds("csmith", "--count", datetime.datetime(2033, 1, 1)).stop, 1 << 32)

    def test_a_row_has_date_commit_and_each_parts_result_and_time(self):
        outcome = self.nightly.Outcome
        row = self.nightly.row(WHEN, "def+", False, [outcome("csmith", "failed", "1 wrong | seed 3", 1900),
                                                     outcome("slow", "passed", "27 passed", 42.4)])
        self.assertEqual(row, "| 2026-01-02 03:04 | def+ | passed: 27 passed; 42 s | not run | **failed**: 1 wrong / seed 3; 32 min |"
                              " not run | not run | not run | not run | not run | not run | not run | not run | not run | not run |")

    def test_a_quick_row_says_so(self):
        self.assertIn("| 2026-01-02 03:04, quick |", self.nightly.row(WHEN, "def", True, []))

    def test_the_page_of_the_repository_takes_a_row(self):
        page = (self.source / "docs" / "NIGHTLY.md").read_text()
        self.assertIn("| 2026-01-02 03:04 |", self.nightly.with_row(page, self.nightly.row(WHEN, "def", False, [])))

    def test_what_ctest_and_pytest_report_is_added_up(self):
        ctest, pytest = self.folder / "slow.xml", self.folder / "slow.endtoend.xml"
        ctest.write_text('<testsuite name="Linux" tests="7" failures="1" disabled="1" skipped="2"/>')
        pytest.write_text('<testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10"/></testsuites>')
        self.assertEqual(self.nightly.tests_words([ctest, pytest]), "7 passed, 4 failed, 6 skipped")
        self.assertEqual(self.nightly.tests_words([pytest]), "4 passed, 3 failed, 3 skipped")

    def test_a_part_that_fails_or_hangs_keeps_no_other_from_running(self):
        page = self.folder / "NIGHTLY.md"
        page.write_text(PAGE)
        asked = {"slow": [["sh", "-c", "echo all broken; exit 3"]], "llvm22": [["sh", "-c", "echo skipped: no llvm; exit 77"]],
                 "csmith": [["sleep", "60"]]}
        patches = {"ROOT": self.folder, "DOCUMENT": page, "PART_LIMIT_S": 0.2, "commit_name": lambda: "def",
                   "commands": lambda part, *_: asked.get(part, [["sh", "-c", "echo all right"], ["sh", "-c", "echo and this"]])}
        with mock.patch.multiple(self.nightly, **patches), mock.patch.object(sys, "argv", ["nightly.py"]), \
                mock.patch.object(sys, "stdout"), mock.patch.object(sys, "stderr"):
            self.assertEqual(self.nightly.main(), 1)
        cells = page.read_text().splitlines()[8].split(" | ")
        self.assertEqual([cell.split(";")[0] for cell in cells[2:]],
                         ["**failed**: all broken", "skipped: no llvm", "**failed**: took longer than 0 s",
                          *["passed: and this"] * (len(self.nightly.PARTS) - len(asked))])


if __name__ == "__main__":
    tool_case.main()
