"""Several disks of a limited rate each, as four drives in one machine are: ext4 on zram, throttled by the control group of what is measured.

The rates are a drive's in proportion, but so low that two processors can give four of them all the requests they take. What is beyond them waits. What the
kernel writes by itself (a journal; with version 1 of control groups, its flusher) is not counted.
"""
import pathlib
import shutil

from . import cgroup, workspace, zram

REQUESTS_PER_S, BYTES_PER_S = 10_000, 128 << 20


def why_not(count: int, size_bytes: int) -> str | None:
    """None where so many disks, that much is written to each of, can be tried; otherwise the reason."""
    return zram.why_not(count * size_bytes) or cgroup.why_not()


def make(directory: pathlib.Path, count: int, size_bytes: int) -> list[zram.Disk]:
    """Below the directory of a run, whose end gives them back (workspace.remove()) if give_back() has not. Raises zram.Unavailable."""
    disks = []
    for number in range(count):
        with workspace.undisturbed():
            below = directory / f"device{number}"
            below.mkdir()
            disks.append(zram.make_disk(below, size_bytes))
    return disks


def give_back(directory: pathlib.Path, count: int) -> None:
    """What is in use stays, for the run's end."""
    with workspace.undisturbed():
        for number in range(count):
            below = directory / f"device{number}"
            if below.exists() and zram.release(below):
                shutil.rmtree(below)


def limit(group: cgroup.MemoryGroup, disks: list[zram.Disk]) -> None:
    """Raises zram.Unavailable."""
    try:
        for disk in disks:
            group.limit_device(pathlib.Path("/dev") / disk.device, REQUESTS_PER_S, BYTES_PER_S)
    except OSError as error:
        raise zram.Unavailable(f"devices cannot be limited: {error}") from None
