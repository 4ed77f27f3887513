"""The public interface in recompiled programs, on both engines."""
import pytest
from kit import HERE, Kit, MEDIUM, SMALL, UNOPTIMISED, expect

pytestmark = pytest.mark.engines("translated", "mapped")
INCLUDE = HERE.parents[1] / "include"


def _prints(kit: Kit, part: str, expected: str) -> None:
    for config in (SMALL, UNOPTIMISED, MEDIUM):
        run = kit.run(kit.compile("api.cc", *config.flags, f"-I{INCLUDE}"), part, env=config.environment())
        expect((run.code, run.output, run.errors) == (0, expected, ""), f"{config}: {run.last_words()}")


def test_pinned_blocks_are_walked_as_plain_memory(kit: Kit) -> None:
    _prints(kit, "lengths", f"managed 1\n0 1\n1 1\n{(24 << 20) - 4097} 1\n{24 << 20} 1\n")


def test_what_is_written_through_pins_is_what_is_read(kit: Kit) -> None:
    _prints(kit, "writes", "same 1\n")


def test_what_is_asked_for_ahead_holds_what_was_written(kit: Kit) -> None:
    _prints(kit, "prefetches", "asked 0\nsame 1\nahead 1\n")


def test_a_mapped_file_gets_what_is_stored(kit: Kit) -> None:
    _prints(kit, "files", "flush 0\nunmap 0\nsame 1\n")


def test_wrong_calls_are_refused(kit: Kit) -> None:
    _prints(kit, "errors", "plain -22\nsaid 1\nmissing 1\n")
