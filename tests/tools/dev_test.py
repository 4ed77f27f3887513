"""`./dev build` and `./dev test NAME`: what they show and choose. They build a small project of their own."""
import os
import pty
import shutil
import subprocess

import tool_case

STEPS = 40
PRESETS = """{"version": 6, "configurePresets": [
  {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}]}"""
# Each step is a process; one of them complains as compilers do, over several lines.
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(small NONE)
foreach(step RANGE 1 {STEPS})
  set(command true)
  if(step EQUAL 7)
    set(command cat ${{CMAKE_SOURCE_DIR}}/complaint)
  endif()
  add_custom_command(OUTPUT made${{step}} COMMAND ${{command}} COMMENT "Making ${{step}}" VERBATIM)
  list(APPEND made made${{step}})
endforeach()
add_custom_target(everything ALL DEPENDS ${{made}})
enable_testing()
foreach(test one_test other_test)
  add_custom_target(${{test}} COMMAND ${{CMAKE_COMMAND}} -E touch ${{test}}_built VERBATIM)
  add_test(NAME ${{test}} COMMAND ls ${{test}}_built)
endforeach()
"""
# Stands for tests/endtoend; the real one's option says which build is run.
CONFTEST = 'def pytest_addoption(parser): parser.addoption("--build")\n'
ENDS = """
import pathlib
import pytest

@pytest.mark.parametrize("engine", ["mapped", "unmodified"])
def test_forks(engine, pytestconfig):
    assert pathlib.Path(pytestconfig.getoption("--build")).samefile("build/release")

def test_that_breaks():
    assert False, "as it is meant to"
"""
COMPLAINT = "main.cc:3:1: warning: release: 4 of 5 are unused\n  int four;\n      ^\n1 warning generated.\n"


class Dev(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        shutil.copy(self.source / "dev", self.folder / "dev")
        for name, text in (("CMakePresets.json", PRESETS), ("CMakeLists.txt", PROJECT), ("complaint", COMPLAINT)):
            (self.folder / name).write_text(text)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.environment = tool_case.clean_environment(PATH=f"{self.tools}:{os.environ['PATH']}", TERM="xterm")
        self.stand_in("dpkg-query", "printf installed")  # whatever is asked for, so that nothing is installed

    def stand_in(self, name, command):
        program = self.tools / name
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)

    def break_a_step(self):
        text = PROJECT.replace("cat ${CMAKE_SOURCE_DIR}/complaint", "sh -c [[cat ../../complaint && false]]")
        (self.folder / "CMakeLists.txt").write_text(text)

    def dev(self, *words):
        return subprocess.run([self.folder / "dev", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=50, env=self.environment)

    def build_on_a_terminal(self):
        """The exit code, and what it wrote with the terminal's line ends."""
        ours, its = pty.openpty()
        with subprocess.Popen([self.folder / "dev", "build"], stdin=its, stdout=its, stderr=its,
                              env=self.environment, start_new_session=True) as process:
            os.close(its)
            written = b""
            try:
                while piece := os.read(ours, 4096):
                    written += piece
            except OSError:  # EIO: nobody has the other end any more
                pass
            os.close(ours)
        return process.returncode, written.decode()

    def test_a_line_now_and_then_where_there_is_no_terminal(self):
        done = self.dev("build")
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["release: configuring (cmake)", "release: building (ninja)"])
        progress = [line for line in lines if line.startswith("release: ") and " of " in line]
        self.assertEqual(progress, [f"release: {n} of {STEPS}" for n in range(STEPS // 10, STEPS + 1, STEPS // 10)])
        self.assertIn(COMPLAINT, done.stdout)
        self.assertNotIn("Making", done.stdout)

    def test_one_line_that_is_rewritten_on_a_terminal(self):
        code, written = self.build_on_a_terminal()
        self.assertEqual(code, 0, written)
        self.assertIn(COMPLAINT.replace("\n", "\r\n"), written)
        self.assertIn(f"\rrelease: {STEPS} of {STEPS} Making", written)
        lines = [line.rsplit("\r", 1)[-1] for line in written.replace("\r\n", "\n").split("\n")]
        status = [line for line in lines if line.startswith("release: ") and " of " in line]
        self.assertLessEqual(len(status), 3, written)  # before the complaint, and at the end

    def test_a_failure_is_shown_whole_and_ends_with_its_exit_code(self):
        self.break_a_step()
        done = self.dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn(COMPLAINT, done.stdout)
        self.assertIn("FAILED: made7", done.stdout)
        self.assertTrue(done.stdout.endswith("dev: the release build failed\n"), done.stdout)
        code, written = self.build_on_a_terminal()
        self.assertEqual(code, 1)
        self.assertIn(COMPLAINT.replace("\n", "\r\n"), written)

    def has_unit_tests(self):
        (self.folder / "scripts").mkdir()
        shutil.copy(self.source / "scripts/test_summary.py", self.folder / "scripts")
        (self.folder / "tests/base").mkdir(parents=True)
        for name in ("one_test", "other_test"):
            (self.folder / "tests/base" / f"{name}.cc").touch()
        (self.folder / "tests/endtoend").mkdir()
        for name, text in (("conftest.py", CONFTEST), ("test_ends.py", ENDS)):
            (self.folder / "tests/endtoend" / name).write_text(text)
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", "-C", self.folder, *words], check=True, capture_output=True)

    def test_a_unit_test_by_name_builds_nothing_else(self):
        self.has_unit_tests()
        done = self.dev("test", "one_test")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed, 0 skipped"), done.stdout)
        built = self.folder / "build/release"
        self.assertEqual([(built / name).exists() for name in ("one_test_built", "other_test_built", "made1")],
                         [True, False, False])

    def test_names_are_regular_expressions_and_one_that_matches_nothing_is_an_error(self):
        self.has_unit_tests()
        done = self.dev("test", "^one_", "other")  # everything is built, which these two are not part of
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 2 failed, 0 skipped"), done.stdout)
        self.assertRegex(done.stdout, r"(?m)^failed: release one_test: .*one_test_built.*No such file")
        self.assertRegex(done.stdout, r"(?m)^slowest: \d+ s release o\w+_test$")
        done = self.dev("test", "nothing_like_it")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.endswith("dev: no test of release has such a name: nothing_like_it\n"), done.stdout)

    def test_names_choose_end_to_end_tests_too(self):
        self.has_unit_tests()
        for names, passed, failed in ((["forks"], 2, 0), (["tests/endtoend/test_ends.py::test_forks[mapped]"], 1, 0),
                                      (["^one_", "forks.*unmod", "that_breaks"], 1, 2)):
            done = self.dev("test", *names)
            self.assertEqual(done.stdout.splitlines()[-1], f"{passed} passed, {failed} failed, 0 skipped", done.stdout)
            self.assertEqual(done.returncode, 1 if failed else 0, done.stdout)
        self.assertIn("failed: release tests/endtoend/test_ends.py::test_that_breaks: AssertionError: as it is meant to", done.stdout)

    def test_end_to_end_tests_that_cannot_be_read_are_a_failure(self):
        self.has_unit_tests()
        (self.folder / "tests/endtoend/test_ends.py").write_text("def broken(:\n")
        done = self.dev("test", "^one_")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dev: pytest does not list the end-to-end tests: ", done.stdout)
        self.assertIn("invalid syntax", done.stdout)

    def test_setup_says_what_apt_does(self):
        self.stand_in("apt-get", "exit 0")
        self.stand_in("sudo", 'exec "$@"')
        for name in ("dpkg-query", "apt-cache"):
            self.stand_in(name, "exit 1")
        lines = self.dev("setup").stdout.splitlines()
        self.assertEqual(lines[0], "setup: reading the lists of packages (apt-get update)")
        self.assertRegex(lines[1], r"^setup: installing \d\d packages, some minutes \(apt-get install\): clang-19 ")
        self.assertEqual(lines[2:], ["setup: done"])


if __name__ == "__main__":
    tool_case.main()
