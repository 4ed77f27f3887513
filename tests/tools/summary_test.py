"""scripts/test_summary.py: how it counts what tests left behind, of ctest and of pytest, and SPW_EXPECT."""
import os
import shutil
import subprocess
import sys

import tool_case

CTEST = """<?xml version="1.0"?>
<testsuite name="ctest">
  <testcase name="some_test" status="run" time="2.6"><system-out>fine</system-out></testcase>
  <testcase name="ring_test" status="run" time="1"><system-out/></testcase>
  <testcase name="fault_test" status="notrun" time="0"><skipped message=""/><system-out>skipped: io_uring_setup: Operation not permitted
</system-out></testcase>
  <testcase name="vectors" status="notrun" time="0"><skipped message=""/><system-out>skipped: this machine has not what -mavx512f asks for
</system-out></testcase>
</testsuite>
"""
RING = """<?xml version="1.0"?>
<testsuites><testsuite>
  <testcase classname="Ring" name="turns" status="run"/>
  <testcase classname="Ring" name="serves" status="run"><skipped message="userfaultfd: Operation not permitted"/></testcase>
</testsuite></testsuites>
"""
PYTEST = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
  <testcase classname="tests.endtoend.test_forks" name="test_both[mapped]" time="4.6"/>
  <testcase classname="tests.endtoend.test_forks" name="test_kills[mapped]" time="1.0"><failure message="kit.Wrong: exit code 3,&#10;last output:">all of it</failure></testcase>
  <testcase classname="tests.endtoend.test_full" name="test_ext4[mapped]" time="0.0"><skipped type="pytest.skip"
    message="mounting a small filesystem needs root">small_filesystem.py:24: mounting a small filesystem needs root</skipped></testcase>
  <testcase classname="" name="tests.endtoend.test_broken" time="0.0"><error message="collection failure">a syntax error</error></testcase>
</testsuite></testsuites>
"""


class Summary(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        (self.folder / "scripts").mkdir()
        shutil.copy(self.source / "scripts" / "test_summary.py", self.folder / "scripts")
        results = self.folder / "build" / "release" / "test-results"
        (results / "gtest").mkdir(parents=True)
        (results / "ctest.xml").write_text(CTEST)
        (results / "gtest" / "ring_test.xml").write_text(RING)
        (results / "finished").touch()
        self.endtoend = results / "endtoend.xml"

    def summary(self, expect, **more):
        return subprocess.run([sys.executable, self.folder / "scripts" / "test_summary.py", "release"], capture_output=True, text=True,
                              timeout=30, env={**os.environ, "SPW_EXPECT": expect, **more})

    def test_cases_are_counted_and_what_is_skipped_has_its_reason(self):
        done = self.summary("")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed, 3 skipped")
        self.assertIn("skipped: release Ring.serves: userfaultfd: Operation not permitted\n", done.stdout)
        self.assertIn("slowest: 3 s release some_test\n", done.stdout)

    def test_what_failed_before_the_tests_is_shown(self):
        logs = self.folder / "logs"
        logs.mkdir()
        for part, text in (("python", "collected 9 items\nFAILED test_sizes.py::test_one - too big\nbye\n"), ("docs", "no\n"), ("rust", "error\n")):
            (logs / f"{part}.log").write_text(text)
        (logs / "python.failed").touch()
        (logs / "docs.failed").touch()
        done = self.summary("", SPW_PART_LOGS=str(logs))
        self.assertIn("failed before the tests: ./dev docs\n  no\n"
                      "failed before the tests: ./dev python\n  FAILED test_sizes.py::test_one - too big\n2 passed", done.stdout)
        self.assertNotIn("rust", done.stdout)

    def test_what_is_expected_and_missing_is_a_failure(self):
        done = self.summary("io_uring,userfaultfd")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 2 failed, 1 skipped")
        self.assertIn("failed: release fault_test: skipped, though io_uring is expected here", done.stdout)
        self.assertIn("failed: release Ring.serves: skipped, though userfaultfd is expected here", done.stdout)

    def test_what_pytest_ran_is_counted_with_the_rest(self):
        self.endtoend.write_text(PYTEST)
        done = self.summary("root")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "3 passed, 3 failed, 3 skipped"), done.stdout + done.stderr)
        self.assertIn("slowest: 5 s release tests/endtoend/test_forks.py::test_both[mapped]\n", done.stdout)
        self.assertIn("failed: release tests/endtoend/test_forks.py::test_kills[mapped]: kit.Wrong: exit code 3, | last output:\n", done.stdout)
        self.assertIn("failed: release tests.endtoend.test_broken: collection failure\n", done.stdout)
        self.assertIn("failed: release tests/endtoend/test_full.py::test_ext4[mapped]: skipped, though root is expected here", done.stdout)

    def test_a_pytest_that_broke_off_is_a_failure(self):
        self.endtoend.touch()
        done = self.summary("")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "2 passed, 1 failed, 3 skipped"), done.stdout + done.stderr)
        self.assertIn("failed: release endtoend: pytest did not run to its end", done.stdout)

    def test_what_is_expected_and_there_changes_nothing(self):
        done = self.summary("spin,root")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_name_that_is_not_known_is_refused(self):
        done = self.summary("telepathy")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no telepathy", done.stderr)


if __name__ == "__main__":
    tool_case.main()
