"""Forked children of the translated engine, which do not have their parent's managed memory."""
import pytest
from kit import FITS, FITS_UNOPTIMISED, Kit, SMALL, UNOPTIMISED, expect

pytestmark = pytest.mark.engines("translated")


def test_a_forked_child_that_touches_managed_memory_ends_the_run(kit: Kit) -> None:
    kit.expect_children_end_the_run(SMALL, UNOPTIMISED)


def test_a_forked_child_that_touches_managed_memory_is_stopped_with_a_message(kit: Kit) -> None:
    kit.expect_children_are_stopped(SMALL, UNOPTIMISED)


def test_a_forked_child_allocates_from_libc(kit: Kit) -> None:
    """Large allocations, too, which would be managed in its parent."""
    for config in (SMALL, UNOPTIMISED):
        run = kit.run(kit.compile("processes.cc", *config.flags), "touch_in_a_child", 2, env=config.environment())
        expect(run.code == 0 and "\ncode 50\n" in run.output and run.errors == "", f"{config}: {run.last_words()}")


def test_a_forked_child_that_touches_memory_that_fits_ends_the_run(kit: Kit) -> None:
    kit.expect_children_end_the_run(FITS, FITS_UNOPTIMISED)


def test_a_forked_child_that_touches_memory_that_fits_is_stopped_with_a_message(kit: Kit) -> None:
    kit.expect_children_are_stopped(FITS, FITS_UNOPTIMISED)
