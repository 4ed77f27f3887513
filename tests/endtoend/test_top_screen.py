"""`spillway top` on a terminal: what the screen shows, what keys do, and how the terminal is left."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from kit import SMALL, Kit, MIB, expect, start
from terminal import Bytes, Screen

pytestmark = pytest.mark.engines("unmodified")
CAP_BYTES = 64 * MIB
INTERVAL = ("--interval", "0.2")
TO_FULL_SCREEN, FROM_FULL_SCREEN, SHOW_CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


def _tool(kit: Kit) -> pathlib.Path:
    return kit.build / "bin" / "spillway"


RUN_CAP_BYTES = 30 << 20  # less than any of its programs needs: else the first to begin may keep all of its memory, and miss nothing


@contextlib.contextmanager
def _run_of(kit: Kit, count: int) -> Iterator[list[int]]:
    """The process ids of a shell below `spillway run`, and of so many programs below it that miss all the time."""
    program = kit.compile("misses.cc", "-O2")
    never = kit.place / "never"  # told_to_end() reads it
    os.mkfifo(never)
    kept_open = os.open(never, os.O_RDWR)
    script = f"for i in $(seq {count}); do {program} < {never} & echo $!; done; wait"
    run = (_tool(kit), "run", "--memory", RUN_CAP_BYTES, "--store", kit.store, "--", "/bin/sh", "-c", script)
    try:
        with start(kit, *run) as process:
            lines = [process.stdout.readline().strip() for _ in range(2 * count)]
            expect(lines.count("begun") == count, f"the programs did not begin: {lines} {process.poll()}")
            yield [process.pid, *(int(line) for line in lines if line.isdigit())]
    finally:
        os.close(kept_open)
        never.unlink()


@contextlib.contextmanager
def _watched(kit: Kit, name: str = "watched.cc", **more) -> Iterator[subprocess.Popen]:
    with start(kit, kit.compile(name, *SMALL.flags), env=SMALL.environment(), **more) as process:
        expect(process.stdout.readline() != "", "the program did not begin")
        yield process


# Whether each process misses within the time depends on how the run divides its cap, which is being looked into.
@pytest.mark.slow
def test_eight_processes_are_a_tree_to_walk_in(kit: Kit) -> None:
    with _run_of(kit, 8) as (shell, *workers), Screen(kit.place, _tool(kit), "top", workers[0], *INTERVAL, columns=120, lines=34) as screen:
        screen.until(r"memory +\[.*\] .* of 30\.0 MiB")
        row = re.compile(r"^ +(\d+) +([\d.]+) MiB +([\d.]+) +([\d.]+k?) [├└]─ misses", re.M)
        text = screen.until_it(lambda seen: len(row.findall(seen)) == 8 and all(each[3] != "0" for each in row.findall(seen)),
                               "eight processes and what they miss")
        expect(re.search(rf"^ +{shell} .*sh -c", text, re.M) is not None, text)
        rows = row.findall(text)
        expect(sorted(int(each[0]) for each in rows) == sorted(workers), f"{workers} {text}")
        shares = [float(each[2]) for each in rows]
        expect(50 < sum(shares) < 140 and max(shares) < 100, f"shares of the cap: {shares}\n{text}")
        expect(all(each[3] != "0" for each in rows), text)
        # By number the last one is the last line.
        screen.press("s", "s", "s")
        screen.until("s sort: number")
        screen.press("End", "Enter")
        screen.until(rf"\({max(workers)}\)  mapped")
        screen.press("Home", "Enter")
        screen.until(rf"process {shell} does not run under Spillway")
        screen.press("Escape")
        screen.until(rf"^ +{min(workers)} +9 .* 30\.0 MiB .*misses")
        screen.press("q")
        expect(screen.exit_code() == 0, screen.text())


def test_keys_open_what_they_say(kit: Kit) -> None:
    with _watched(kit, "misses.cc") as process, Screen(kit.place, _tool(kit), "top", process.pid, *INTERVAL, columns=120, lines=30) as screen:
        screen.until(r"hit ratio +\d")
        screen.until(r"^ +\d+ % +32\.0 MiB +0x[0-9a-f]+ .*make_large_array\(\)")
        screen.press("l")
        screen.until(r"p50 .*misses since the look began")
        screen.until(r"\d [um]s +\d+\.\d % +\d+\.\d % █")
        screen.press("r")
        screen.until(r"s  thread \d+  block \d+ at 0x[0-9a-f]+ missed, in ")
        screen.press("t")
        screen.until(rf"^ +{process.pid} .*misses")
        screen.press("?")
        text = screen.until("half of them at most")
        expect(all(word in text for word in ("quit", "pause", "allocations", "latencies", "trace", "sort")), text)
        screen.press("Escape")
        screen.until("hit ratio")
        screen.press("+")
        screen.until("every 0.5 s")
        screen.press("p")
        paused = screen.until("PAUSED")
        time.sleep(1.5)
        expect(screen.text() == paused, "the screen changes while it is paused")
        screen.press("p")
        screen.until_it(lambda text: "PAUSED" not in text and text != paused, "something new")
        screen.press("q")
        expect(screen.exit_code() == 0, screen.text())


def test_the_screen_follows_the_size_of_the_terminal(kit: Kit) -> None:
    with _watched(kit, "misses.cc") as process, Screen(kit.place, _tool(kit), "top", process.pid, *INTERVAL, columns=110, lines=40) as screen:
        screen.until(r"graphs: the last")
        screen.resize(40, 10)
        text = screen.until_it(lambda seen: re.search(r"^misses +[\d.]+k?/s", seen, re.M) and "PID" not in seen and "? help" in seen and len(seen.splitlines()) <= 10,
                               "less")
        expect(all(len(line) <= 40 for line in text.splitlines()) and "memory" in text, text)
        screen.resize(20, 3)
        screen.until("^too small$")
        screen.resize(80, 24)
        text = screen.until(r"─ t processes")
        expect("q quit" in text.splitlines()[23], text)


def test_colours_and_letters_are_the_terminal_s(kit: Kit) -> None:
    """The colours of SGR are 30 to 49, and 38;5 for more of them."""
    colours = re.compile(r"\x1b\[(?:\d+;)*3[1-7]")
    with _watched(kit, "misses.cc") as process:
        words = (_tool(kit), "top", process.pid, *INTERVAL)
        with Screen(kit.place, *words) as screen:
            screen.until("▓|█")
            expect(colours.search(screen.text(with_styles=True)) is not None, "nothing is in colour")
        for env in ({"NO_COLOR": "1"}, {"TERM": "vt100"}):
            with Screen(kit.place, *words, env=env) as screen:
                screen.until("hit ratio")
                text = screen.text(with_styles=True)
                expect(colours.search(text) is None, f"{env}: {text}")
        for env in ({"LC_ALL": "C"}, {"TERM": "linux"}):
            with Screen(kit.place, *words, env=env) as screen:
                text = screen.until(r"memory +\[.*[#|]")
                expect(text.isascii(), f"{env}: {text}")


def test_runs_are_listed_to_choose_from(kit: Kit) -> None:
    with _watched(kit) as first, _watched(kit, "misses.cc") as second, Screen(kit.place, _tool(kit), "top", *INTERVAL, lines=60) as screen:
        screen.until("choose a run")
        for process in (first, second):
            screen.until(rf"^ +{process.pid} +1 .*{pathlib.Path(process.args[0]).name}")
        # Others may run on this machine, above or below.
        for _ in range(60):
            screen.press("Down")
        for _ in range(60):
            if re.search(rf"\x1b\[7m[^\n]* {second.pid} ", screen.text(with_styles=True)):
                break
            screen.press("Up")
            time.sleep(0.1)
        screen.press("Enter")
        screen.until(rf"\({second.pid}\)")
        screen.press("Escape")
        screen.until("choose a run")


def test_the_terminal_is_left_as_it_was(kit: Kit) -> None:
    """By q, by signals, those of bugs too, and when the process ends."""
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV)
    with _watched(kit) as process:
        for way in ("q", b"\x03", *signals):
            with Bytes(_tool(kit), "top", process.pid, *INTERVAL, env={}) as terminal:
                terminal.until(b"hit ratio")
                expect(terminal.settings() != terminal.settings_before, "keys are read line by line")
                if isinstance(way, signal.Signals):
                    terminal.process.send_signal(way)
                    wanted = -way
                elif way == "q":
                    terminal.press(b"q")
                    wanted = 0
                else:
                    # The pty is no session's terminal here, so that Ctrl-C is not a signal by itself.
                    terminal.process.send_signal(signal.SIGINT)
                    wanted = -signal.SIGINT
                _expect_restored(terminal, wanted, str(way))
        with Bytes(_tool(kit), "top", process.pid, *INTERVAL, env={}) as terminal:
            terminal.until(b"hit ratio")
            process.stdin.close()
            process.wait(30)
            _expect_restored(terminal, 0, "the process has ended")
            after = terminal.written.rpartition(FROM_FULL_SCREEN)[2]
            expect(f"{process.pid} has ended".encode() in after and b"hit ratio" in after, repr(after))


def _expect_restored(terminal: Bytes, wanted: int, what: str) -> None:
    code = terminal.end()
    expect(code == wanted, f"{what}: exit code {code}, not {wanted}: {terminal.written[-300:]!r}")
    _, began, rest = terminal.written.rpartition(TO_FULL_SCREEN)
    expect(began != b"" and FROM_FULL_SCREEN in rest and SHOW_CURSOR in rest, f"{what}: {rest[-300:]!r}")
    expect(terminal.settings() == terminal.settings_before, f"{what}: the terminal has other settings")


def test_a_page_cannot_be_cut_off_and_one_of_zeros_is_none(kit: Kit) -> None:
    with _watched(kit) as process:
        with open(_page_of(process.pid), "r+b") as file:
            whole = os.fstat(file.fileno()).st_size
            for size in (0, 4096, whole - 1, whole + 1):
                try:
                    os.ftruncate(file.fileno(), size)
                except PermissionError:
                    continue
                expect(False, f"the page of counters could be made {size} bytes long")
            expect(_refusal(kit, process.pid) is None, "the whole page is refused")
            file.write(bytes(4096))
            file.flush()
        expect(_refusal(kit, process.pid) is not None, "what is all zero is a page")


def _page_of(process: int) -> str:
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        if "spillway-live" in os.readlink(entry):
            return str(entry)
    raise AssertionError("it has no page")


def _refusal(kit: Kit, process: int) -> str | None:
    done = subprocess.run([_tool(kit), "top", str(process), "--count", "1"], capture_output=True, text=True, timeout=30)
    return done.stderr if done.returncode == 2 and done.stderr.count("\n") == 1 else None


def test_a_hostile_name_is_shown_and_not_obeyed(kit: Kit) -> None:
    name = kit.place / "a\x1b]0;owned\x07\nb\x1b[31m"
    shutil.copy(kit.compile("misses.cc", *SMALL.flags), name)
    with start(kit, name, env=SMALL.environment()) as process:
        expect(process.stdout.readline() == "begun\n", "the program did not begin")
        seen = subprocess.run([_tool(kit), "top", str(process.pid), "--count", "1", "--interval", "0.3"], capture_output=True, timeout=30)
        expect(seen.returncode == 0 and b"\x1b" not in seen.stdout + seen.stderr and b"\x07" not in seen.stdout, repr(seen.stdout))
        expect(rb"a\x1b]0;owned\x07\x0ab\x1b[31m" in seen.stdout.splitlines()[0], repr(seen.stdout))
        with Bytes(_tool(kit), "top", process.pid, *INTERVAL, env={}) as terminal:
            terminal.until(b"hit ratio")
            terminal.until(rb"a\x1b]0;owned\x07\x0ab")
            terminal.press(b"q")
            terminal.end()
            expect(b"\x1b]0;" not in terminal.written and b"\x07" not in terminal.written, repr(terminal.written))


def test_what_is_no_full_terminal_gets_text(kit: Kit) -> None:
    with _watched(kit) as process:
        for term, why in (("dumb", b"cannot place text"), ("nosuch-terminal", b"no such terminal is known"), ("", b"TERM is not set")):
            with Bytes(_tool(kit), "top", process.pid, *INTERVAL, env={"TERM": term}) as terminal:
                terminal.until(b"hit ratio")
                terminal.process.send_signal(signal.SIGINT)
                expect(terminal.end() == -signal.SIGINT, f"TERM={term}: exit code {terminal.process.returncode}, {terminal.written!r}")
                expect(why in terminal.written and b"\x1b" not in terminal.written, f"{term}: {terminal.written[:300]!r}")
                expect(terminal.settings() == terminal.settings_before, "the terminal has other settings")
        with Bytes(_tool(kit), "top", process.pid, "--plain", "--count", "2", *INTERVAL, env={}) as terminal:
            expect(terminal.end() == 0 and terminal.written.count(b"hit ratio") == 2 and b"\x1b" not in terminal.written, repr(terminal.written))


def test_a_process_that_has_yet_to_use_memory_is_waited_for(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags)
    script = f"read line; exec {program}"
    run = (_tool(kit), "run", "--memory", "8M", "--store", kit.store, "--", "/bin/sh", "-c", script)
    with start(kit, *run) as process:
        view = subprocess.Popen([_tool(kit), "top", "--wait", str(process.pid), "--count", "1", "--interval", "0.2"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect("waiting for process" in view.stderr.readline() and view.poll() is None, "it does not wait")
        process.stdin.write("go on\n")
        process.stdin.flush()
        shown, _ = view.communicate(timeout=30)
        expect(view.returncode == 0 and f"({process.pid})" in shown, shown)
    gone = subprocess.run([_tool(kit), "top", "--wait", str(process.pid)], capture_output=True, text=True, timeout=30)
    expect(gone.returncode == 2 and "there is no process" in gone.stderr, gone.stderr)


def _alone(kit: Kit, script: str) -> subprocess.CompletedProcess:
    """The script where no other process is to be seen."""
    alone = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("no namespace of process ids can be made here (unshare --pid --mount-proc)")
    return subprocess.run([*alone, "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60, env=kit.environment({}))


@pytest.mark.root
def test_where_nothing_runs_a_line_says_how_to_start(kit: Kit) -> None:
    seen = _alone(kit, f"{_tool(kit)} top")
    expect(seen.returncode == 2 and seen.stdout == "" and seen.stderr.count("\n") == 1, seen.stdout + seen.stderr)
    expect("spillway run --memory 4G -- PROGRAM" in seen.stderr and "--wait" in seen.stderr, seen.stderr)


@pytest.mark.root
def test_a_run_that_is_to_come_is_waited_for(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags)
    never = kit.place / "never"
    os.mkfifo(never)
    seen = _alone(kit, f"(sleep 0.5; exec 9<>{never}; exec {_tool(kit)} run --memory 8M --store {kit.store} -- {program} <&9) & "
                       f"{_tool(kit)} top --wait --count 1 --interval 0.3; code=$?; kill %1; exit $code")
    expect(seen.returncode == 0 and "waiting for a program" in seen.stderr, f"{seen.returncode} {seen.stderr}")
    expect(re.search(rf"^program +\S*{program.name} \(\d+\)", seen.stdout, re.M) is not None, seen.stdout)


def test_a_stopped_view_gives_the_terminal_back_for_so_long(kit: Kit) -> None:
    with _watched(kit) as process, Bytes(_tool(kit), "top", process.pid, *INTERVAL, env={}) as terminal:
        terminal.until(b"hit ratio")
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.until(FROM_FULL_SCREEN)
        deadline = time.monotonic() + 30
        while "State:\tT" not in pathlib.Path(f"/proc/{terminal.process.pid}/status").read_text():
            expect(time.monotonic() < deadline, "it does not stop")
            time.sleep(0.05)
        expect(terminal.settings() == terminal.settings_before, "the terminal has other settings while it is stopped")
        terminal.written = b""
        terminal.process.send_signal(signal.SIGCONT)
        terminal.until(TO_FULL_SCREEN)
        terminal.until(b"hit ratio")
        terminal.press(b"q")
        _expect_restored(terminal, 0, "after it was stopped")
