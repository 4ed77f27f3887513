"""What a figure cannot be read without: commit, machine, kernel, disk, date."""
import datetime
import os
import pathlib
import platform
import subprocess
import time

SETTLE_S = 5


def first_match(path: str, prefix: str, mark: str = ":") -> str:
    """What stands behind the first mark of the first line that starts so."""
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(prefix):
            return line.split(mark, 1)[1].strip()
    return "unknown"


def _git(root: pathlib.Path, *arguments: str) -> str:
    run = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    return run.stdout.strip()


def _disk(directory: pathlib.Path) -> str:
    device = os.stat(directory).st_dev
    link = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    name = link.resolve().name if link.exists() else "unknown"
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=False).stdout
    return f"{name}, {kind.strip()}"


def busy_ticks() -> tuple[int, int]:
    """Of all processors since the start of the machine, by anyone: what they worked, and what they could have."""
    user, nice, system, idle, waiting, *others = [int(word) for word in first_match("/proc/stat", "cpu ", " ").split()[:8]]
    busy = user + nice + system + sum(others)
    return busy, busy + idle + waiting


def drop_page_cache(file: pathlib.Path) -> None:
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())  # what is dirty would stay
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def settle(store: pathlib.Path) -> None:
    """Before a run with the disk: nothing of the store's files is in memory, and the disk has rested: one that has just
    taken much is slower for a while."""
    for file in store.iterdir():
        if file.is_file():
            drop_page_cache(file)
    time.sleep(SETTLE_S)


def describe(root: pathlib.Path, directory: pathlib.Path) -> dict:
    changed = "+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    return {
        "commit": _git(root, "rev-parse", "--short=12", "HEAD") + changed,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "processor": f"{os.cpu_count()} x {first_match('/proc/cpuinfo', 'model name')}",
        "memory": first_match("/proc/meminfo", "MemTotal"),
        "disk": _disk(directory),
    }
