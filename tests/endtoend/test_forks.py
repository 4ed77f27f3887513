"""Forked children that go on with their parent's memory (mapped engine)."""
import os
import pathlib
import time

import pytest
from kit import Config, Kit, MEDIUM, MIB, SMALL, THREADS, UNOPTIMISED, expect, start

pytestmark = pytest.mark.engines("mapped", "unmodified", "threads")

LARGE_BLOCKS = Config(("-O2",), "24M", "64K", "combining")
FITS = Config(("-O2",), "128M", "4K", "combining")
CONFIGS = (SMALL, UNOPTIMISED, LARGE_BLOCKS)


def _forks(kit: Kit, part: str, argument: int = 0, configs: tuple[Config, ...] = CONFIGS, env: dict[str, str] | None = None) -> None:
    kit.same_as_native("forks.cc", part, argument, configs=configs, env=env)


def test_parent_and_child_change_the_same_memory(kit: Kit) -> None:
    _forks(kit, "both_change", 3)


def test_a_child_of_a_child_has_what_they_had(kit: Kit) -> None:
    _forks(kit, "generations", 5)


def test_each_process_frees_and_allocates_for_itself(kit: Kit) -> None:
    _forks(kit, "allocates")


def test_children_that_execute_something_leave_their_parent_whole(kit: Kit) -> None:
    _forks(kit, "executes", 20)


@pytest.mark.parametrize("part", ["locks", "keeps_from_dumps", "forks"])
def test_children_of_a_process_with_locked_memory_do_not_wait_for_themselves(kit: Kit, part: str) -> None:
    kit.same_as_native("marks_in_children.cc", part, configs=(SMALL,))


def test_threads_fork_while_others_miss_and_fork(kit: Kit) -> None:
    # A thread's loose blocks are copied one after the other while it goes on storing to them (src/access/mapped/forks.cc).
    half_done = {"FORKS_HALF_DONE": "4"} if kit.engine == "mapped" else None
    _forks(kit, "storm", 4, configs=(SMALL, LARGE_BLOCKS), env=half_done)


def test_either_side_is_killed_and_the_other_is_whole(kit: Kit) -> None:
    _forks(kit, "kills", 40, configs=(SMALL,))


@pytest.mark.slow
def test_either_side_is_killed_a_thousand_times(kit: Kit) -> None:
    _forks(kit, "kills", 1000, configs=(SMALL,))


def test_children_of_memory_that_fits_go_on(kit: Kit) -> None:
    for part, argument in (("both_change", 3), ("generations", 3), ("allocates", 0), ("executes", 20)):
        _forks(kit, part, argument, configs=(FITS,))


def test_children_made_by_other_calls_than_fork_go_on(kit: Kit) -> None:
    for how in range(5):
        _forks(kit, "otherwise", how, configs=(SMALL, FITS))


def test_processes_that_close_all_descriptors_go_on(kit: Kit) -> None:
    for how in range(6):
        _forks(kit, "closes_descriptors", how, configs=(SMALL, FITS))


def test_a_child_made_by_an_instruction_goes_on_or_ends_before_it_harms(kit: Kit) -> None:
    """Where threads of the runtime serve faults nobody sees the instruction, nor while memory fits."""
    for config in (SMALL, FITS):
        run = kit.run(kit.compile("forks.cc", *config.flags), "otherwise", 5, env=config.environment())
        went_on = run.output == "child ended with 42, 0 wrong\n" and run.errors == ""
        ended = run.output == "child ended with 74, 0 wrong\n" and run.errors.startswith("spillway: a forked child touched managed memory")
        expect(run.code == 0 and (went_on or ended), f"{config}: {run.last_words()}")
        if config is SMALL and kit.engine != THREADS and os.environ.get("SPW_USERFAULT") != "none":
            expect(went_on, run.last_words())


def test_a_child_touches_its_parents_memory_in_every_way(kit: Kit) -> None:
    for how in range(5):
        kit.same_as_native("processes.cc", "touch_in_a_child", how, configs=(SMALL, UNOPTIMISED, MEDIUM))


def test_space_on_the_store_is_given_back_when_children_end(kit: Kit) -> None:
    """What a parent and its children had written of the same blocks: at the end there is no more than one copy of each. Space is
    reserved in pieces of 16 MiB, and a table may lie across one more of them than it fills."""
    limit = 24_000_000 + 2 * 16 * MIB
    program = kit.compile("forks.cc", *SMALL.flags)
    with start(kit, program, "keeps_space", 12, env=SMALL.environment()) as process:
        expect(process.stdout.readline() == "first\n", "it did not start")
        process.stdin.write("\n")
        process.stdin.flush()
        expect(process.stdout.readline() == "last\n", "it did not go on")
        most = _spilled_bytes(process.pid)
        deadline = time.monotonic() + 60
        while (left := _spilled_bytes(process.pid)) > limit and time.monotonic() < deadline:
            time.sleep(0.2)
        process.stdin.write("\n")
        output, errors = process.communicate(timeout=60)
    expect((process.returncode, output, errors) == (0, "0 wrong\n", ""), f"{process.returncode} {output}{errors}")
    expect(most > limit, f"there was nothing to give back: {most} bytes")
    expect(0 < left <= limit, f"{most} bytes were on the store when the last child ended, and {left} later")


def _spilled_bytes(process: int) -> int:
    """Of all files without a name that the process has open."""
    files = {}
    for link in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            status = link.stat()
            if status.st_nlink == 0 and "(deleted)" in os.readlink(link) and "memfd" not in os.readlink(link):
                files[status.st_ino] = status.st_blocks * 512
        except FileNotFoundError:
            pass
    return sum(files.values())
