"""The C++ library and the language on managed memory."""
from kit import Kit, SMALL, UNOPTIMISED, MEDIUM, LARGE, WIDE


def test_vectors_hold_more_than_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "vectors", configs=(SMALL, UNOPTIMISED, WIDE))


def test_deques_lists_and_heaps_hold_more_than_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "deques_and_lists", configs=(SMALL, MEDIUM))


def test_trees_that_libstdcxx_rebalances_hold_more_than_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "trees", configs=(SMALL, LARGE))


def test_hash_tables_hold_more_than_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "hash_tables", configs=(SMALL, UNOPTIMISED))


def test_strings_that_libstdcxx_grows_hold_more_than_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "strings", configs=(SMALL, UNOPTIMISED, MEDIUM))


def test_algorithms_work_beyond_the_cap(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "algorithms", configs=(SMALL, WIDE))


def test_smart_pointers_and_functions_live_in_managed_memory(kit: Kit) -> None:
    kit.same_as_native("containers.cc", "smart_pointers", configs=(SMALL, UNOPTIMISED, LARGE))


def test_realloc_keeps_the_contents(kit: Kit) -> None:
    kit.same_as_native("language.cc", "realloc", configs=(SMALL, UNOPTIMISED, MEDIUM))


def test_calloc_is_zero_after_reuse(kit: Kit) -> None:
    kit.same_as_native("language.cc", "calloc", configs=(SMALL, MEDIUM, LARGE))


def test_alignments_are_kept_and_impossible_requests_refused(kit: Kit) -> None:
    kit.same_as_native("language.cc", "aligned", configs=(SMALL, LARGE))


def test_empty_allocations_are_distinct(kit: Kit) -> None:
    kit.same_as_native("language.cc", "zero", configs=(SMALL,))


def test_exceptions_pass_through_frames_and_threads(kit: Kit) -> None:
    kit.same_as_native("language.cc", "throw", configs=(SMALL, UNOPTIMISED))


def test_long_jumps_leave_frames(kit: Kit) -> None:
    kit.same_as_native("language.cc", "longjmp", configs=(SMALL, UNOPTIMISED))


def test_thread_locals_free_managed_memory_at_the_threads_end(kit: Kit) -> None:
    kit.same_as_native("language.cc", "thread_local", configs=(SMALL, UNOPTIMISED))


def test_exit_handlers_and_static_destructors_see_managed_memory(kit: Kit) -> None:
    for how in range(4):
        kit.same_as_native("language.cc", "end", how, configs=(SMALL, MEDIUM))


def test_interrupting_signals_do_no_harm(kit: Kit) -> None:
    kit.same_as_native("language.cc", "signals", configs=(SMALL, UNOPTIMISED))


def test_overlapping_copies_cross_blocks(kit: Kit) -> None:
    kit.same_as_native("language.cc", "copies", configs=(SMALL, UNOPTIMISED, MEDIUM))
