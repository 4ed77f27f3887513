"""Asynchronous I/O on managed memory, which neither libc's threads nor the kernel can reach by themselves in the translated engine,
nor in the mapped one where they may not fault."""
import pytest
from kit import Kit, SMALL, UNOPTIMISED

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")
USER_FAULTS_ONLY = {"SPILLWAY_TEST_USERFAULT": "user"}


def _same(kit: Kit, source: str, part: str, *arguments) -> None:
    kit.same_as_native(source, part, *arguments, configs=(SMALL, UNOPTIMISED))
    if kit.engine != "translated":
        kit.same_as_native(source, part, *arguments, configs=(SMALL,), env=USER_FAULTS_ONLY)


def test_asynchronous_transfers_take_managed_memory(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "transfers")


def test_asynchronous_transfers_report_their_errors(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "errors")


def test_waits_for_asynchronous_transfers_take_managed_lists(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "waits")


def test_notifications_find_what_was_read_in_managed_memory(kit: Kit) -> None:
    for how in range(4):  # notifications()
        _same(kit, "posix_aio.cc", "notifications", how)


def test_lists_of_asynchronous_transfers_are_managed(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "lists")


def test_asynchronous_transfers_on_managed_memory_are_cancelled(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "cancelling")


def test_a_thread_that_waits_for_asynchronous_transfers_is_cancelled(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "cancelled waits")


def test_threads_and_handlers_may_see_the_same_transfer_end(kit: Kit) -> None:
    _same(kit, "posix_aio.cc", "races")
