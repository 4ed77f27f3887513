"""Threads, locks, atomics and OpenMP on managed memory."""
import pytest
from kit import Config, Kit, MEDIUM, SMALL, UNOPTIMISED, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")

CAP_16M = Config(("-O2",), "16M", "auto", "combining")
# Sixteen threads at once do not fit the pins of 24 MiB of 64 KiB blocks.
ROOMY = Config(("-O2",), "48M", "64K", "dedicated")
CAP_16M_DEDICATED = Config(("-O2",), "16M", "auto", "dedicated")


def test_two_thousand_threads_come_and_go(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "come_and_go", 2000, configs=(SMALL,))


@pytest.mark.engines("mapped", "unmodified", "threads")
def test_threads_run_on_stacks_of_the_programs_own(kit: Kit) -> None:
    kit.same_as_native("own_stacks.c", configs=(CAP_16M,))


def test_threads_come_and_go_with_large_blocks(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "come_and_go", 200, configs=(ROOMY,))


def test_sixty_four_threads_share_blocks_without_losing_an_update(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "interleaved", 64, configs=(CAP_16M,))


# Where faults bring blocks in, 64 threads stand for 16; with the translated engine both run.
@pytest.mark.slow_with("mapped", "unmodified", "threads")
def test_sixteen_threads_share_blocks_without_losing_an_update(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "interleaved", 16, configs=(CAP_16M_DEDICATED, UNOPTIMISED))


def test_every_level_of_translation_can_be_left_out(kit: Kit) -> None:
    for level in ("private", "shared", "owner"):
        kit.same_as_native("threads.cc", "atomics", configs=(CAP_16M, CAP_16M_DEDICATED), env={"SPILLWAY_LEVELS": level})


def test_atomics_count_right_while_blocks_are_evicted(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "atomics", configs=(CAP_16M, CAP_16M_DEDICATED))


def test_locks_of_libc_work_inside_managed_memory(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "foreign_locks", configs=(SMALL, UNOPTIMISED))


def test_standard_locks_work_inside_managed_memory(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "standard_locks", configs=(SMALL, MEDIUM))


def test_threads_sleep_and_are_woken_at_managed_objects(kit: Kit) -> None:
    kit.same_as_native("sleepers.cc", "sleepers", 40, configs=(SMALL, UNOPTIMISED, MEDIUM))


def test_mutexes_of_every_kind_are_taken_and_released(kit: Kit) -> None:
    for kind in range(4):
        kit.same_as_native("sleepers.cc", "free_locks", kind, configs=(SMALL, UNOPTIMISED))


@pytest.mark.engines("mapped", "unmodified")
def test_a_mutex_that_is_free_keeps_nothing_in_memory(kit: Kit) -> None:
    hits = {}
    for kind in (0, 2):  # ordinary; robust, of which libc gives the kernel a list
        run = kit.run(kit.compile("sleepers.cc", "-O2"), "free_locks", kind, env=SMALL.environment() | kit.wants_report)
        expect(run.code == 0, run.last_words())
        hits[kind] = kit.report()["counters"]["shared_hits"]
    # 20,000 times one is asked for by who has it, which only libc's own call can answer.
    expect(hits[0] < 30_000 < 100_000 < hits[2], f"shared hits of ordinary and of robust mutexes: {hits}")


def test_futexes_may_be_gone_or_moved_when_others_are_woken(kit: Kit) -> None:
    for part in ("late_wake", "requeued"):
        kit.same_as_native("sleepers.cc", part, 30, configs=(SMALL, UNOPTIMISED))


def test_waiting_on_managed_atomics_works(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "atomic_waits", configs=(SMALL, UNOPTIMISED))


def test_futures_carry_managed_values(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "futures", configs=(CAP_16M, ROOMY))


def test_thread_key_destructors_touch_and_free_managed_memory(kit: Kit) -> None:
    kit.same_as_native("threads.cc", "keys", configs=(SMALL, UNOPTIMISED))


def test_openmp_loops_and_reductions_work(kit: Kit) -> None:
    kit.same_as_native("openmp.cc", configs=(SMALL, MEDIUM), flags=("-fopenmp",))
