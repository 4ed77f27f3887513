"""Files that --buffer names: the program's own input and output, streams too, by way of the cache."""
import pytest
from kit import SMALL, Kit, expect

# All from the first call on; and small files after some, in the midst of what a program does with them.
BUFFERED = {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"}
AFTER_SOME = [BUFFERED | {"SPILLWAY_BUFFER_AFTER": str(calls)} for calls in (1, 2, 7, 64)]


def _same_as_native(kit: Kit, *arguments, buffered=BUFFERED) -> None:
    kit.same_as_native("buffered.cc", *arguments, configs=(SMALL,), env=buffered | kit.wants_report)


def test_a_trial_ends_in_the_midst_of_calls_unseen(kit: Kit) -> None:
    for what in ("calls", "streams", "corners"):
        for buffered in AFTER_SOME:
            _same_as_native(kit, what, buffered=buffered)


def test_calls_on_buffered_files_do_what_they_do_natively(kit: Kit) -> None:
    _same_as_native(kit, "calls")
    expect(kit.report()["counters"]["shared_hits"] > 0, "nothing was buffered")


def test_streams_on_buffered_files_do_what_they_do_natively(kit: Kit) -> None:
    _same_as_native(kit, "streams")
    expect(kit.report()["counters"]["shared_hits"] > 0, "nothing was buffered")


def test_buffered_files_and_the_kernels_do_not_part(kit: Kit) -> None:
    _same_as_native(kit, "corners")


def test_threads_write_buffered_files_beyond_the_memory(kit: Kit) -> None:
    _same_as_native(kit, "threads")
    counters = kit.report()["counters"]
    expect(counters["evictions"] > 2000 and counters["writebacks"] > 2000, f"nothing was evicted: {counters}")


def test_flushes_change_hands_while_threads_write(kit: Kit) -> None:
    file = kit.place / "flushed.dat"
    run = kit.run(kit.compile("flushed.cc", *SMALL.flags), file, 4, env=SMALL.environment() | BUFFERED | kit.wants_report | {"SPILLWAY_DIRTY": "3"})
    expect((run.code, run.output) == (0, "0 wrong\n"), run.last_words())
    counters = kit.report()["counters"]
    expect(counters["flush_changes"] > 0 and counters["file_writes"] > 2 * 16 * 1024, f"only one way was tried: {counters}")
    data = file.read_bytes()
    expect(all(data[at : at + 8] * 512 == data[at : at + 4096] for at in range(0, len(data), 4096)), "the file on disk is another one")


def test_what_was_written_is_in_the_file_however_the_program_ends(kit: Kit) -> None:
    for way in range(5):
        native = kit.run(kit.compile("buffered.cc", "-O2", spillway=False), "ends", way)
        wanted = {name: (kit.place / name).read_bytes() for name in ("end.dat", "end2.dat")}
        for name in wanted:
            (kit.place / name).unlink()
        ours = kit.run(kit.compile("buffered.cc", *SMALL.flags), "ends", way, env=SMALL.environment() | BUFFERED)
        expect((ours.code, ours.output) == (native.code, native.output), f"{way}: {ours.last_words()}\nnatively {native.last_words()}")
        for name, text in wanted.items():
            found = (kit.place / name).read_bytes()
            expect(found == text, f"{way}: {len(found)} bytes in {name} instead of {len(text)}, or others")


VIEWS = ("appending_streams", "emptied_by_another", "becomes_writable", "copied_ranges", "left_to_read", "times_stay", "opened_meanwhile",
         "record_locks", "reopened_streams", "appended_by_child")


@pytest.mark.parametrize("view", VIEWS)
def test_a_file_is_the_same_in_whatever_way_it_is_seen(kit: Kit, view: str) -> None:
    for buffered in ({}, BUFFERED, AFTER_SOME[1]):
        kit.same_as_native("file_views.cc", view, configs=(SMALL,), env=buffered | kit.wants_report)
