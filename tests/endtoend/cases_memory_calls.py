"""The calls that change memory, beside what they do natively. (The translated engine enforces no access rights.)"""
from kit import Config, ENGINES, Kit, THREADS

ENGINES = (*ENGINES[1:], THREADS)

SMALL = Config(("-O2",), "16M", "4K", "combining")
FITS = Config(("-O2",), "512M", "4K", "combining")
MANAGED = {"SPILLWAY_THRESHOLD": "64K"}


def _part(kit: Kit, name: str) -> None:
    """`name` of the program, with data that fits and with data that does not."""
    kit.same_as_native("memory_calls.cc", name, 0, configs=(FITS,), env=MANAGED)
    kit.same_as_native("memory_calls.cc", name, 1, configs=(SMALL,), env=MANAGED)


def holes_are_as_the_kernels(kit: Kit) -> None:
    _part(kit, "holes")


def advice_is_as_the_kernels(kit: Kit) -> None:
    _part(kit, "advice")


def locked_pages_are_as_the_kernels(kit: Kit) -> None:
    _part(kit, "locks")


def memory_moves_with_its_rights(kit: Kit) -> None:
    _part(kit, "moves")


def system_calls_refuse_what_the_program_may_not_access(kit: Kit) -> None:
    _part(kit, "transfers")


def children_find_what_was_advised(kit: Kit) -> None:
    _part(kit, "children")


def memory_without_the_right_is_not_executed(kit: Kit) -> None:
    _part(kit, "calls")
