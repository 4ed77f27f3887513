"""Memory that is not managed counts: frames give way to it, and what exceeds the cap all the same is said."""
import pytest
from kit import Kit, MIB, SMALL, expect

pytestmark = pytest.mark.engines("mapped", "unmodified")
CAP_MIB = 96
ALLOWANCE = 32 * MIB  # process/native_memory.h
CODE_BYTES = 16 * MIB  # resident pages of code and of libraries, which nobody counts
ENVIRONMENT = SMALL.environment() | {"SPILLWAY_MEMORY": f"{CAP_MIB}M", "SPILLWAY_THRESHOLD": "64K"}
MANY_SMALL = ENVIRONMENT | {"SPILLWAY_QUOTA": f"{CAP_MIB}M"}


def _run(kit: Kit, part: str, mebibytes: int, env: dict[str, str]):
    return kit.run(kit.compile("native_memory.cc", "-O2"), part, mebibytes, env=env | kit.wants_report)


def test_frames_give_way_to_small_objects(kit: Kit) -> None:
    run = _run(kit, "small_objects", 64, MANY_SMALL)
    expect((run.code, run.output, run.errors) == (0, "0 wrong\n", ""), run.last_words())
    facts = kit.report()["facts"]
    # What the plan has beside frames counts as held, used or not (process/native_memory.h).
    planned = facts["memory_cap_bytes"] - facts["frames"] * facts["block_bytes"]
    expect(64 * MIB - planned < facts["native_peak_bytes"] < 80 * MIB, f"{facts}")
    # It took a while until they had given way.
    expect(facts["resident_peak_bytes"] < CAP_MIB * MIB + 64 * MIB, f"{facts}")


def test_a_heap_that_an_allocator_grows_by_itself_is_kept_within_the_cap(kit: Kit) -> None:
    run = _run(kit, "heap_by_brk", 240, ENVIRONMENT)
    expect((run.code, run.output, run.errors) == (0, "0 wrong\n", ""), run.last_words())
    facts = kit.report()["facts"]
    if kit.engine == "unmodified":
        expect(facts["resident_peak_bytes"] < CAP_MIB * MIB + ALLOWANCE + CODE_BYTES, f"{facts}")


def test_who_exceeds_the_cap_says_so_once(kit: Kit) -> None:
    run = _run(kit, "shared", 200, ENVIRONMENT)
    expect((run.code, run.output) == (0, "0 wrong\n"), run.last_words())
    expect(run.errors.startswith("spillway: warning: the program holds 20") and "--memory is 96.0 MiB" in run.errors
           and "MiB of it is shared memory; raise --memory, since Spillway does not manage it" in run.errors
           and run.errors.count("\n") == 1, run.last_words())


def test_who_exceeds_the_cap_without_managed_memory_says_so_at_the_end(kit: Kit) -> None:
    run = kit.run(kit.compile("native_memory.cc", "-O2"), "shared_alone", 200, env=ENVIRONMENT)
    expect((run.code, run.output) == (0, "0 wrong\n"), run.last_words())
    expect("--memory is 96.0 MiB" in run.errors and run.errors.count("\n") == 1, run.last_words())
    quiet = kit.run(kit.compile("native_memory.cc", "-O2"), "shared_alone", 100, env=ENVIRONMENT)
    expect((quiet.code, quiet.output, quiet.errors) == (0, "0 wrong\n", ""), quiet.last_words())


def test_a_large_mapping_of_a_file_that_no_pattern_matches_is_told_of(kit: Kit) -> None:
    program = kit.compile("native_memory.cc", "-O2")
    told = {}
    for mebibytes, patterns in ((90, "/nothing"), (200, "/nothing"), (200, "/tmp/native_memory_*")):
        run = kit.run(program, "maps_a_file", mebibytes, env=ENVIRONMENT | {"SPILLWAY_MAP_FILES": patterns})
        expect((run.code, run.output) == (0, "0 wrong\n"), run.last_words())
        told[mebibytes, patterns] = run.errors
    line = told.pop((200, "/nothing"))
    expect(line.startswith("spillway: warning: what is in memory of /tmp/native_memory_") and "no --map-files matches it" in line
           and line.count("\n") == 1, line)
    expect(set(told.values()) == {""}, f"{told}")
