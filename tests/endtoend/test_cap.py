"""The cap as a control group sees it: what a program may have with the cap, and a cap that follows what its group has free."""
import contextlib
import pathlib
import subprocess
import sys
import time

import pytest
from kit import Kit, MIB, SMALL, TIME_LIMIT_S, expect, start
from harness import cgroup
from harness.programs import ALLOWANCE_BYTES

pytestmark = pytest.mark.engines("mapped", "unmodified")
LARGE_ARRAYS = {"SPILLWAY_THRESHOLD": "64K", "SPILLWAY_QUOTA": "2M"}
SAMPLE_EVERY_S = 0.02


@contextlib.contextmanager
def _group(limit_bytes: int):
    reason = cgroup.why_not()
    if reason:
        pytest.skip(reason)
    with cgroup.memory_group(limit_bytes) as group:
        yield group


# Or a group that was handed to the user.
@pytest.mark.root
def test_four_times_the_cap_stay_below_cap_and_allowance(kit: Kit) -> None:
    """The kernel would end the program at the group's limit, and what the group uses is looked at all the time."""
    cap_bytes = 32 * MIB
    with _group(cap_bytes + ALLOWANCE_BYTES) as group:
        program = kit.compile("spill.cc", "-O2")
        env = SMALL.environment() | LARGE_ARRAYS | {"SPILLWAY_MEMORY": str(cap_bytes)}
        with start(kit, program, "fill", 4 * cap_bytes // MIB, env=env, group=group) as process:
            while process.poll() is None:
                group.sample()
                time.sleep(SAMPLE_EVERY_S)
            output = process.stdout.read() + process.stderr.read()
        usage = group.finish()
    expect(usage.out_of_memory_kills == 0 and process.returncode == 0 and output == "wrong 0\n",
           f"exit code {process.returncode}, {usage}: {output}")
    expect(cap_bytes // 2 < usage.peak_program_bytes <= cap_bytes + ALLOWANCE_BYTES, f"{usage}")


def _resident_bytes(process: subprocess.Popen) -> int:
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


def _await(what: str, is_so) -> None:
    end = time.monotonic() + TIME_LIMIT_S / 2
    while not is_so():
        expect(time.monotonic() < end, f"{what}: not within {TIME_LIMIT_S / 2} s")
        time.sleep(SAMPLE_EVERY_S)


@pytest.mark.root
def test_the_cap_follows_what_its_group_has_free(kit: Kit) -> None:
    """Another process takes what the program had, and gives it back."""
    hog = [sys.executable, "-c", f"import sys; b = b'x' * {378 * MIB}; print('has it', flush=True); sys.stdin.read()"]
    with _group(640 * MIB) as group:
        program = kit.compile("spill.cc", "-O2")
        env = SMALL.environment() | LARGE_ARRAYS | {"SPILLWAY_MEMORY": "auto"}
        with start(kit, program, "stay", 240, env=env, group=group) as process:
            def look() -> None:
                line = process.stdout.readline()
                expect(line == "look\n", f"{line!r}, exit code {process.poll()}")

            def goes_through_it() -> int:
                process.stdin.write("\n")
                process.stdin.flush()
                look()
                return _resident_bytes(process)

            look()
            before_bytes = _resident_bytes(process)
            expect(before_bytes > 220 * MIB, "it fits, but is not in memory")
            with subprocess.Popen(hog, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  preexec_fn=group.enter) as other:
                expect(other.stdout.readline() == "has it\n", "the other process did not get its memory")
                _await("memory is given back", lambda: _resident_bytes(process) < before_bytes - 16 * MIB)
                other.stdin.close()
            _await("memory is taken again", lambda: goes_through_it() > before_bytes - 8 * MIB)
        expect(group.finish().out_of_memory_kills == 0, "a process was killed")
