"""What a run says of itself when it ends: the line, and the page of --report."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import tool_case

PYTHON = "/usr/bin/python3"
CAP = ("--memory", "24M", "--quota", "1M")
# 64 MiB, all of it used twice, so that it has to leave memory and come back.
SPILLS = """
pieces = [bytearray(bytes([i])) * (1 << 20) for i in range(64)]
print(sum(sum(piece[::4096]) for _ in range(2) for piece in pieces))
"""
PRINTS = f"{2 * sum(range(64)) * 256}\n"
FITS = "print(sum(bytearray(1 << 20)))"
LINE = re.compile(r"spillway: spilled ([\d.]+) MiB, read ([\d.]+) MiB; peak ([\d.]+) of 24\.0 MiB; [\d.]+ ?[KM]? misses, "
                  r"\d+ % of the time waiting(; try --memory \d+M: -\d+ %)?\n")


class ClosingCase(tool_case.ToolCase):
    def run_program(self, *words, options=(), **more):
        """Without --quiet, which the other tests have in their environment."""
        environment = tool_case.clean_environment(TMPDIR=str(self.folder))
        environment.pop("SPILLWAY_QUIET")
        command = [self.tool, "run", *CAP, "--store", self.folder, *options, "--", *words]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env=environment,
                              cwd=self.folder, **more)

    def setUp(self):
        super().setUp()
        if "userfaultfd is not allowed here" in self.call("run", "--engine", "mapped", "--", "/bin/true").stderr:
            self.skipTest("userfaultfd is not allowed here")


class Line(ClosingCase):
    def test_a_run_that_spilled_says_what_it_cost(self):
        done = self.run_program(PYTHON, "-c", SPILLS)
        self.assertEqual((done.returncode, done.stdout), (0, PRINTS))
        found = LINE.fullmatch(done.stderr)
        self.assertTrue(found, done.stderr)
        spilled, read, peak = map(float, found.groups()[:3])
        self.assertGreater(spilled, 64 - 24)
        self.assertGreater(read, 64 - 24)
        self.assertTrue(12 < peak < 24 + 32, peak)

    def test_a_run_that_fitted_says_nothing(self):
        done = self.run_program(PYTHON, "-c", FITS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "0\n", ""))

    def test_quiet_silences_it(self):
        for options in (("--quiet",), ("--quiet=on",)):
            done = self.run_program(PYTHON, "-c", SPILLS, options=options)
            self.assertEqual((done.stdout, done.stderr), (PRINTS, ""), options)
        self.assertTrue(LINE.fullmatch(self.run_program(PYTHON, "-c", SPILLS, options=("--quiet=off",)).stderr))

    def test_a_tree_of_processes_says_it_once_and_of_all(self):
        """Also where the shell at its root has no managed memory and ends by _exit()."""
        program = self.folder / "spills.py"
        program.write_text(SPILLS)
        for shell in ("sh", "bash"):
            done = self.run_program(shell, "-c", f"{PYTHON} {program} & {PYTHON} {program}; wait; exit 3")
            self.assertEqual((done.returncode, done.stdout), (3, 2 * PRINTS), shell)
            found = LINE.fullmatch(done.stderr)
            self.assertTrue(found, (shell, done.stderr))
            self.assertGreater(float(found[1]), 2 * (64 - 24), "of one of them alone")

    def test_a_store_in_memory_is_told_of_once(self):
        """Also by a run without a common cap, whose processes know nothing of each other; by each program without a run."""
        if not os.path.ismount("/dev/shm"):
            self.skipTest("no tmpfs at /dev/shm")
        program = f"import subprocess\nprint(len(bytearray(8 << 20)), flush=True)\nsubprocess.run(['{PYTHON}', '-c', 'bytearray(8 << 20)'])"
        for memory in ("64M", "auto"):
            done = self.expect_done("run", "--memory", memory, "--store", "/dev/shm", "--quota", "1M", "--", PYTHON, "-c", program)
            self.assertEqual(done.stderr.count("is on a tmpfs"), 1, (memory, done.stderr))
        library = self.expect_done("run", "--", "/bin/sh", "-c", "echo $LD_PRELOAD").stdout.strip()
        alone = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, timeout=60,
                               env=tool_case.clean_environment(LD_PRELOAD=library, SPILLWAY_MEMORY="64M", SPILLWAY_STORE="/dev/shm", SPILLWAY_QUOTA="1M"))
        self.assertEqual(alone.stderr.count("is on a tmpfs"), 2, alone.stderr)

    def test_a_worker_that_ends_at_once_counts(self):
        """As those of multiprocessing do."""
        worker = f"import os\nif os.fork() == 0:\n  exec({SPILLS!r}); import sys; sys.stdout.flush(); os._exit(0)\nos.wait()\n"
        done = self.run_program(PYTHON, "-c", worker)
        found = LINE.fullmatch(done.stderr)
        self.assertTrue(found, done.stderr)
        self.assertGreater(float(found[1]), 64 - 24)

    def test_a_file_that_took_the_number_of_standard_error_is_left_alone(self):
        mine = self.folder / "mine"
        taken = f"import os\nos.close(2)\nassert os.open({str(mine)!r}, os.O_RDWR | os.O_CREAT) == 2\n" + SPILLS
        done = self.run_program(PYTHON, "-c", taken)
        self.assertEqual((done.stdout, done.stderr), (PRINTS, ""))
        self.assertEqual(mine.read_text(), "")


class Page(ClosingCase):
    def data_of(self, page):
        text = pathlib.Path(page).read_text()
        found = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.S)
        self.assertEqual(len(found), 1)
        return json.loads(found[0])

    def test_the_page_has_what_the_run_did(self):
        page = self.folder / "page.html"
        stays = SPILLS + "import time\ntime.sleep(1)\n"  # with its memory, until somebody has looked
        done = self.run_program(PYTHON, "-c", stays, options=("--report", page))
        self.assertEqual((done.returncode, done.stdout), (0, PRINTS))
        self.assertTrue(LINE.fullmatch(done.stderr), done.stderr)
        data = self.data_of(page)
        self.assertEqual(data["command"], [PYTHON, "-c", stays])
        self.assertEqual(data["ended"], {"code": 0, "signal": 0})
        summary = data["summary"]
        self.assertEqual(f"spillway: {summary['closing_line']}\n", done.stderr)
        self.assertEqual(summary["cap_bytes"], 24 << 20)
        self.assertGreater(summary["spilled_bytes"], 40 << 20)
        columns = data["samples"]
        self.assertEqual({len(values) for values in columns.values()}, {len(columns["seconds"])})
        self.assertGreater(max(columns["memory_bytes"]), 10 << 20)
        self.assertGreater(max(columns["read_bytes_per_s"]), 0)
        self.assertEqual([each["program"] for each in data["processes"]], [PYTHON])
        self.assertGreater(data["latencies"]["count"], 0)
        self.assertEqual(sum(each["count"] for each in data["latencies"]["classes"]), data["latencies"]["count"])
        made_by = [each["name"] for each in data["allocations"] if each["kind"] == "allocation"]
        self.assertTrue(any("python3" in name for name in made_by), data["allocations"])
        self.assertAlmostEqual(sum(each["share"] for each in data["allocations"]), 1, 3)
        self.assertTrue(data["functions"], "no place in the code")
        self.assertGreater(data["curve"]["enough_bytes"], 24 << 20)
        self.assertIn(("engine", "mapped"), [(each["what"], each["value"]) for each in data["chosen"]])

    def test_the_page_has_what_the_run_warned_of(self):
        page = self.folder / "page.html"
        asks = SPILLS + "import ctypes\nctypes.CDLL(None).syscall(206, 1, ctypes.byref(ctypes.c_ulong()))\n"  # io_setup
        done = self.run_program(PYTHON, "-c", asks, options=("--report", page))
        warned = re.findall(r"^spillway: warning: (.*)$", done.stderr, re.M)
        self.assertEqual(len(warned), 1, done.stderr)
        self.assertEqual(self.data_of(page)["notices"], warned)

    def test_the_page_of_a_tree_has_all_its_processes(self):
        page, program = self.folder / "page.html", self.folder / "spills.py"
        program.write_text(SPILLS)
        done = self.run_program("sh", "-c", f"{PYTHON} {program} & {PYTHON} {program}; wait; exit 3",
                                options=("--report", page))
        self.assertEqual((done.returncode, done.stdout), (3, 2 * PRINTS))
        data = self.data_of(page)
        self.assertEqual(len(data["processes"]), 2)
        self.assertEqual(data["ended"], {"code": 3, "signal": 0})

    def test_the_tool_ends_as_the_program_does(self):
        page = self.folder / "page.html"
        done = self.run_program("sh", "-c", "kill -9 $$", options=("--report", page))
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertEqual(self.data_of(page)["ended"]["signal"], signal.SIGKILL)

    def test_signals_reach_the_program(self):
        page = self.folder / "page.html"
        waits = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: exit(5))\nprint('up', flush=True)\n"
        waits += "for _ in range(500): time.sleep(0.1)\n"  # a signal just before one long sleep would not end it
        command = [self.tool, "run", *CAP, "--store", self.folder, "--report", page, "--", PYTHON, "-c", waits]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                              env=tool_case.clean_environment(TMPDIR=str(self.folder))) as process:
            self.assertEqual(process.stdout.readline(), "up\n")
            process.terminate()
            self.assertEqual(process.wait(timeout=20), 5)
        self.assertEqual(self.data_of(page)["ended"]["code"], 5)

    def test_what_does_not_go_together_is_refused(self):
        page = self.folder / "page.html"
        for options, words in ((("--report", page, "--stats", "text"), "--stats: not together with --report"),
                               (("--report", self.folder), "it is a directory"),
                               (("--report", self.folder / "no" / "page.html"), "it cannot be written")):
            done = self.run_program("/bin/true", options=options)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


class Metrics(ClosingCase):
    def test_a_run_is_served_while_it_goes_on(self):
        """On a socket, until the program ends; the path is gone then."""
        socket_path = self.folder / "metrics.sock"
        waits = "import sys\n" + SPILLS.replace("print", "total = ", 1) + "print('up', flush=True)\nsys.stdin.read()\n"
        command = [self.tool, "run", *CAP, "--store", self.folder, "--metrics", socket_path, "--", PYTHON, "-c", waits]
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, env=tool_case.clean_environment(TMPDIR=str(self.folder))) as process:
            self.assertEqual(process.stdout.readline(), "up\n")
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(20)
                client.connect(str(socket_path))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n")
                answer = b"".join(iter(lambda: client.recv(65536), b"")).decode()
            said = process.communicate(input="", timeout=30)[1]
        if "this build" in said:
            self.skipTest(said.strip())
        self.assertEqual(process.returncode, 0, said)
        self.assertTrue(answer.startswith("HTTP/1.1 200"), answer[:200])
        self.assertTrue(answer.endswith("# EOF\n"), answer[-200:])
        told = dict(re.findall(r"^(spillway_run_\w+) (\S+)$", answer, re.M))
        self.assertEqual(float(told["spillway_run_memory_cap_bytes"]), 24 << 20, told)
        self.assertGreater(float(told["spillway_run_spilled_bytes_total"]), 40 << 20)
        self.assertRegex(answer, r'spillway_process_evictions_total\{pid="\d+",program="/usr/bin/python3"\} [1-9]')
        self.assertFalse(socket_path.exists())

    def test_an_address_that_cannot_be_had_is_refused_before_the_program_starts(self):
        done = self.run_program("sh", "-c", "echo started", options=("--metrics", "nonsense:port"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    tool_case.main()
