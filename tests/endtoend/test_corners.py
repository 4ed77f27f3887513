"""What programs seldom do, and what they find then."""
import pathlib
import tempfile

import pytest
from kit import Config, Kit

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")
CAP_16M = Config(("-O2",), "16M", "auto", "combining")


def test_errno_is_0_at_the_start_and_stays_so(kit: Kit) -> None:
    kit.same_as_native("corners.c", "errno", configs=(CAP_16M,))


def test_an_alignment_that_is_no_power_of_two_is_rounded_up(kit: Kit) -> None:
    kit.same_as_native("corners.c", "alignments", configs=(CAP_16M,))


def test_a_stream_with_a_buffer_of_the_programs_own_loses_nothing(kit: Kit) -> None:
    kit.same_as_native("corners.c", "stream_buffers", configs=(CAP_16M,))


def test_sets_of_more_descriptors_than_libc_has_room_for(kit: Kit) -> None:
    kit.same_as_native("corners.c", "many_descriptors", configs=(CAP_16M,))


def test_a_request_with_an_array_behind_it_gets_all_of_it(kit: Kit) -> None:
    kit.same_as_native("corners.c", "extents", configs=(CAP_16M,))


def test_what_is_sent_without_a_copy_is_what_was_there(kit: Kit) -> None:
    kit.same_as_native("corners.c", "zerocopy", configs=(CAP_16M,))


def test_threads_are_cancelled_where_the_program_has_a_cancellation_point(kit: Kit) -> None:
    kit.same_as_native("corners.c", "cancelled", configs=(CAP_16M,))


def test_a_process_ends_with_the_last_of_its_threads(kit: Kit) -> None:
    for which in ("main_ends_first", "main_ends_alone"):
        kit.same_as_native("corners.c", which, configs=(CAP_16M,))


def test_a_blocking_stream_takes_all_of_a_large_message(kit: Kit) -> None:
    kit.same_as_native("corners.c", "sent_whole", configs=(CAP_16M,))


def test_calls_that_are_seldom_made_reach_what_is_evicted(kit: Kit) -> None:
    kit.same_as_native("corners.c", "seldom_called", configs=(CAP_16M,))


@pytest.mark.engines("mapped", "unmodified", "threads")
def test_a_process_that_may_not_be_dumped_forks(kit: Kit) -> None:
    # Another user by then, for whom the test's own directory is closed.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as store:
        pathlib.Path(store).chmod(0o777)
        kit.same_as_native("corners.c", "forks_undumped", configs=(CAP_16M,), env={"SPILLWAY_STORE": store})
