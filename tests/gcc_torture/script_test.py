"""gcc_torture_test.py itself, on a few programs of ours: script_test.py BUILD

What is equal, left out and different, how it ends, and that it leaves nothing behind."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
LIMIT_S = 120
PROGRAMS = {
    "equal.c": "int values[1000] = {1}; int *at = &values[0];\nint main(void) { return *at - 1; }",
    "ieee/equal.c": "double x = 0.5;\nint main(void) { return x + x != 1.0; }",
    # Its variables are where they were declared, or not: the plugin is what it says it is.
    "moves.c": "#include <stdlib.h>\n"
               "int main(void) { volatile int here = 0; char* frame = __builtin_frame_address(0);\n"
               "return labs((char*)&here - frame) > 1 << 20; }",
    "nested.c": "int main(void) { int nested(void) { return 0; } return nested(); }",
    "fails.c": "int main(void) { return 3; }",
    "options.c": '/* { dg-options "-DGIVEN=1" } */\n/* { dg-additional-options "-DOTHER" { target avr-*-* } } */\n'
                 "#ifdef OTHER\n#error other\n#endif\nint main(void) { return GIVEN - 1; }",
    "prints.c": '#include <stdio.h>\n#include <stdlib.h>\n'
                'int main(void) { puts(getenv("SPILLWAY_MEMORY") ? "other" : "this"); return 0; }',
    "address.c": '#include <stdio.h>\nint main(void) { int here; printf("%p\\n", (void*)&here); return 0; }',
    # Looks whether it is ours.
    "differs.c": '#include <stdlib.h>\n#include <string.h>\nchar cap[9];\n'
                 'int main(void) { if (getenv("SPILLWAY_MEMORY")) strcpy(cap, getenv("SPILLWAY_MEMORY"));\n'
                 'return strcmp(cap, "") ? 9 : 0; }',
    "hangs.c": '#include <stdlib.h>\n#include <unistd.h>\n'
               'int main(void) { while (getenv("SPILLWAY_MEMORY")) pause(); return 0; }',
}


class Script(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        (self.folder / "ieee").mkdir()
        for name, text in PROGRAMS.items():
            (self.folder / name).write_text(text + "\n")

    def start(self, *arguments) -> subprocess.Popen:
        # Ctrl-C reaches it even where whoever runs this test ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return subprocess.Popen([sys.executable, "-B", HERE / "gcc_torture_test.py", "--build", BUILD, "--sources",
                                 self.folder, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_it(self, *arguments) -> tuple[int, str, str]:
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=LIMIT_S)
        return process.returncode, output, errors

    def expect_only(self, name: str, code: int, summary: str, *arguments) -> str:
        ended, output, errors = self.run_it("--only", f"^{name}$", "--list", *arguments)
        self.assertEqual((ended, errors), (code, ""), output)
        self.assertEqual(output.splitlines()[-1], summary)
        return output

    def test_programs_that_end_as_natively_are_equal(self):
        self.expect_only("(ieee/)?equal.c", 0, "2 programs, 16 comparisons: 16 equal, 0 left out, 0 different")

    def test_the_options_that_a_program_asks_for_are_given(self):
        self.expect_only("options.c", 0, "1 program, 8 comparisons: 8 equal, 0 left out, 0 different")

    def test_data_is_in_the_heap_where_that_is_said(self):
        self.expect_only("moves.c", 0, "1 program, 2 comparisons: 1 equal, 1 left out (ends otherwise natively, too, "
                         "with its data in the heap: 1), 0 different", "--engine=mapped", "--level=-O0")

    def test_what_clang_does_not_compile_or_run_is_left_out_with_the_reason(self):
        output = self.expect_only("(nested|fails|equal).c", 0,
                                  "3 programs, 3 comparisons: 1 equal, 2 left out (clang: nested functions: 1, "
                                  "the native program does not end with 0: 1), 0 different",
                                  "--engine=mapped", "--level=-O0", "--data=declared", "--jobs=1")
        self.assertIn("left out: nested.c -O0 mapped declared: clang: nested functions\n", output)

    def test_a_difference_is_a_line_with_what_to_run_and_fails(self):
        output = self.expect_only("differs.c", 1, "1 program, 1 comparisons: 0 equal, 0 left out, 1 different",
                                  "--engine=translated", "--level=-O2", "--data=heap")
        self.assertEqual(output.splitlines()[0], "differs.c -O2 translated heap: exit status 9; to see it: "
                         "tests/gcc_torture/gcc_torture_test.py --only '^differs\\.c$' --level=-O2 --engine=translated "
                         "--data=heap --keep")

    def test_other_output_is_a_difference_unless_it_is_another_each_time(self):
        one = ("--engine=mapped", "--level=-O0", "--data=declared")
        self.expect_only("prints.c", 1, "1 program, 1 comparisons: 0 equal, 0 left out, 1 different", *one)
        self.expect_only("address.c", 0, "1 program, 1 comparisons: 1 equal, 0 left out, 0 different", *one)

    def test_nothing_equal_fails(self):
        self.assertEqual(self.run_it("--only", "fails")[0], 1)

    def test_a_slice_is_every_nth_from_the_kth(self):
        three = ("--list", "--only", "^(fails|moves|nested).c", "--engine=mapped", "--level=-O0", "--data=declared")
        self.assertIn("left out: nested.c", self.run_it(*three, "--slice", "3/3")[1])
        code, output, _ = self.run_it(*three, "--slice", "2/3")
        self.assertEqual((code, output), (0, "1 program, 1 comparisons: 1 equal, 0 left out, 0 different\n"))

    def test_wrong_usage_is_a_line_and_2(self):
        for arguments, words in ((["--slice", "0/3"], "K/N"), (["--slice", "x"], "K/N"),
                                 (["--only", "("], "no regular expression"), (["--jobs", "0"], "at least one"),
                                 (["--only", "no_such_program"], "no program has such a name"),
                                 (["--build", "/nowhere"], "./dev build first")):
            code, output, errors = self.run_it(*arguments)
            self.assertEqual((code, output), (2, ""))
            self.assertIn(words, errors.splitlines()[-1])

    def test_without_sources_it_is_skipped_with_the_reason(self):
        empty = self.folder / "empty"
        empty.mkdir()
        code, output, _ = self.run_it("--sources", empty)
        self.assertEqual(code, 77)
        self.assertTrue(output.startswith(f"skipped: no *.c in {empty}"), output)

    def test_after_ctrl_c_nothing_runs_and_nothing_is_left(self):
        made = BUILD / "tests" / "gcc_torture"
        before = set(made.iterdir())
        process = self.start("--only", "hangs", "--engine=mapped", "--level=-O0", "--data=declared")
        running = []
        deadline = time.monotonic() + LIMIT_S
        while not running and time.monotonic() < deadline:
            time.sleep(0.05)
            new = [str(place) for place in set(made.iterdir()) - before]
            running = [path for path in pathlib.Path("/proc").glob("[0-9]*/exe")
                       if name_of(path).endswith("/mapped_declared") and name_of(path).startswith(tuple(new))]
        self.assertTrue(running)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT_S)
        self.assertEqual((process.returncode, output, errors), (130, "", "stopped\n"))
        self.assertEqual([name_of(path) for path in running if "mapped_declared" in name_of(path)], [])
        self.assertEqual(set(made.iterdir()) - before, set())


def name_of(link: pathlib.Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
