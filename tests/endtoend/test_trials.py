"""Small files that --buffer names are the kernel's until they are asked for much."""
import pytest
from kit import FITS, MIB, Kit, expect

BUFFERED = {"SPILLWAY_BUFFER": "*.dat"}


def _block_writes(kit: Kit, *arguments, calls: int | None = None) -> int:
    """Of the cache, by a run that does what it does natively."""
    after = {} if calls is None else {"SPILLWAY_BUFFER_AFTER": str(calls)}
    kit.same_as_native("trials.cc", *arguments, configs=(FITS,), env=BUFFERED | after | kit.wants_report)
    return kit.report()["counters"].get("file_writes", 0)


def test_a_small_file_is_the_kernels_until_it_has_had_some_calls(kit: Kit) -> None:
    expect(_block_writes(kit, "few", 60) == 0, "a file was buffered for a few calls")
    expect(_block_writes(kit, "few", 90) > 0, "a file was not buffered for many calls")
    expect(_block_writes(kit, "few", 2, calls=0) > 0, "a file was not buffered at once")


def test_a_file_that_becomes_long_is_buffered(kit: Kit) -> None:
    expect(_block_writes(kit, "much", MIB // 2) == 0, "a file was buffered for half a MiB")
    expect(_block_writes(kit, "much", 2 * MIB) > 0, "what came after 2 MiB was not buffered")


def test_a_file_that_is_locked_is_buffered_and_so_watched(kit: Kit) -> None:
    expect(_block_writes(kit, "locked") == 1, "what was written under a lock was not buffered")


def test_a_file_of_another_name_is_not_buffered(kit: Kit) -> None:
    expect(_block_writes(kit, "linked") == 0, "a file was buffered whose own name does not match")


def test_what_a_child_has_stays_the_kernels(kit: Kit) -> None:
    expect(_block_writes(kit, "shared") == 0, "a file was buffered that a child has open")


@pytest.mark.parametrize("calls", [1, 5, 64])
def test_two_open_files_of_one_agree(kit: Kit, calls: int) -> None:
    expect(_block_writes(kit, "twice", calls=calls) > 0, "the one that was left was not buffered")


@pytest.mark.parametrize("calls", [1, 17, 64, 600])
def test_threads_see_no_trial_end(kit: Kit, calls: int) -> None:
    expect(_block_writes(kit, "threads", 30, calls=calls) > 0, "nothing was buffered")
