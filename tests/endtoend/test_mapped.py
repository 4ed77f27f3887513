"""Mappings of a file larger than the cap: what reaches the file, and what never does."""
import hashlib
import itertools
import pathlib
import random

import pytest
from kit import Config, EXIT_FAILURE, Kit, MEDIUM, MIB, PRELOADED, Run, SMALL, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")

# Not a whole number of pages.
FILE_BYTES = 28 * MIB + 12_345
CONFIGS = (SMALL, MEDIUM)


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
    for part in ("held", "in_memory", "becomes", "runs", "left"):
        kit.same_as_native("mapped_coherence.cc", part, configs=(SMALL,))


def test_calls_and_mappings_of_a_file_agree(kit: Kit) -> None:
    for part in ("both", "only_read"):
        kit.same_as_native("mapped_coherence.cc", part, configs=(SMALL, MEDIUM))
