"""What the tests of the command line tool share: running it with a clean environment, and the expectations."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

_arguments = None


def clean_environment(**extra):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPILLWAY_")}
    environment["SPILLWAY_QUIET"] = "on"
    environment.update(extra)
    return environment


class ToolCase(unittest.TestCase):
    def setUp(self):
        self.tool = _arguments.tool
        self.programs = pathlib.Path(_arguments.programs)
        self.source = pathlib.Path(_arguments.source)
        folder = tempfile.TemporaryDirectory(prefix="spillway-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = str(self.programs / "marked_by_symbol")

    def call(self, *words, env=None, cwd=None):
        return subprocess.run([self.tool, *map(str, words)], capture_output=True, text=True, timeout=30, cwd=cwd,
                              env=clean_environment(**(env or {})))

    def expect_refused(self, line, *words, env=None):
        """One line on standard error that starts with `spillway: ` and `line`; nothing else; exit code 2."""
        done = self.call(*words, env=env)
        self.assertEqual(done.stdout, "", words)
        self.assertTrue(done.stderr.startswith(f"spillway: {line}"), f"{words}: {done.stderr!r}, not {line!r}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.returncode, 2, words)
        return done.stderr

    def expect_done(self, *words, env=None, cwd=None):
        done = self.call(*words, env=env, cwd=cwd)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        return done


class RecordedResult(unittest.TextTestResult):
    """Remembers every case, so that `./dev test` counts them as it counts GoogleTest's."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.cases = []

    def stopTest(self, test):
        super().stopTest(test)
        self.cases.append(test)

    def write(self, directory, name):
        failed = {test for test, _ in self.failures + self.errors}
        skipped = {test: reason for test, reason in self.skipped}
        suites = xml.Element("testsuites")
        suite = xml.SubElement(suites, "testsuite", name=name)
        for test in self.cases:
            case = xml.SubElement(suite, "testcase", name=test._testMethodName, classname=type(test).__name__, status="run")
            if test in failed:
                xml.SubElement(case, "failure")
            elif test in skipped:
                xml.SubElement(case, "skipped", message=skipped[test])
        xml.ElementTree(suites).write(pathlib.Path(directory) / f"{name}.xml")


def main():
    global _arguments
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True, help="of the test in ctest")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--programs", required=True, help="folder of the marked programs")
    parser.add_argument("--source", required=True, help="root of the repository")
    _arguments, rest = parser.parse_known_args()
    runner = unittest.TextTestRunner(verbosity=2, resultclass=RecordedResult)
    program = unittest.main(module="__main__", argv=[sys.argv[0], *rest], testRunner=runner, exit=False)
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):
        program.result.write(output.removeprefix("xml:"), _arguments.name)
    sys.exit(not program.result.wasSuccessful())
