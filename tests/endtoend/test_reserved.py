"""Ranges that are reserved without access and committed piece by piece. (The translated engine leaves them to the kernel.)"""
import pytest
from kit import Config, Kit, expect

pytestmark = pytest.mark.engines("mapped", "unmodified", "threads")

SMALL = Config(("-O2",), "16M", "4K", "combining")
LARGE_BLOCKS = Config(("-O2",), "32M", "64K", "combining")
FITS = Config(("-O2",), "256M", "4K", "combining")
MANAGED = {"SPILLWAY_THRESHOLD": "64K"}


def test_pieces_are_committed_and_given_back(kit: Kit) -> None:
    for by_mapping in (0, 1):
        kit.same_as_native("reserved.cc", "pieces", by_mapping, configs=(SMALL, LARGE_BLOCKS, FITS), env=MANAGED)


def test_a_file_is_mapped_into_a_reservation(kit: Kit) -> None:
    kit.same_as_native("reserved.cc", "file", 0, configs=(SMALL, LARGE_BLOCKS, FITS), env=MANAGED)


def test_a_ring_buffer_of_shared_memory_is_made(kit: Kit) -> None:
    kit.same_as_native("reserved.cc", "ring", 0, configs=(SMALL,), env=MANAGED)


def test_memory_is_only_read_or_executed(kit: Kit) -> None:
    kit.same_as_native("reserved.cc", "others", 0, configs=(SMALL, LARGE_BLOCKS), env=MANAGED)


def test_what_cannot_be_moved_into_a_reservation_is_refused(kit: Kit) -> None:
    run = kit.run(kit.compile("reserved.cc", "-O2"), "moved_into", 0, env=SMALL.environment() | MANAGED)
    expect((run.code, run.output) == (0, "fine, refused 1, 0 wrong\n"), run.last_words())
