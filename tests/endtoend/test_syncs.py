"""Syncs of buffered files: the kernel is asked only where there is something to sync."""
import os
import pathlib

import pytest
from kit import FITS, Kit, expect

BUFFERED = {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"}
ROUNDS = 40


def _saved(kit: Kit, *arguments) -> int:
    kit.same_as_native("syncs.cc", *arguments, configs=(FITS,), env=BUFFERED | kit.wants_report)
    return kit.report()["counters"].get("file_syncs_saved", 0)


def _needs_times_of_their_own(place: pathlib.Path) -> None:
    """Since Linux 6.13, on some filesystems: a change after a look at a file's times has a time of its own."""
    fd = os.open(place / "times", os.O_RDWR | os.O_CREAT)
    try:
        for i in range(20):
            before = os.fstat(fd).st_ctime_ns
            os.pwrite(fd, b"t", i)
            if os.fstat(fd).st_ctime_ns == before:
                pytest.skip("times of files are as coarse as the clock's ticks here, so that every sync asks the kernel")
    finally:
        os.close(fd)


def test_a_file_that_did_not_change_is_not_synced_again(kit: Kit) -> None:
    _needs_times_of_their_own(kit.place)
    saved = _saved(kit, "again")
    # The first ones go to the kernel until a time finer than the clock's ticks was seen, which on a busy machine is late.
    expect(ROUNDS // 4 <= saved <= ROUNDS, f"{saved} of {ROUNDS} syncs were saved")


def test_a_file_that_changed_is_synced(kit: Kit) -> None:
    for way in range(6):
        saved = _saved(kit, "changed", way)
        expect(saved == 0, f"{saved} syncs were left out after a change of way {way}")


def test_what_is_synced_but_for_its_metadata_is_synced_with_them(kit: Kit) -> None:
    saved = _saved(kit, "changed", 6)
    expect(saved <= ROUNDS, f"{saved} syncs were left out: more than those of data that had not changed")
