"""What people have without Spillway for data beyond memory: the kernel's swap, and arrays in mapped files.

Both run the unchanged native program in a control group, with the kernel settings that suit them best.
"""
import dataclasses

from . import machine, process, swap

PAGE_CLUSTERS = (0, 3)


@dataclasses.dataclass(frozen=True)
class Job:
    program: str
    arguments: tuple
    swap_bytes: int
    limit_bytes: int | None


def best_page_cluster(programs, probe: Job, time_limit_s: float) -> int:
    """The setting with which the native program swaps best, found on a small instance of the same shape."""
    took = {}
    with swap.swap_file(programs.store, probe.swap_bytes):
        for cluster in PAGE_CLUSTERS:
            with swap.setting(swap.PAGE_CLUSTER, str(cluster)):
                result = programs.native(probe.program, *probe.arguments, limit_bytes=probe.limit_bytes,
                                         time_limit_s=time_limit_s)
                took[cluster] = result.seconds if result.ok else float("inf")
    return min(took, key=took.get)


def on_swap(programs, job: Job, probe: Job, time_limit_s: float) -> tuple[process.Result, int]:
    """The result, and the page-cluster it was reached with."""
    cluster = best_page_cluster(programs, probe, time_limit_s / 4)
    machine.settle(programs.store)
    with swap.setting(swap.PAGE_CLUSTER, str(cluster)), swap.swap_file(programs.store, job.swap_bytes):
        result = programs.native(job.program, *job.arguments, limit_bytes=job.limit_bytes, time_limit_s=time_limit_s)
    return result, cluster


def on_mapped_files(programs, job: Job, time_limit_s: float) -> process.Result:
    """Every large array of the program is a shared mapping of a file.

    The kernel's own thresholds for writing back stay: lower ones, tried with a stencil and a sort, were slower."""
    machine.settle(programs.store)
    return programs.native(job.program, *job.arguments, limit_bytes=job.limit_bytes, time_limit_s=time_limit_s,
                           environment=programs.file_arrays())
