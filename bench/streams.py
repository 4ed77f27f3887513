"""Streams through memory beyond the cap: a section of bench/mapped.py and of bench/fast_disk.py.

A program sums up an array of its own again and again, a quarter of which fits. It is held against the device's bandwidth, as fio
reads by requests of the same kind, and against the kernel's mmap (the array in a mapped file), in processor time a page.
"""
import dataclasses

import beyond_memory
from harness import fio, machine, peers, process
from harness.report import Row

MIB, GIB = 1 << 20, 1 << 30
PAGE_BYTES = 4096
ROUNDS, ROUNDS_MAPPED = 5, 3
FIO_S = 4


@dataclasses.dataclass(frozen=True)
class Targets:
    bandwidth: float  # of the device's
    processor: float = 1.0  # of mmap's, a page


def case(bench: beyond_memory.Bench, threads: int, rounds: int) -> beyond_memory.Case:
    data_bytes = 2 * GIB // bench.scale
    arguments = ("sum", "--bytes", data_bytes, "--rounds", rounds, "--warmups", 0, "--threads", threads)
    return beyond_memory.Case(f"sum, {threads} thread{'s' if threads > 1 else ''}", "micro", arguments, data_bytes,
                              beyond_memory.cap_of(data_bytes))


def page_us(result: process.Result, of: beyond_memory.Case, rounds: int) -> float:
    """Processor time of the whole process a page of the stream, microseconds."""
    return result.report["processor_s"] * 1e6 / (rounds * of.data_bytes / PAGE_BYTES)


def streams(bench: beyond_memory.Bench, variants: tuple[str, ...], targets: Targets) -> None:
    device = 0.0
    if fio.why_not():
        bench.skip("the device's bandwidth", fio.why_not())
    for threads in (1, 2):
        of = case(bench, threads, ROUNDS)
        if device == 0 and not fio.why_not():
            machine.settle(bench.programs.store)
            file = bench.programs.store / "sequential"
            device = fio.sequential_bytes_per_s(file, of.data_bytes, 100, FIO_S)
            file.unlink()
        runs = {variant: bench.ours(of, variant)[0] for variant in variants}
        mapped = against_mapped(bench, threads)
        for variant, result in runs.items():
            if not result.ok:
                bench.failure("streams", f"{of.name}, {variant}", result.why_failed())
                continue
            add_rows(bench, of, variant, result, device, mapped, targets)


def against_mapped(bench: beyond_memory.Bench, threads: int) -> process.Result | None:
    if not bench.programs.grouped:
        bench.skip(f"sum by {threads}: mmap", "no control group can be made here")
        return None
    of = case(bench, threads, ROUNDS_MAPPED)
    machine.settle(bench.programs.store)
    job = beyond_memory.peer_job(of, bench.programs.limit(of.cap_bytes))
    result = peers.on_mapped_files(bench.programs, job, bench.peer_limit_s)
    if result.ok:
        return result
    bench.skip(f"{of.name}: mmap", result.why_failed())
    return None


def add_rows(bench: beyond_memory.Bench, of: beyond_memory.Case, variant: str, result: process.Result, device: float,
             mapped: process.Result | None, targets: Targets) -> None:
    name, details = f"{of.name}, {variant}", {"spillway": beyond_memory.details_of(result)}
    rate = of.data_bytes / result.report["seconds"]
    if device:
        bench.add(Row("streams", f"{name}: the device's bandwidth", rate / MIB, device / MIB, "MiB/s", rate / device, False,
                      targets.bandwidth, note="a round's median", details=details))
    if not mapped:
        return
    if mapped.report["checksum"] != result.report["checksum"]:
        bench.failure("streams", name, f"different results: {result.report} and {mapped.report}")
        return
    details["peer"] = beyond_memory.details_of(mapped)
    mapped_rate = of.data_bytes / mapped.report["seconds"]
    bench.add(Row("streams", f"{name}: mmap", rate / MIB, mapped_rate / MIB, "MiB/s", rate / mapped_rate, False, 1.0,
                  note="arrays in mapped files", details=details))
    ours_us, mapped_us = page_us(result, of, ROUNDS), page_us(mapped, of, ROUNDS_MAPPED)
    bench.add(Row("streams", f"{name}: processor time a page, mmap", ours_us, mapped_us, "us", ours_us / mapped_us,
                  target=targets.processor, note="of 4 KiB, with the sum", details=details))
