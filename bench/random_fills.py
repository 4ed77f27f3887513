"""Sections of bench/mapped.py and bench/fast_disk.py: random reads of a mapped file, a tenth of which is in memory."""
import collections.abc
import dataclasses
import pathlib

from beyond_memory import CAP_BYTES_MIN, Bench
from harness import fio, reads
from harness.report import Row

KIB, GIB = 1 << 10, 1 << 30
FILE_SHARE = 10  # one part of so many of the file fits
FIO_S = 5
RUN_LIMIT_S = 300  # of any run but a peer's: something hangs


@dataclasses.dataclass(frozen=True)
class Targets:
    """Of a variant by a number of threads, over a peer; 0: none."""

    fio: float = 0
    fio_processor: float = 0
    mmap: float = 0
    mmap_processor: float = 0


@dataclasses.dataclass(frozen=True)
class Plan:
    variants: dict[str, str]  # name to build
    operations: dict[int, int]  # by threads; divided by the scale
    targets: collections.abc.Callable[[str, int], Targets]  # of a variant by so many threads
    many_threads_target: float = 0  # processor time a fill, 16 threads against 2
    repetitions: int = 1  # all sides by turns; the medians count


@dataclasses.dataclass(frozen=True)
class File:
    path: pathlib.Path
    bytes: int
    cap_bytes: int

    def reads(self, bench: Bench, threads: int, operations: int, **more) -> reads.Reads:
        return reads.Reads(self.path, self.bytes, self.cap_bytes, bench.programs.limit(self.cap_bytes), threads,
                           operations // bench.scale, time_limit_s=RUN_LIMIT_S, **more)


def make_file(bench: Bench, section: str) -> File | None:
    """None, and a failure of the section, where it cannot be made."""
    file_bytes = max(FILE_SHARE * CAP_BYTES_MIN, 4 * GIB // bench.scale)
    file = File(bench.programs.store / "words", file_bytes, file_bytes // FILE_SHARE // (64 * KIB) * (64 * KIB))
    made = bench.programs.native("micro", "file-make", "--file", file.path, "--bytes", file.bytes)
    if made.ok:
        return file
    bench.failure(section, "making the file", made.why_failed())
    return None


def possible(bench: Bench, variants: dict[str, str]) -> dict[str, str]:
    """Those of the variants that this build can run; the others are skipped."""
    reasons = {name: bench.programs.why_not_build(build) for name, build in variants.items()}
    for name, reason in reasons.items():
        if reason:
            bench.skip(f"fills: {name}", reason)
    return {name: build for name, build in variants.items() if not reasons[name]}


def by_threads(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


# --- rates -----------------------------------------------------------------------------------------------------------

def fills(bench: Bench, plan: Plan) -> None:
    file = make_file(bench, "fills")
    if file is None:
        return
    if fio.why_not():
        bench.skip("fills: fio", fio.why_not())
    variants = possible(bench, plan.variants)
    measured = {}
    for threads, operations in plan.operations.items():
        job = file.reads(bench, threads, operations, fio_s=min(FIO_S, 1 + FIO_S // bench.scale))
        try:
            measured[threads] = job.measure(bench.programs, variants, bench.repetitions or plan.repetitions)
        except reads.Failed as failed:
            bench.failure("fills", by_threads(threads), str(failed))
            continue
        for variant in variants:
            fills_rows(bench, threads, variant, measured[threads], plan.targets(variant, threads))
        if job.limit_bytes is None:
            bench.skip(f"fills, {by_threads(threads)}: mmap", "memory cannot be limited")
    file.path.unlink()
    if {2, 16} <= measured.keys():
        for variant in variants:
            many, few = (measured[threads].rate(variant).processor_us for threads in (16, 2))
            bench.add(Row("fills", f"processor time a fill, 16 threads against 2, {variant}", many, few, "us",
                          many / few, target=plan.many_threads_target))


def fills_rows(bench: Bench, threads: int, variant: str, measured: reads.Measured, targets: Targets) -> None:
    ours, peer, mmap = (measured.rate(side) for side in (variant, "fio", "mmap"))
    name = f"{by_threads(threads)}, {variant}"
    details = {"counters": measured.counters[variant], "rates": [vars(rate) for rate in measured.rates[variant]]}
    if peer:
        bench.add(Row("fills", f"{name}: fio", ours.reads_per_s, peer.reads_per_s, "reads/s",
                      ours.reads_per_s / peer.reads_per_s, False, targets.fio, note=measured.fio_engine,
                      details=details))
        bench.add(Row("fills", f"{name}: processor time, fio", ours.processor_us, peer.processor_us, "us",
                      ours.processor_us / peer.processor_us, target=targets.fio_processor, note=measured.fio_engine))
    if mmap:
        bench.add(Row("fills", f"{name}: mmap", ours.reads_per_s, mmap.reads_per_s, "reads/s",
                      ours.reads_per_s / mmap.reads_per_s, False, targets.mmap, note="MADV_RANDOM", details=details))
        bench.add(Row("fills", f"{name}: processor time, mmap", ours.processor_us, mmap.processor_us, "us",
                      ours.processor_us / mmap.processor_us, target=targets.mmap_processor))


# --- how long one takes ----------------------------------------------------------------------------------------------

def latency(bench: Bench, variants: dict[str, str], operations: dict[int, int], p99_target: float) -> None:
    """Runs of their own: reading the clock twice a read takes some of the rate. `operations`: by threads."""
    if not bench.programs.grouped:
        bench.skip("latency", "memory cannot be limited")
        return
    file = make_file(bench, "latency")
    if file is None:
        return
    for threads, count in operations.items():
        job = file.reads(bench, threads, count, fio_s=0, timed=True)
        try:
            measured = job.measure(bench.programs, variants, bench.repetitions or 1)
        except reads.Failed as failed:
            bench.failure("latency", by_threads(threads), str(failed))
            continue
        for variant in variants:
            for percentile in reads.PERCENTILES:
                ours, mmap = (measured.latency_us(side, percentile) for side in (variant, "mmap"))
                name = f"{by_threads(threads)}, {variant}: a miss, {percentile}: mmap"
                bench.add(Row("latency", name, ours, mmap, "us", ours / mmap, note="MADV_RANDOM",
                              target=p99_target if percentile == "p99" else 0))
    file.path.unlink()
