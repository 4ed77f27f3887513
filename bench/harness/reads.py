"""Random reads of a mapped file, a part of which is in memory: ours, the kernel's mmap, and what fio gets.

Places are uniform, so once memory is full the share of operations that misses is one less the share that fits.
"""
import dataclasses
import pathlib
import statistics

from . import fio, process
from .machine import drop_page_cache

READ_BYTES = 4 << 10


@dataclasses.dataclass(frozen=True)
class Rate:
    reads_per_s: float  # from the disk
    processor_us: float  # a read from the disk


PERCENTILES = ("p50", "p99", "p99.9", "worst")  # as examples/micro reports them


@dataclasses.dataclass
class Measured:
    rates: dict[str, list[Rate]] = dataclasses.field(default_factory=dict)  # by variant, `mmap` and `fio`
    counters: dict[str, dict] = dataclasses.field(default_factory=dict)  # of a variant's last run
    results: dict[str, list[process.Result]] = dataclasses.field(default_factory=dict)
    fio_engine: str = ""

    def rate(self, name: str) -> Rate | None:
        if name not in self.rates:
            return None
        return Rate(statistics.median(r.reads_per_s for r in self.rates[name]),
                    statistics.median(r.processor_us for r in self.rates[name]))


    def latency_us(self, name: str, percentile: str) -> float:
        """Of a read from the disk, where reads were timed (Reads.timed)."""
        return statistics.median(result.report["latency_ns"][percentile] for result in self.results[name]) / 1000


class Failed(Exception):
    pass


def _disk_rate(result: process.Result, resident_share: float) -> Rate:
    report = result.report
    missing = 1 - resident_share
    return Rate(report["ops"] / report["seconds"] * missing, report["processor_ns_per_op"] / missing / 1000)


@dataclasses.dataclass(frozen=True)
class Reads:
    file: pathlib.Path
    file_bytes: int
    cap_bytes: int
    limit_bytes: int | None  # of the control groups; None: no mmap
    threads: int
    operations: int
    fio_s: int  # 0: without fio
    time_limit_s: float
    timed: bool = False  # each read, which takes some of the rate

    def _one(self, measured: Measured, name: str, run, memory_bytes: int) -> None:
        drop_page_cache(self.file)
        arguments = ("file-read", "--file", self.file, "--threads", self.threads, "--ops", self.operations, "--rounds", 1)
        if self.timed:
            arguments += ("--latencies", round(100 * (1 - memory_bytes / self.file_bytes)))  # hits are the fast ones
        result, counters = run(*arguments)
        if not result.ok:
            raise Failed(f"{name}: {result.why_failed()}")
        measured.rates.setdefault(name, []).append(_disk_rate(result, memory_bytes / self.file_bytes))
        measured.results.setdefault(name, []).append(result)
        measured.counters[name] = counters

    def measure(self, programs, variants: dict[str, str], repetitions: int) -> Measured:
        """variants: name to the build that runs under Spillway. Raises Failed."""
        measured = Measured()
        options = {"limit_bytes": self.limit_bytes, "time_limit_s": self.time_limit_s}
        for _ in range(repetitions):
            if self.fio_s and fio.why_not() is None:
                peer = fio.random_reads(self.file, READ_BYTES, self.threads, self.fio_s)
                measured.rates.setdefault("fio", []).append(Rate(peer.reads_per_s, peer.processor_us))
                measured.fio_engine = peer.engine
            for name, build in variants.items():
                self._one(measured, name, lambda *arguments, build=build: programs.spillway(
                    self.cap_bytes, "micro", *arguments, build=build, map_files=self.file, **options), self.cap_bytes)
            if self.limit_bytes is not None:
                self._one(measured, "mmap", lambda *arguments: (
                    programs.native("micro", *arguments, "--advice", "random", **options), {}), self.limit_bytes)
        return measured
