"""Signals of the program's own, where faults of managed memory are served, by whoever serves them."""
import dataclasses

import pytest
from kit import EXIT_FAILURE, Kit, SMALL, UNOPTIMISED, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")
# What the interrupted code allocates is native, the handlers' words are managed.
NATIVE_OBJECTS = dataclasses.replace(SMALL, everything=False)


def _same(kit: Kit, part: str, argument: int = 0, source: str = "blocked.cc") -> None:
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=".so")
    kit.same_as_native(source, part, argument, configs=(SMALL, UNOPTIMISED), inputs=(library,))


def test_threads_that_block_all_signals_reach_managed_memory(kit: Kit) -> None:
    _same(kit, "threads")


def test_threads_that_begin_with_a_mask_reach_managed_memory(kit: Kit) -> None:
    _same(kit, "thread_with_a_mask")


def test_handlers_that_block_all_signals_reach_managed_memory(kit: Kit) -> None:
    _same(kit, "in_handler")


def test_calls_that_wait_are_not_interrupted_without_a_signal(kit: Kit) -> None:
    for extents in ("auto", "off"):
        kit.same_as_native("quiet_waits.c", configs=(SMALL,), env={"SPILLWAY_EXTENTS": extents})


def test_handlers_under_a_temporary_mask_reach_managed_memory(kit: Kit) -> None:
    for wait in range(7):  # kWaits
        _same(kit, "suspended", wait)


def test_handlers_of_fault_signals_leave_managed_memory_alone_however_they_are_installed(kit: Kit) -> None:
    for installer in range(6):  # kInstallers
        _same(kit, "installed", installer, source="old_signals.cc")


def test_old_calls_that_block_signals_leave_managed_memory_alone(kit: Kit) -> None:
    for blocker in range(4):  # kBlockers
        _same(kit, "blocked", blocker, source="old_signals.cc")


def test_handlers_use_managed_memory_whatever_they_interrupt(kit: Kit) -> None:
    _same(kit, "timer", 400, source="handlers.cc")


def test_handlers_of_several_threads_use_managed_memory(kit: Kit) -> None:
    _same(kit, "timers", 300, source="handlers.cc")


def test_handlers_interrupt_the_allocator(kit: Kit) -> None:
    kit.same_as_native("handlers.cc", "in_allocator", 200, configs=(NATIVE_OBJECTS,), env={"SPILLWAY_QUOTA": "4M"})


def test_handlers_may_jump_out_of_what_they_interrupt(kit: Kit) -> None:
    _same(kit, "jump", 150, source="handlers.cc")


def test_handlers_interrupt_calls_that_wait_as_their_flags_say(kit: Kit) -> None:
    _same(kit, "waiting", source="handlers.cc")


def test_programs_are_told_of_the_handlers_they_set(kit: Kit) -> None:
    _same(kit, "told", source="handlers.cc")


def test_alternate_stacks_may_lie_in_managed_memory(kit: Kit) -> None:
    for part, count in (("main", 0), ("threads", 3)):
        _same(kit, part, count, source="alternate_stack.cc")


def test_programs_handle_bus_errors_of_their_own(kit: Kit) -> None:
    _same(kit, "own_handler")


def test_memory_that_was_given_back_may_not_be_touched(kit: Kit) -> None:
    if kit.engine != "translated":
        return _same(kit, "gone")
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=".so")
    run = kit.run(kit.compile("blocked.cc", *SMALL.flags, inputs=(library,)), "gone", env=SMALL.environment())
    expect(run.code == EXIT_FAILURE and "belongs to no region" in run.errors, run.last_words())
