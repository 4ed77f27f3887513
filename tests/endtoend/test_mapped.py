"""Mappings of files, larger than the cap and not: what reaches the file, and what never does."""
import hashlib
import itertools
import pathlib
import random

import pytest
from kit import Config, EXIT_FAILURE, FITS, Kit, MEDIUM, MIB, PRELOADED, Run, SMALL, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")

# Not a whole number of pages.
FILE_BYTES = 28 * MIB + 12_345
CONFIGS = (SMALL, MEDIUM)
# Whether small files are the cache's from the start (mapped engine).
WATCHED_OR_NOT = ({}, {"SPILLWAY_TEST_WATCH": "1"})
OUTGROWN = Config(("-O2",), "48M", "auto", "combining")


def _written_data(kit: Kit) -> tuple[pathlib.Path, bytes]:
    contents = random.Random(5).randbytes(FILE_BYTES)
    data = kit.place / "data"
    data.unlink(missing_ok=True)
    data.write_bytes(contents)
    return data, contents


def _run(kit: Kit, config: Config | None, part: str, argument: int = 0) -> tuple[Run, bytes]:
    """The run, and what is in the file afterwards."""
    data, _ = _written_data(kit)
    program = kit.compile("mapped.cc", *(config.flags if config else ("-O2",)), spillway=config is not None)
    run = kit.run(program, part, argument, env=config.environment() if config else None)
    return run, data.read_bytes()


def _same_as_native(kit: Kit, *parts: str) -> None:
    for part in parts:
        native, expected = _run(kit, None, part)
        for config in CONFIGS:
            ours, contents = _run(kit, config, part)
            where = f"{part} with {config}"
            expect((ours.code, ours.output, ours.errors) == (native.code, native.output, ""),
                   f"{where}: {ours.last_words()}\nnatively {native.last_words()}")
            expect(contents == expected, f"{where}: the file has {len(contents)} bytes, {hashlib.md5(contents).hexdigest()}, and "
                   f"natively {len(expected)}, {hashlib.md5(expected).hexdigest()}")


def test_msync_and_munmap_bring_changes_to_the_file(kit: Kit) -> None:
    _same_as_native(kit, "sync_and_die", "unmap_and_die", "unmap_pieces_and_die")


def test_the_programs_end_brings_changes_to_the_file(kit: Kit) -> None:
    _same_as_native(kit, "return", "exit", "exit_handler")


def test_private_changes_never_reach_the_file(kit: Kit) -> None:
    _same_as_native(kit, "private")


def test_files_open_for_reading_can_be_read_through_many_views(kit: Kit) -> None:
    _same_as_native(kit, "read_only", "two_views")


def test_a_file_that_grows_keeps_what_the_mapping_holds(kit: Kit) -> None:
    _same_as_native(kit, "grow")


def test_a_file_that_becomes_shorter_ends_the_program_with_one_line(kit: Kit) -> None:
    for config, by_name in itertools.product(CONFIGS, (0, 1)):
        run, _ = _run(kit, config, "shrink", by_name)
        # The cache's words, or those for what the kernel serves: what can change under it by calls, and all of who was not recompiled.
        starts, contains = (("spillway: cannot read /", "which the program has mapped") if kit.engine in PRELOADED or not by_name
                            else ("spillway: cannot read block ", f"file:{kit.place}/"))
        expect(run.code == EXIT_FAILURE and run.output == "" and run.errors.count("\n") == 1
               and run.errors.startswith(starts) and contains in run.errors, f"{config}: {run.last_words()}")


def test_a_file_that_fits_is_written_as_natively(kit: Kit) -> None:
    for part in ("sync_and_die", "unmap_and_die", "unmap_pieces_and_die", "exit_handler", "two_views", "grow", "end_at_once"):
        native, expected = _run(kit, None, part)
        ours, contents = _run(kit, FITS, part)
        expect((ours.code, ours.output, ours.errors) == (native.code, native.output, ""), f"{part}: {ours.last_words()}")
        expect(contents == expected, f"{part}: the file is another one")


@pytest.mark.engines("mapped", "unmodified")
def test_a_file_that_fits_is_left_to_the_kernel(kit: Kit) -> None:
    _written_data(kit)
    run = kit.run(kit.compile("mapped.cc", *FITS.flags), "return", 0, env=FITS.environment() | kit.wants_report)
    expect(run.code == 0, run.last_words())
    counters = kit.report()["counters"]
    found = {name: counters[name] for name in ("fills", "zero_fills", "readahead_fills", "missing_faults", "protect_faults", "store_writes")}
    expect(set(found.values()) == {0}, f"{found}")


def _outgrown(kit: Kit, part: str, env: dict[str, str]) -> None:
    program = kit.compile("outgrown.cc", "-O2", spillway=False)
    _written_data(kit)
    native, expected = kit.run(program, part, 40), (kit.place / "data").read_bytes()
    _written_data(kit)
    ours = kit.run(kit.compile("outgrown.cc", *OUTGROWN.flags), part, 40, env=OUTGROWN.environment() | kit.wants_report | env)
    expect((ours.code, ours.output, ours.errors) == (native.code, native.output, ""),
           f"{part}: {ours.last_words()}\nnatively {native.last_words()}")
    expect((kit.place / "data").read_bytes() == expected, f"{part}: the file is another one")


def test_a_file_becomes_the_caches_when_memory_no_longer_fits(kit: Kit) -> None:
    for _ in range(3):
        _outgrown(kit, "counted", {})
        kit.expect_spilled("the file")


def test_a_file_keeps_its_rights_when_it_becomes_the_caches(kit: Kit) -> None:
    if kit.engine == "translated":
        pytest.skip("managed memory has the usual rights in the translated engine")
    _outgrown(kit, "protected_part", {})


@pytest.mark.engines("mapped", "unmodified")
def test_a_file_that_fits_is_shared_with_forked_children(kit: Kit) -> None:
    _outgrown(kit, "shared_with_a_child", {})


def _neither(now: bytes, old: bytes, new: bytes) -> int:
    """How many bytes are neither the old nor the new ones; most pages are found to be right as a whole."""
    count = 0
    for at in range(0, len(now), 4096):
        page = slice(at, at + 4096)
        if now[page] not in (old[page], new[page]):
            count += sum(n not in (o, w) for n, o, w in zip(now[page], old[page], new[page]))
    return count


def test_an_end_without_exit_leaves_old_or_new_words(kit: Kit) -> None:
    _, before = _written_data(kit)
    for how in (0, 1):
        native, after = _run(kit, None, "end_at_once", how)
        for config in (SMALL, MEDIUM):
            ours, contents = _run(kit, config, "end_at_once", how)
            expect(ours.code == native.code, f"{how} with {config}: {ours.last_words()}")
            expect(len(contents) == FILE_BYTES, f"{how} with {config}: the file has {len(contents)} bytes")
            wrong = _neither(contents, before, after)
            expect(wrong == 0, f"{how} with {config}: {wrong} bytes are neither old nor new")


def test_what_is_stored_is_seen_by_others_as_natively(kit: Kit) -> None:
    for part, env in itertools.product(("held", "in_memory", "becomes", "runs", "left"), WATCHED_OR_NOT):
        kit.same_as_native("mapped_coherence.cc", part, configs=(SMALL,), env=env)


def test_calls_and_mappings_of_a_file_agree(kit: Kit) -> None:
    for part, env in itertools.product(("both", "only_read"), WATCHED_OR_NOT):
        kit.same_as_native("mapped_coherence.cc", part, configs=(SMALL, MEDIUM), env=env)
