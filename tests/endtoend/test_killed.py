"""A process that is killed at any moment loses nothing of a buffered file that a sync had confirmed."""
import contextlib
import os
import random
import signal
import time

import pytest
from killing import check_records, contents
from kit import HERE, SMALL, Kit, expect, start

HEADERS = f"-I{HERE.parents[1] / 'include'}"
CHUNK_BYTES, MEMBERS = 64 << 10, 3


def _round(kit: Kit, seed: int, members_count: int) -> int:
    members = [kit.place / f"killed{i}.dat" for i in range(members_count)]
    for member in members:
        member.unlink(missing_ok=True)
    name = str(members[0]) if members_count == 1 else f"striped:chunk={CHUNK_BYTES >> 10}K," + ",".join(map(str, members))
    program = kit.compile("killed.cc", "-O2", HEADERS)
    dice = random.Random(seed)
    records = dice.choice((64, 2_000, 40_000))  # within a few blocks, in memory, three times the memory
    flush = {"SPILLWAY_FLUSH": dice.choice(("auto", "direct", "background")), "SPILLWAY_DIRTY": dice.choice(("1", "50", "100"))}
    with start(kit, program, name, str(seed), str(records), env=SMALL.environment() | flush | {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"}) as process:
        os.set_blocking(process.stdout.fileno(), True)
        first = process.stdout.readline()  # it has started
        time.sleep(dice.random() ** 2 * 0.3)
        os.killpg(process.pid, signal.SIGKILL)
        journal = first + process.stdout.read()
        process.wait()
    expect(process.returncode == -signal.SIGKILL, f"it ended by itself, exit code {process.returncode}")
    return check_records(journal, contents(members, CHUNK_BYTES))[1]


def _rounds(kit: Kit, count: int, members: int = 1) -> None:
    seed = random.randrange(1 << 30)
    done = 0
    for i in range(count):
        try:
            done += _round(kit, seed + i, members)
        except Exception as wrong:
            raise type(wrong)(f"seed {seed + i}: {wrong}") from None
    expect(done > count, f"only {done} transactions in {count} rounds")


def test_killed_at_random_a_process_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 25)


@pytest.mark.slow
def test_killed_thousands_of_times_a_process_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 3000)


def test_killed_at_random_a_striped_file_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 15, MEMBERS)


@pytest.mark.slow
def test_killed_thousands_of_times_a_striped_file_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 3000, MEMBERS)


@contextlib.contextmanager
def _lingering(kit: Kit, flush_after: str, *mode: str):
    """The file of a program that has written to it, and runs until it is killed in the end."""
    file = kit.place / "lingers.dat"
    file.unlink(missing_ok=True)
    environment = SMALL.environment() | {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0", "SPILLWAY_FLUSH_AFTER": flush_after}
    with start(kit, kit.compile("lingers.cc", "-O2"), str(file), *mode, env=environment) as process:
        os.set_blocking(process.stdout.fileno(), True)
        expect(process.stdout.readline() == "written\n", "the program did not write")
        yield file
        os.killpg(process.pid, signal.SIGKILL)


def _is_written(kit: Kit, flush_after: str, limit_s: float) -> bool:
    """Of a program that writes and then only waits: within the limit. Whoever opened its file would have it written."""
    with _lingering(kit, flush_after) as file:
        end = time.monotonic() + limit_s
        while not (written := file.stat().st_size == 100_000) and time.monotonic() < end:
            time.sleep(0.05)
    expect(not written or file.read_bytes() == b"x" * 100_000, "it was not written whole")
    return written


def test_what_nobody_syncs_is_written_after_a_while(kit: Kit) -> None:
    expect(not _is_written(kit, "0", 2), "it was written though it may stay dirty")
    expect(_is_written(kit, "1", 20), "it was not written within 20 s")


def test_what_another_process_opens_is_written_at_once(kit: Kit) -> None:
    with _lingering(kit, "0") as file:
        expect(file.stat().st_size == 0, "it was written though it may stay dirty")
        with file.open("rb") as other:
            end = time.monotonic() + 20
            while (found := other.seek(0) or other.read()) != b"x" * 100_000 and time.monotonic() < end:
                time.sleep(0.05)
    expect(found == b"x" * 100_000, f"another process reads {len(found)} bytes")


def test_a_block_that_changes_all_the_time_is_written_all_the_same(kit: Kit) -> None:
    with _lingering(kit, "1", "hot") as file:
        versions = set()
        end = time.monotonic() + 30
        while len(versions) < 5 and time.monotonic() < end:
            versions.add(file.stat().st_mtime_ns)
            time.sleep(0.1)
    expect(len(versions) == 5, f"only {len(versions)} versions of it came to the disk in 30 s")
