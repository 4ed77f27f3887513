"""What a fault finds, and must leave as it was: stacks, registers, handlers and jumps."""
import dataclasses

import pytest
from kit import Kit, SMALL, expect

# A recompiled program's hints are calls on its stack, so it faults seldom, and needs room.
pytestmark = pytest.mark.engines("unmodified", "threads")
# Small objects are native: what is on the programs' stacks and in their handlers is tested, not that.
CAPPED = dataclasses.replace(SMALL, everything=False)


def _same(kit: Kit, part: str, argument: int = 0, source: str = "fault_entry.cc") -> dict:
    kit.same_as_native(source, part, argument, configs=(CAPPED,), env=kit.wants_report)
    return kit.expect_spilled(part)["counters"]


def test_stacks_that_are_nearly_full_have_room_for_a_fault(kit: Kit) -> None:
    _same(kit, "small_stacks")


def test_short_alternate_stacks_that_were_there_before_the_first_fault_have_room(kit: Kit) -> None:
    _same(kit, "alternate_stacks", 0)


def test_short_alternate_stacks_that_come_after_the_first_fault_have_room(kit: Kit) -> None:
    _same(kit, "alternate_stacks", 1)


def test_handlers_share_the_alternate_stack_with_faults(kit: Kit) -> None:
    _same(kit, "alternate_timers")


def test_handlers_that_faulted_are_left_by_jumps(kit: Kit) -> None:
    _same(kit, "jumps")


def test_exceptions_pass_through_what_faults(kit: Kit) -> None:
    _same(kit, "exceptions")


# With threads no handler interrupts the program: there is no entry whose registers could be lost, only the kernel's.
@pytest.mark.slow_with("threads")
def test_registers_are_what_they_were_before_each_of_many_faults(kit: Kit) -> None:
    counters = _same(kit, "all", 240_000, source="registers.cc")
    expect(counters["missing_faults"] > 200_000, f"few faults: {counters}")
