"""What only the mapped engine can get wrong: faults that race, the cap, system calls that may not fault."""
import pytest
from kit import HERE, Kit, MIB, SMALL, expect

pytestmark = pytest.mark.engines("mapped", "unmodified")


def test_many_threads_fault_on_one_block_at_a_time(kit: Kit) -> None:
    kit.same_as_native("races.cc", "one_block", 12, configs=(SMALL,))


def _stores_race_with_evictions(kit: Kit, operations: int, **options: str) -> dict:
    """Every store is found again, and they did race: with evictions, and for blocks that had been cleaned."""
    facts, counters = _facts_and_counters(kit, "races.cc", "stores", operations, output="lost 0000000000000000\n",
                                          memory=SMALL.memory, **options)
    expect(facts["watched"] and counters["evictions"] > operations // 4 and counters["writebacks"] > operations // 8,
           f"there was hardly a race: {counters}")
    rescues = counters["protect_faults"] + (counters["hint_calls"] if kit.engine == "mapped" else 0)
    expect(rescues > operations // 16, f"few stores met a block that was clean: {counters}")
    return counters


def test_stores_that_race_with_evictions_are_not_lost(kit: Kit) -> None:
    _stores_race_with_evictions(kit, 300_000)


@pytest.mark.slow
def test_millions_of_stores_that_race_with_evictions_are_not_lost(kit: Kit) -> None:
    _stores_race_with_evictions(kit, 4_000_000)


def test_pollers_fillers_and_evictors_may_be_many(kit: Kit) -> None:
    _stores_race_with_evictions(kit, 60_000, pollers="4", fillers="32", evictors="4")
    kit.same_as_native("races.cc", "one_block", 2, configs=(SMALL,), env={"SPILLWAY_POLLERS": "32", "SPILLWAY_FILLERS": "64"})


def test_whoever_misses_evicts_where_there_are_no_evictors(kit: Kit) -> None:
    _stores_race_with_evictions(kit, 60_000, evictors="0")


def test_watermarks_may_be_far_apart(kit: Kit) -> None:
    _stores_race_with_evictions(kit, 60_000, low_watermark="20", high_watermark="50", evictors="2")


def test_blocks_of_256k_are_watched_and_evicted(kit: Kit) -> None:
    _large_blocks(kit, 112, memory="72M", block="256K")


def test_blocks_of_2m_are_watched_and_evicted(kit: Kit) -> None:
    _large_blocks(kit, 640, memory="544M", block="2M")


def _large_blocks(kit: Kit, mebibytes: int, **options: str) -> None:
    facts, counters = _facts_and_counters(kit, "spill.cc", "fill", mebibytes, output="wrong 0\n", **options)
    expect(facts["watched"] and counters["evictions"] > 0 and counters["writebacks"] > 0, f"not out of core: {facts} {counters}")
    expect(counters["fills"] + counters["readahead_fills"] > 0, f"nothing came back: {counters}")


def test_mappings_go_while_faults_are_served(kit: Kit) -> None:
    kit.same_as_native("races.cc", "unmap", 60, configs=(SMALL,))


def test_memory_is_unmapped_while_others_read_it(kit: Kit) -> None:
    kit.same_as_native("unmapping.cc", "memory", 40, configs=(SMALL,))


def test_a_file_mapping_is_unmapped_while_others_read_it(kit: Kit) -> None:
    kit.same_as_native("unmapping.cc", "file", 40, configs=(SMALL,))


def test_regions_go_while_they_are_read_ahead(kit: Kit) -> None:
    """Nobody may use a region while it goes, so its readers are gone; what they asked for ahead is on its way."""
    program = kit.compile("unmapping.cc", "-O2", "-DWITH_SPILLWAY", f"-I{HERE.parents[1] / 'include'}",
                          *((f"-L{kit.build / 'lib'}", "-lspillway") if kit.engine == "unmodified" else ()))
    run = kit.run(program, "region", 40, env=SMALL.environment())
    expect((run.code, run.output) == (0, "wrong 0000000000000000\n"), run.last_words())


def test_resident_memory_keeps_to_the_cap(kit: Kit) -> None:
    """Frames, tables and queues lie within the cap; the program's own code, stacks and libraries come on top."""
    own_bytes = 24 * MIB
    for cap_mib in (16, 64):
        program = kit.compile("spill.cc", "-O2")
        run = kit.run(program, "scatter", 200, env=SMALL.environment() | {
            "SPILLWAY_MEMORY": f"{cap_mib}M", "SPILLWAY_THRESHOLD": "64K", "SPILLWAY_QUOTA": "2M"} | kit.wants_report)
        expect(run.code == 0, run.last_words())
        peak = kit.report()["facts"]["resident_peak_bytes"]
        expect(peak <= cap_mib * MIB + own_bytes, f"{peak / MIB:.1f} MiB resident at a cap of {cap_mib} MiB")


def _facts_and_counters(kit: Kit, program: str, *arguments, output: str | None = None,
                        **options: str) -> tuple[dict, dict]:
    run = kit.run(kit.compile(program, "-O2"), *arguments, time_limit_s=350, env=SMALL.environment() | {
        **{f"SPILLWAY_{option.upper()}": value for option, value in options.items()}} | kit.wants_report)
    expect(run.code == 0 and output in (None, run.output), run.last_words())
    found = kit.report()
    return found["facts"], found["counters"]


def test_memory_is_the_kernels_until_it_outgrows_the_cap(kit: Kit) -> None:
    facts, counters = _facts_and_counters(kit, "containers.cc", "vectors", memory="1G")
    expect(not facts["watched"] and counters["missing_faults"] == 0, f"it fits: {facts} {counters}")
    facts, counters = _facts_and_counters(kit, "containers.cc", "vectors", memory="8M")
    expect(facts["watched"] and counters["adoptions"] > 0 and counters["evictions"] > 0, f"{facts} {counters}")
