"""power_cuts.py itself: script_test.py BUILD. That a disk which lies is found out in each case, and how it ends."""
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
SKIPPED = 77


class Script(unittest.TestCase):
    def run_it(self, *words: str) -> subprocess.CompletedProcess:
        done = subprocess.run([sys.executable, "-B", HERE / "power_cuts.py", BUILD, *words], capture_output=True, text=True, timeout=120)
        if done.returncode == SKIPPED:
            print(done.stdout.strip())
            sys.exit(SKIPPED)
        return done

    def test_what_a_lying_disk_loses_is_found_and_can_be_looked_at_again(self):
        for case in ("buffered", "mapped", "region", "sqlite-wal"):
            with self.subTest(case):
                done = self.run_it("--case", case, "--points", "60", "--seed", "1", "--lag", "12")
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                found = re.search(r"^  (--again (\S+) .*?): ", done.stdout, re.M)
                self.assertTrue(found, done.stdout)
                same = self.run_it(*found[1].split(), "--lag", "12")
                self.assertEqual(same.returncode, 1, same.stdout + same.stderr)
                self.assertIn("lost: ", same.stdout)
                pathlib.Path(found[2]).unlink()

    def test_words_that_say_too_little_are_refused(self):
        for words, what in ((("--points", "0"), "at least 1"), (("--again", "some.log"), "which --case?"), (("--case", "none"), "invalid choice")):
            done = self.run_it(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()
