"""What is evicted is compressed in memory (--compress)."""
import pytest
from kit import Config, EXIT_USAGE, Kit, MIB, expect

CAP_MIB, DATA_MIB = 24, 112
CONFIG = Config(("-O2",), f"{CAP_MIB}M", "auto", "combining", everything=False)


def _run(kit: Kit, part: str, compress: str, data_mib: int = DATA_MIB):
    run = kit.run(kit.compile("compress.cc", *CONFIG.flags), part, data_mib,
                  env=CONFIG.environment() | kit.wants_report | {"SPILLWAY_COMPRESS": compress})
    expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{compress}: {run.last_words()}")
    return kit.report()


@pytest.mark.engines("translated", "mapped", "unmodified", "threads")
def test_what_compresses_is_kept_and_what_does_not_goes_to_the_store(kit: Kit) -> None:
    for compress, data_mib in (("lz4", DATA_MIB), ("zstd", 2 * DATA_MIB)):  # more than memory holds compressed
        counters = _run(kit, "rounds", compress, data_mib)["counters"]
        for name in ("compressed_pages", "compressed_hits", "compressed_evictions", "compression_misfits", "store_write_bytes"):
            expect(counters[name] > 0, f"{compress}: {name} in {counters}")
        expect(counters["compressed_bytes"] < 4096 * counters["compressed_pages"] / 2, f"{compress}: {counters}")


@pytest.mark.engines("translated", "unmodified")
def test_compressed_pages_are_part_of_the_cap(kit: Kit) -> None:
    facts = _run(kit, "rounds", "lz4")["facts"]
    if kit.engine == "translated":
        expect(facts["frames"] * facts["block_bytes"] < CAP_MIB * MIB / 2, f"{facts}")
    expect(0 < facts["compressed_peak_bytes"] <= CAP_MIB * MIB * 4 / 5, f"{facts}")
    expect(facts["resident_peak_bytes"] < (CAP_MIB + 32) * MIB, f"{facts}")


@pytest.mark.engines("mapped", "unmodified")
def test_what_does_not_compress_leaves_frames_all_of_the_cap(kit: Kit) -> None:
    report = _run(kit, "noise", "auto")
    expect(report["facts"]["compressed_share_bytes"] == 0 and report["counters"]["compressed_pages"] == 0, f"{report}")
    expect(_run(kit, "rounds", "auto")["counters"]["compressed_pages"] > 0, "nothing was compressed")


@pytest.mark.engines("translated")
def test_where_the_share_cannot_change_auto_is_off(kit: Kit) -> None:
    expect(_run(kit, "rounds", "auto")["counters"]["compressed_pages"] == 0, "something was compressed")


@pytest.mark.engines("mapped", "unmodified")
def test_forked_children_go_on(kit: Kit) -> None:
    for compress in ("lz4", "zstd"):
        expect(_run(kit, "forks", compress)["counters"]["compressed_hits"] > 0, "nothing was compressed")


@pytest.mark.engines("unmodified")
def test_another_name_is_refused(kit: Kit) -> None:
    run = kit.run(kit.compile("compress.cc", *CONFIG.flags), "rounds", 1, env=CONFIG.environment() | {"SPILLWAY_COMPRESS": "gzip"})
    expect(run.code == EXIT_USAGE and "SPILLWAY_COMPRESS=gzip" in run.errors and run.errors.count("\n") == 1, run.last_words())
