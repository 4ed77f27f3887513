"""One directory on the disk under test that holds every file of a run and is gone afterwards.

Its name carries the process's id: what a run that was killed outright could not remove is swept by the next.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from . import cgroup, zram

PREFIX = ".spillway-bench-"


class Stopped(SystemExit):
    """A signal asked the run to end. Unwinds the stack like Ctrl-C does."""


def _stop(number, _frame):
    raise Stopped(128 + number)


def stop_on_signals() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, and Ctrl-C does so even where the parent had it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)


@contextlib.contextmanager
def undisturbed():
    """Signals wait until the block is through: for undoing things, whatever keys are pressed meanwhile."""
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def active_swap_files(below: pathlib.Path) -> list[str]:
    lines = pathlib.Path("/proc/swaps").read_text().splitlines()[1:]
    return [line.split()[0] for line in lines if line.startswith(str(below) + "/")]


def remove(directory: pathlib.Path) -> None:
    for swap_file in active_swap_files(directory):
        subprocess.run(["swapoff", swap_file], check=False)
    disks = [record.parent for record in directory.glob(f"*/{zram.RECORD}")]
    if all([zram.release(each) for each in (directory, *disks)]):  # of all, also where one is in use
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print(f"{directory} is still in use; the next run removes it", file=sys.stderr)


def sweep(parent: pathlib.Path) -> None:
    for stale in parent.glob(PREFIX + "*"):
        owner = stale.name.removeprefix(PREFIX)
        if owner.isdigit() and not _is_alive(int(owner)):
            remove(stale)
    cgroup.sweep(_is_alive)


@contextlib.contextmanager
def workspace(parent: pathlib.Path):
    """Yields a fresh directory below `parent`, which has to be on the disk that is to be measured."""
    parent = parent.resolve()
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    directory = parent / f"{PREFIX}{os.getpid()}"
    directory.mkdir(mode=0o700)
    try:
        yield directory
    finally:
        with undisturbed():
            remove(directory)


def need_space(directory: pathlib.Path, bytes_needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < bytes_needed:
        sys.exit(f"{directory} has {free >> 20} MiB free, this needs {bytes_needed >> 20} MiB; --store names another")
