"""Streams in extents (src/cache/extents), which the kernel moves: nothing is lost, and they do come so."""
import os

import pytest
from kit import Kit, expect

pytestmark = pytest.mark.engines("mapped", "unmodified")

LINUX = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
MOVES_SINCE = (6, 14)


def _counters(kit: Kit, what: str, mebibytes: int, rounds: int, extents: str = "", **more: str) -> dict:
    """Of a program that goes through twice what its cap is. Nothing is wrong, and something came in extents."""
    if LINUX < MOVES_SINCE:
        pytest.skip(f"Linux {LINUX[0]}.{LINUX[1]} moves no huge pages to where small ones were: 6.14 does")
    env = {"SPILLWAY_MEMORY": f"{mebibytes // 2}M", "SPILLWAY_THRESHOLD": "64K", "SPILLWAY_TEST_EXTENTS": extents} | more
    run = kit.run(kit.compile("extents.cc", "-O2"), what, mebibytes, rounds, time_limit_s=350, env=env | kit.wants_report)
    expect(run.code == 0 and run.output == "wrong 0\n", run.last_words())
    counters = kit.report()["counters"]
    if counters["extent_fills"] == 0:
        pytest.skip("the machine had no huge page to give")
    expect(counters["extent_placements"] > 0 and counters["extent_evictions"] > 0, f"extents did not come and go: {counters}")
    return counters


def test_a_stream_comes_in_extents_and_changes_are_kept(kit: Kit) -> None:
    counters = _counters(kit, "stream", 256, 3)
    # More than 300 where the thread that reads them gets a processor when it wants one.
    expect(counters["extent_fills"] > 20, f"hardly anything came in extents: {counters}")
    expect(0 < counters["extent_pages_written"] < 400 * counters["extent_evictions"], f"what had not changed was written: {counters}")


def test_threads_change_what_comes_and_goes_in_extents(kit: Kit) -> None:
    _counters(kit, "threads", 128, 2, "eager")


def test_ranges_change_under_extents(kit: Kit) -> None:
    _counters(kit, "ranges", 128, 7, "eager")


def test_children_have_what_was_in_extents(kit: Kit) -> None:
    _counters(kit, "forks", 128, 2, "eager")


def test_with_large_blocks_there_are_none(kit: Kit) -> None:
    env = {"SPILLWAY_MEMORY": "64M", "SPILLWAY_BLOCK": "64K"}
    run = kit.run(kit.compile("extents.cc", "-O2"), "stream", 128, 1, env=env | kit.wants_report)
    expect(run.code == 0 and run.output == "wrong 0\n", run.last_words())
    expect(kit.report()["counters"]["extent_fills"] == 0, "blocks of 64 KiB are in groups of 4 MiB")


def test_they_can_be_switched_off(kit: Kit) -> None:
    env = {"SPILLWAY_MEMORY": "64M", "SPILLWAY_THRESHOLD": "64K", "SPILLWAY_EXTENTS": "off"}
    run = kit.run(kit.compile("extents.cc", "-O2"), "stream", 128, 1, env=env | kit.wants_report)
    expect(run.code == 0 and run.output == "wrong 0\n", run.last_words())
    expect(kit.report()["counters"]["extent_fills"] == 0, "extents came")


def test_faults_may_be_served_by_threads(kit: Kit) -> None:
    _counters(kit, "threads", 128, 1, "eager", SPILLWAY_FAULTS="threads")
