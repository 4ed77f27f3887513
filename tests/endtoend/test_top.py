"""`spillway top`: what one sees of a running program."""
import os
import pathlib
import re
import subprocess

import pytest
from kit import EXIT_USAGE, HERE, SMALL, Kit, expect, start

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified")


def _top(kit: Kit, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([kit.build / "bin" / "spillway", "top", *map(str, arguments)], capture_output=True, text=True, timeout=30)


def test_a_running_program_can_be_watched(kit: Kit) -> None:
    program = kit.compile("watched.cc", *SMALL.flags)
    with start(kit, program, env=SMALL.environment()) as process:
        expect(process.stdout.readline().startswith("filled "), "the program did not begin")
        seen = _top(kit, process.pid, "--count", 1, "--interval", 0.1)
        process.stdin.close()
        expect(process.wait(30) == 0, f"the program ended with {process.returncode}")
    expect(seen.returncode == 0 and seen.stderr == "", seen.stderr)
    engine = "translated" if kit.engine == "translated" else "mapped"
    expect(re.search(rf"^program +\S*{program.name} \({process.pid}\)", seen.stdout, re.M) is not None, seen.stdout)
    expect(re.search(rf"^engine +{engine}, blocks of 4.0 KiB", seen.stdout, re.M) is not None, seen.stdout)
    memory = re.search(r"^memory +([\d.]+) MiB of 8.0 MiB in use .* about ([\d.]+ .iB) of it dirty", seen.stdout, re.M)
    expect(memory is not None and 2 < float(memory[1]) <= 8, seen.stdout)
    gone = _top(kit, process.pid)
    expect(gone.returncode == EXIT_USAGE and gone.stderr.count("\n") == 1 and "does not run under Spillway" in gone.stderr, gone.stderr)


def test_what_happens_to_blocks_can_be_followed(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags)
    with start(kit, program, env=SMALL.environment()) as process:
        expect(process.stdout.readline() == "begun\n", "the program did not begin")
        seen = _top(kit, process.pid, "--trace", "--count", 2, "--interval", 0.2)
        process.stdin.close()
        expect(process.wait(30) == 0, f"the program ended with {process.returncode}")
    lines = seen.stdout.splitlines()
    event = re.compile(r"(\d+\.\d{6}) s  thread \d+  (block \d+ at 0x[0-9a-f]+ (missed, in [\d.]+ us|evicted|written.*)|.*)$")
    more = [line for line in lines if re.fullmatch(r"\.\.\. \d+ more", line)]
    events = [event.match(line) for line in lines if line not in more]
    expect(seen.returncode == 0 and seen.stderr == "" and None not in events and len(more) <= 1, seen.stdout[-2000:] + seen.stderr)
    kinds = " ".join(found[3] or "" for found in events)
    expect("missed" in kinds and "evicted" in kinds, seen.stdout[-2000:])


def _misses_in(kit: Kit, program: pathlib.Path) -> str:
    """What is said of a program that misses most of the time."""
    with start(kit, program, env=SMALL.environment()) as process:
        expect(process.stdout.readline() == "begun\n", "the program did not begin")
        seen = _top(kit, process.pid, "--count", 1, "--interval", 0.5)
        process.stdin.close()
        expect(process.wait(30) == 0, f"the program ended with {process.returncode}")
    return seen.stdout + seen.stderr


def test_what_is_missed_most_is_named(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags)
    seen = _misses_in(kit, program)
    line = re.search(r"^misses in +(\d+) %  32.0 MiB at 0x[0-9a-f]+, allocated in (.*) \((.*)\+0x[0-9a-f]+\)$", seen, re.M)
    expect(line is not None, seen)
    expect(int(line[1]) >= 90 and "make_large_array()" in line[2] and line[3] == program.name, line[0])


def test_what_is_missed_most_is_named_with_its_line_of_source(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags, "-g")
    seen = _misses_in(kit, program)
    line = re.search(r"^misses in +(\d+) %  32.0 MiB at 0x[0-9a-f]+, allocated in (.*) \(misses.cc:(\d+)\)(, in .*)?$", seen, re.M)
    expect(line is not None, seen)
    source = (HERE / "programs" / "misses.cc").read_text().splitlines()
    expect(int(line[1]) >= 90 and "make_large_array()" in line[2] and "return new uint64_t[kWords]" in source[int(line[3]) - 1], line[0])


def test_a_program_without_symbols_goes_by_its_places(kit: Kit) -> None:
    program = kit.compile("misses.cc", *SMALL.flags, "-s")
    seen = _misses_in(kit, program)
    line = re.search(r"^misses in +(\d+) %  32.0 MiB at 0x[0-9a-f]+, allocated in (.*)\+0x[0-9a-f]+$", seen, re.M)
    expect(line is not None and int(line[1]) >= 90 and line[2] == program.name, seen)


def test_a_program_that_ends_ends_the_view(kit: Kit) -> None:
    program = kit.compile("watched.cc", *SMALL.flags)
    with start(kit, program, env=SMALL.environment()) as process:
        expect(process.stdout.readline().startswith("filled "), "the program did not begin")
        view = subprocess.Popen([kit.build / "bin" / "spillway", "top", str(process.pid), "--interval", "0.1"], stdout=subprocess.PIPE, text=True)
        expect(view.stdout.readline().startswith("program"), "nothing was shown")
        process.stdin.close()
        process.wait(30)
        shown, _ = view.communicate(timeout=30)
    expect(view.returncode == 0 and shown.endswith(f"{process.pid} has ended\n"), shown[-300:])


def test_what_is_not_there_is_refused_with_a_line(kit: Kit) -> None:
    seen = _top(kit, os.getpid())
    expect(seen.returncode == EXIT_USAGE and seen.stderr.count("\n") == 1 and "does not run under Spillway" in seen.stderr, seen.stderr)
    seen = _top(kit, os.getpid(), "--interval", "never")
    expect(seen.returncode == EXIT_USAGE and seen.stderr.count("\n") == 1, seen.stderr)
