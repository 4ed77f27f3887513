"""Mappings of files that are moved in part, reach beyond the file, or are replaced by others in their midst."""
import pytest
from kit import SMALL, Kit, expect


PARTS = [("private_beyond_end", 0), ("half_of_shared", 0), ("written_by_threads", 0), ("written_behind_end", 0),
         ("replaced_in_the_midst", 0), ("replaced_in_the_midst", 1)]


@pytest.mark.parametrize("part,way", PARTS)
def test_mappings_of_files_stay_what_they_are(kit: Kit, part: str, way: int) -> None:
    native = kit.run(kit.compile("replaced_maps.cc", "-O2", spillway=False), part, way)
    for more in ({}, {"SPILLWAY_MAP_FILES": "no-such-file"}):
        # What is left to the kernel is warned of.
        ours = kit.run(kit.compile("replaced_maps.cc", *SMALL.flags), part, way, env=SMALL.environment() | more)
        expect((ours.code, ours.output) == (native.code, native.output), f"{more}: {ours.last_words()}\nnatively {native.last_words()}")
