"""The calls that change memory, beside what they do natively. (The translated engine enforces no access rights.)"""
import pytest
from kit import Config, Kit

pytestmark = pytest.mark.engines("mapped", "unmodified", "threads")

SMALL = Config(("-O2",), "16M", "4K", "combining")
FITS = Config(("-O2",), "512M", "4K", "combining")
MANAGED = {"SPILLWAY_THRESHOLD": "64K"}


def _part(kit: Kit, name: str) -> None:
    """`name` of the program, with data that fits and with data that does not."""
    kit.same_as_native("memory_calls.cc", name, 0, configs=(FITS,), env=MANAGED)
    kit.same_as_native("memory_calls.cc", name, 1, configs=(SMALL,), env=MANAGED)


def test_holes_are_as_the_kernels(kit: Kit) -> None:
    _part(kit, "holes")


def test_advice_is_as_the_kernels(kit: Kit) -> None:
    _part(kit, "advice")


def test_locked_pages_are_as_the_kernels(kit: Kit) -> None:
    _part(kit, "locks")


def test_memory_moves_with_its_rights(kit: Kit) -> None:
    _part(kit, "moves")


def test_system_calls_refuse_what_the_program_may_not_access(kit: Kit) -> None:
    _part(kit, "transfers")


def test_children_find_what_was_advised(kit: Kit) -> None:
    _part(kit, "children")


def test_memory_without_the_right_is_not_executed(kit: Kit) -> None:
    _part(kit, "calls")
