"""Calls with structures in managed memory, which the kernel cannot reach by itself in the translated engine, nor in the mapped one
where it may not fault."""
import pytest
from kit import Kit, SMALL, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")


FORTIFIED = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wno-fortify-source")


def _same_as_native(kit: Kit, part: str, flags: tuple[str, ...] = ()) -> None:
    kit.same_as_native("calls.cc", part, configs=(SMALL,), flags=flags)
    if kit.engine != "translated":
        kit.same_as_native("calls.cc", part, configs=(SMALL,), flags=flags, env={"SPILLWAY_TEST_USERFAULT": "user"})


def test_extended_attributes_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "xattrs")


def test_names_times_and_entries_of_files_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "files")


def test_locks_of_files_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "locks")


def test_structures_of_ioctl_and_prctl_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "requests")


def test_many_messages_at_a_time_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "many_messages")


def test_times_and_limits_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "times_and_limits")


def test_signal_sets_and_events_are_managed(kit: Kit) -> None:
    _same_as_native(kit, "signals_and_events")


def test_every_way_of_exec_takes_managed_arguments(kit: Kit) -> None:
    _same_as_native(kit, "ways_of_exec")


def test_buffers_that_libc_allocates_are_within_the_kernels_reach(kit: Kit) -> None:
    _same_as_native(kit, "buffers_of_libc")


def test_strings_longer_than_a_files_buffer_are_written_whole(kit: Kit) -> None:
    _same_as_native(kit, "long_strings")
    _same_as_native(kit, "long_strings", flags=FORTIFIED)


def test_calls_that_are_checked_take_managed_arrays(kit: Kit) -> None:
    kit.same_as_native("fortified.cc", "calls", configs=(SMALL,), flags=FORTIFIED)


def test_calls_that_are_checked_end_what_would_overflow(kit: Kit) -> None:
    program = kit.compile("fortified.cc", *SMALL.flags, *FORTIFIED)
    for call in range(8):
        run = kit.run(program, "overflow", call, env=SMALL.environment())
        expect(run.code == -6 and "buffer overflow detected" in run.errors, f"{call}: {run.last_words()}")
