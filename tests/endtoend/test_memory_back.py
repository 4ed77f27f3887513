"""What is freed comes back: frames without a write, space on the store, addresses."""
import os
import pathlib
import subprocess

import pytest
from kit import Kit, MEDIUM, MIB, SMALL, TIME_LIMIT_S, UNOPTIMISED, expect, start

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("translated", "mapped")

LOOKS = 10
ARRAY_BYTES_MAX = 12 * MIB
# Space is reserved in chunks of 16 MiB, and given back in batches of 64 MiB at most.
SLACK_BYTES = 64 * MIB + 2 * 16 * MIB
STORE_BYTES_MAX = ARRAY_BYTES_MAX + SLACK_BYTES
ADDRESSES_SPAN_MIB_MAX = 256


def _allocated_bytes(process: subprocess.Popen, store: pathlib.Path) -> int:
    """Of the process's files in `store`, which have no names."""
    files = {}
    for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        if str(entry.readlink()).startswith(f"{store}/"):
            info = os.stat(entry)
            files[info.st_ino] = 512 * info.st_blocks
    expect(len(files) == 1, f"{len(files)} spill files")
    return sum(files.values())


def _look(kit: Kit, process: subprocess.Popen) -> int:
    """The store's size when the program waits to be looked at, which then goes on."""
    line = process.stdout.readline()
    expect(line == "look\n", f"{line!r} is no look; exit code {process.poll()}")
    bytes_now = _allocated_bytes(process, kit.store)
    process.stdin.write("\n")
    process.stdin.flush()
    return bytes_now


def _expect_at_most(bytes_now: int, bytes_max: int, where: str) -> None:
    expect(bytes_now <= bytes_max, f"{where}: the store takes {bytes_now / MIB:.0f} MiB and not {bytes_max / MIB:.0f} at most")


def _arrays_come_back(kit: Kit, rounds: int, *configs) -> None:
    for config in configs:
        program = kit.compile("spill.cc", *config.flags)
        with start(kit, program, "come_back", rounds, env=config.environment() | kit.wants_report) as process:
            for look in range(LOOKS):
                _expect_at_most(_look(kit, process), STORE_BYTES_MAX, f"look {look} with {config}")
            output, errors = process.communicate(timeout=TIME_LIMIT_S)
        lines = output.splitlines()
        expect(process.returncode == 0 and lines[-1] == "wrong 0" and errors == "", f"{config}: {output} {errors}")
        span_mib = int(lines[0].split()[2])
        expect(span_mib <= ADDRESSES_SPAN_MIB_MAX, f"the arrays of {config} span {span_mib} MiB of addresses")
        counters = kit.report()["counters"]
        expect(counters["store_write_bytes"] > rounds * MIB, f"{config}: hardly anything was spilled: {counters}")


def test_freed_arrays_give_back_their_space_and_addresses(kit: Kit) -> None:
    _arrays_come_back(kit, 50, SMALL, UNOPTIMISED)


@pytest.mark.slow
def test_a_thousand_arrays_give_back_their_space_and_addresses(kit: Kit) -> None:
    _arrays_come_back(kit, 1000, SMALL, UNOPTIMISED)


def test_the_store_shrinks_when_most_is_freed(kit: Kit) -> None:
    arrays = 320  # of a MiB
    for config in (SMALL, MEDIUM):
        program = kit.compile("spill.cc", *config.flags)
        with start(kit, program, "give_back", arrays, env=config.environment()) as process:
            full, half, empty = (_look(kit, process) for _ in range(3))
            output, errors = process.communicate(timeout=TIME_LIMIT_S)
        expect((process.returncode, output, errors) == (0, "wrong 0\n", ""), f"{config}: {output}{errors}")
        expect(full >= (arrays - 32) * MIB, f"{config}: the arrays take {full / MIB:.0f} MiB only")
        _expect_at_most(half, arrays // 2 * MIB + SLACK_BYTES, f"half is freed with {config}")
        _expect_at_most(empty, SLACK_BYTES, f"all is freed with {config}")


def test_freed_blocks_are_never_written(kit: Kit) -> None:
    for config in (SMALL, UNOPTIMISED, MEDIUM):
        run = kit.run(kit.compile("spill.cc", *config.flags), "small_rounds", 200,
                      env=config.environment() | kit.wants_report)
        expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{config}: {run.last_words()}")
        report = kit.report()
        counters = report["counters"]
        # Unless the kernel had all of it, as it fits.
        expect(counters["bytes_dirtied"] >= 100 * MIB or not report["facts"]["watched"], f"{config}: {counters}")
        for kind in ("store_writes", "store_reads", "evictions"):
            expect(counters[kind] == 0, f"{config}: {counters[kind]} {kind}")
