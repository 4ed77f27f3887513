"""What a figure cannot be read without: commit, machine, kernel, disk, date."""
import contextlib
import datetime
import os
import pathlib
import platform
import subprocess
import time

SETTLE_S = 5


def first_match(path: str, prefix: str) -> str:
    """What stands behind the colon of the first line that starts so."""
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(prefix):
            return line.split(":", 1)[1].strip()
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


def processor_s_below() -> float:
    """Processor time until now of all that this process has started, and what that has, whether it has ended or not."""
    parent_of, ticks_of = {}, {}
    for file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            parent_of[int(file.parent.name)] = int(fields[1])
            ticks_of[int(file.parent.name)] = sum(int(field) for field in fields[11:15])  # its own, and of those it has waited for

    def is_below(process: int) -> bool:
        while process in parent_of and process != os.getpid():
            process = parent_of[process]
        return process == os.getpid()

    ended = os.times()
    alive = sum(ticks for process, ticks in ticks_of.items() if process != os.getpid() and is_below(process))
    return ended.children_user + ended.children_system + alive / os.sysconf("SC_CLK_TCK")


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
