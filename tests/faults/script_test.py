"""every_nth.py itself: script_test.py BUILD

That calls fail when they are said to, and that a wrong end is seen, since a judge that lets everything pass would find nothing."""
import errno
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import CALLS, CASES, Case  # noqa: E402
from runs import FILE_BYTES, HERE, VERSIONS, Failure, Place, Run, programs, version_of  # noqa: E402

MADE = BUILD / "tests" / "faults"
WRITES, READS = CASES["write-unmodified"], CASES["read-cache"]
RIGHT = "synced 1\nclosed\nended\n"


def setUpModule() -> None:
    programs(BUILD, MADE)


class Scratch(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)


class Injector(Scratch):
    def run_failing(self, *words) -> tuple[subprocess.CompletedProcess, dict]:
        record = self.folder / "record"
        record.unlink(missing_ok=True)
        run = subprocess.run([MADE / "fail_nth", "--record", record, *map(str, words)], capture_output=True, text=True)
        return run, json.loads(record.read_text()) if record.exists() else {}

    def python(self, *words_before, code: str) -> tuple[subprocess.CompletedProcess, dict]:
        return self.run_failing(*words_before, "--", sys.executable, "-c", f"import os\n{code}")

    def test_the_nth_call_fails_once_or_lastingly(self):
        code = "for i in range(4):\n try: os.fsync(3); print(i)\n except OSError as e: print(e.errno)"
        opened = f"os.open('{self.folder}', os.O_RDONLY)\n" + code.replace("fsync(3)", "fsync(os.open('.', os.O_RDONLY))")
        for times, expected in ((1, [0, 5, 2, 3]), (2, [0, 5, 5, 3]), ("all", [0, 5, 5, 5])):
            run, record = self.python("--calls", "fsync", "--nth", 2, "--times", times, "--error", errno.EIO, code=opened)
            self.assertEqual([int(line) for line in run.stdout.split()], expected)
            self.assertEqual((record["seen"], record["failed"], record["fsync"]), (4, expected.count(5), 4))
            self.assertTrue(record["first"].startswith("fsync("))

    def test_half_of_a_transfer_is_made(self):
        file = self.folder / "file"
        code = f"fd = os.open('{file}', os.O_RDWR | os.O_CREAT)\nprint(os.{{}})"
        run, _ = self.python("--calls", "pwrite64", "--nth", 1, "--short", code=code.format("pwrite(fd, b'abcdef', 0)"))
        self.assertEqual((run.stdout, file.read_bytes()), ("3\n", b"abc"))
        run, _ = self.python("--calls", "pwritev,pwritev2", "--nth", 1, "--short", code=code.format("pwritev(fd, [b'ABCD', b'E', b'FGH'], 0)"))
        self.assertEqual((run.stdout, file.read_bytes()), ("4\n", b"ABCD"))
        run, _ = self.python("--calls", "pread64", "--nth", 1, "--short", code=code.format("pread(fd, 4, 0)"))
        self.assertEqual(run.stdout, "b'AB'\n")

    def test_a_call_that_is_denied_is_not_there(self):
        run, _ = self.python("--calls", "flock", "--deny", "fsync", code="try: os.fsync(2)\nexcept OSError as e: print(e.errno)")
        self.assertEqual(int(run.stdout), errno.ENOSYS)

    def test_the_exit_status_is_the_programs_or_its_signals(self):
        self.assertEqual(self.python("--calls", "flock", code="os._exit(7)")[0].returncode, 7)
        self.assertEqual(self.python("--calls", "flock", code="os.kill(os.getpid(), 9)")[0].returncode, 137)

    def test_bad_words_are_refused(self):
        for words in (("--calls", "nothing", "--", "true"), ("--calls", "fsync"), ("--calls", "fsync", "--nth", "x", "--", "true")):
            run, _ = self.run_failing(*words)
            self.assertEqual((run.returncode, run.stderr.count("\n")), (125, 1), words)


class Judge(Scratch):
    @classmethod
    def setUpClass(cls):
        cls.versions = [version_of(version) for version in range(VERSIONS)]

    def wrong(self, case: Case, code, output: str = "", errors: str = "", file: bytes | None = None, lasting: bool = False) -> str:
        place = Place(BUILD, MADE, self.folder / str(len(list(self.folder.iterdir()))), self.versions)
        place.file.write_bytes(self.versions[0] if file is None else file)
        return place.judge(case, Run(code, output, errors, 1, 1, {}, "", ""), RIGHT, lasting).wrong

    def test_what_may_be(self):
        zero, one, two = self.versions
        half = FILE_BYTES // 2 + 8
        self.assertEqual(self.wrong(WRITES, 0, RIGHT, "", two), "")
        self.assertEqual(self.wrong(WRITES, 74, "", "spillway: it failed\n", zero[:half] + one[half:]), "")
        self.assertEqual(self.wrong(WRITES, 74, "synced 1\n", "spillway: warning: it is old\nspillway: it failed\n", one[:half] + two[half:]), "")
        self.assertEqual(self.wrong(WRITES, 3, "", "spillway: warning: a disk\nprogram: msync failed\n", zero), "")
        self.assertEqual(self.wrong(WRITES, 74, RIGHT, "spillway: warning: a file mapping was not written whole\n", one), "")

    def test_a_program_may_be_told_before_what_lasts_ends_it(self):
        both = "program: pread failed: Input/output error\nspillway: it failed\n"
        self.assertEqual(self.wrong(WRITES, 74, "", both, lasting=True), "")
        self.assertIn("with 2 lines", self.wrong(WRITES, 74, "", both))
        self.assertIn("with 2 lines", self.wrong(WRITES, 74, "", both + "spillway: and it failed\n", lasting=True))

    def test_what_may_not_be(self):
        zero, one, two = self.versions
        half = FILE_BYTES // 2 + 8
        line = "spillway: it failed\n"
        for expected, arguments in {
                "hangs": (None,), "SIGSEGV": (139,), "SIGABRT": (134, "", line), "other output": (0, "ended\n", "", two),
                "exit code 1": (1, "", line), "with 0 lines": (74,), "with 2 lines": (74, "", line * 2), "without a word": (3,),
                "lost: the file has version 1": (0, RIGHT, "", one[:half] + two[half:]),
                "lost: the file has version 0": (74, "synced 1\n", line, one[:half] + zero[half:]),
                "something else": (74, "", line, zero[:half] + bytes(8) + zero[half + 8:]),
                "bytes": (74, "", line, zero[:half])}.items():
            self.assertIn(expected, self.wrong(WRITES, *arguments), expected)
        self.assertIn("lost", self.wrong(READS, 0, RIGHT, "", one))

    def test_a_region_that_lacks_a_section_is_seen(self):
        place = Place(BUILD, MADE, self.folder / "region", self.versions)
        place.folder.mkdir(exist_ok=True)
        region = CASES["region-unmodified"]
        run = place.run(region, Failure(CALLS["syncs"], "EIO", "once", 0))
        self.assertEqual(place.judge(region, run, run.output).wrong, "")
        run.output += "committed 14\n"
        self.assertIn("holds section 12, and 14 was confirmed", place.judge(region, run, run.output).wrong)
        with place.region.open("r+b") as file:
            file.write(bytes(4096))
        self.assertIn("spillway check says", place.judge(region, run, run.output).wrong)


class Script(unittest.TestCase):
    def run_script(self, *words) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", HERE / "every_nth.py", "--build", BUILD, *map(str, words)], capture_output=True, text=True)

    def test_all_syncs_of_a_region_fail_to_the_last(self):
        run = self.run_script("--case", "region-unmodified", "--call", "syncs", "--error", "EIO", "--mode", "once", "--from", 50)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("1 nothing failed", run.stdout)
        self.assertIn("0 kinds of wrong ends", run.stdout)

    # What these fail by has been mended; a sample may miss it.
    def test_a_sync_that_is_interrupted_is_repeated(self):
        run = self.run_script("--case", "region-unmodified", "--call", "syncs", "--error", "EINTR", "--most", 4)
        self.assertRegex(run.stdout, r"syncs EINTR once: \d+ calls, (1 nothing failed, )?\d right\n", run.stdout + run.stderr)

    def test_want_of_memory_ends_a_run_with_a_line(self):
        run = self.run_script("--case", "heap-unmodified", "--call", "maps", "--call", "advice", "--mode", "lasting", "--most", 12)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertRegex(run.stdout, "maps ENOMEM lasting: .* stopped")

    def test_what_is_not_there_is_refused(self):
        self.assertIn("no case is called nothing", self.run_script("--case", "nothing").stderr)
        self.assertNotEqual(self.run_script("--case", "nothing").returncode, 0)
        self.assertEqual(self.run_script("--stride", 0).returncode, 2)

    def test_a_run_in_which_nothing_could_fail_is_no_success(self):
        run = self.run_script("--case", "region-unmodified", "--call", "syncs", "--from", 5000)
        self.assertEqual(run.returncode, 1)
        self.assertIn("nothing was tried", run.stdout)


if __name__ == "__main__":
    unittest.main()
