"""Mappings that are only read, which the kernel serves within the cap (--mapped-reads): of a file larger than it."""
import os
import random

import pytest
from kit import EXIT_FAILURE, Kit, MIB, Run, expect

pytestmark = pytest.mark.engines("unmodified", "threads")

CAP_BYTES = 16 * MIB
# Not a whole number of pages.
FILE_BYTES = 52 * MIB + 12_345
# The program's own memory and the runtime's, and what comes while others have the processors.
OTHER_BYTES = 24 * MIB


def _run(kit: Kit, part: str, reads: str | None = "auto") -> Run:
    """`reads`: --mapped-reads; None: without Spillway."""
    with open(kit.place / "data", "wb") as data:
        data.write(random.Random(5).randbytes(FILE_BYTES))
        data.flush()
        os.fsync(data.fileno())
        os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # as a file that is larger than the machine's memory
    env = {"SPILLWAY_MEMORY": str(CAP_BYTES), "SPILLWAY_MAPPED_READS": reads} | kit.wants_report if reads else None
    return kit.run(kit.compile("mapped_reads.cc", "-O2"), part, env=env)


# Of what does not fit, if the file is read several times.
LEAST_DROPPED = (FILE_BYTES - CAP_BYTES) // 4096 // 2
# A part that ends soon: on a busy machine much is still to be dropped as it ends.
FEW_DROPPED = 1000


def _same_as_native(kit: Kit, part: str, least_dropped: int = LEAST_DROPPED) -> None:
    native, ours = _run(kit, part, None), _run(kit, part)
    expect((ours.code, ours.output) == (native.code, native.output),
           f"{part}: {ours.last_words()}\nnatively {native.last_words()}")
    made = kit.report()
    served_by = made["facts"]["mapped_reads"]
    if served_by != "kernel":
        pytest.skip(f"here such mappings are served by the {served_by}")
    expect(ours.errors == "", ours.last_words())
    dropped, peak = made["counters"]["file_pages_dropped"], made["facts"]["resident_peak_bytes"]
    expect(dropped >= least_dropped, f"{part}: {dropped} pages dropped")
    expect(peak < CAP_BYTES + OTHER_BYTES, f"{part}: {peak / MIB:.1f} MiB at most, of a cap of {CAP_BYTES / MIB:.0f}")


# The cap is exceeded where the evictor gets no processor in time.
@pytest.mark.quiet
def test_random_reads_are_right_and_within_the_cap(kit: Kit) -> None:
    _same_as_native(kit, "random_reads")


@pytest.mark.quiet
def test_reads_in_order_are_right_and_within_the_cap(kit: Kit) -> None:
    _same_as_native(kit, "in_order")


def test_a_forked_child_reads_its_parents_mapping(kit: Kit) -> None:
    _same_as_native(kit, "forked")


def test_children_made_while_pages_are_evicted_map_and_unmap(kit: Kit) -> None:
    _same_as_native(kit, "forked_often", least_dropped=FEW_DROPPED)


def test_system_calls_reach_the_mapping(kit: Kit) -> None:
    _same_as_native(kit, "system_calls")


def test_what_replaces_a_part_is_never_evicted(kit: Kit) -> None:
    _same_as_native(kit, "replaced", least_dropped=FEW_DROPPED)


def test_a_private_mapping_that_becomes_writable_keeps_what_is_stored(kit: Kit) -> None:
    _same_as_native(kit, "written_privately")


def test_a_shared_mapping_that_becomes_writable_changes_the_file(kit: Kit) -> None:
    _same_as_native(kit, "written_shared", least_dropped=FEW_DROPPED)


def test_a_mapping_that_moves_and_grows_is_right(kit: Kit) -> None:
    _same_as_native(kit, "moved")


def test_advice_of_the_program_changes_no_result(kit: Kit) -> None:
    _same_as_native(kit, "advised")


def test_a_mapping_locked_in_memory_is_right_and_named(kit: Kit) -> None:
    native, ours = _run(kit, "locked", None), _run(kit, "locked")
    expect((ours.code, ours.output) == (native.code, native.output), ours.last_words())
    if kit.report()["facts"]["mapped_reads"] != "kernel" or "mlock 0" not in ours.output:
        pytest.skip(f"not served by the kernel, or nothing may be locked: {ours.output}")
    expect("a mapped file is not kept within the cap any more" in ours.errors, ours.last_words())


def test_a_file_that_became_shorter_ends_in_one_line(kit: Kit) -> None:
    ours = _run(kit, "shortened")
    expect(ours.code == EXIT_FAILURE and ours.errors.count("\n") == 1 and "data at 3145728" in ours.errors, ours.last_words())


def test_a_handler_of_the_programs_gets_the_signal_of_a_file_that_became_shorter(kit: Kit) -> None:
    ours = _run(kit, "shortened_with_handler")
    expect((ours.code, ours.output, ours.errors) == (0, "caught\n", ""), ours.last_words())


def test_the_cache_serves_them_if_asked_to(kit: Kit) -> None:
    native, ours = _run(kit, "random_reads", None), _run(kit, "random_reads", "cache")
    expect((ours.code, ours.output, ours.errors) == (native.code, native.output, ""), ours.last_words())
    made = kit.report()
    expect(made["facts"]["mapped_reads"] == "cache" and made["counters"]["fills"] > 0
           and made["counters"]["file_pages_dropped"] == 0, f"{made['facts']} {made['counters']}")
