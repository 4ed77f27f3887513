"""ext4 on a zram device, which is memory that the kernel compresses: a disk that is never the limit. Or swap on it.

make_disk() notes in its directory what it takes, and release() gives all of that back, however far the making came. The
latter is called by workspace.remove(): at the end of a run, and when the next run sweeps what a killed one left.
"""
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import time

BLOCK_DEVICES = pathlib.Path("/sys/block")
CONTROL = pathlib.Path("/sys/class/zram-control")
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
ALGORITHM = "lz4"  # what is stored costs either side the least with it
RECORD = "zram.json"  # in the directory of make_disk()
MOUNT = "disk"  # too
TOOLS = ("mkfs.ext4", "mount", "umount")
BUSY_TRIES_MAX, BUSY_PAUSE_S = 100, 0.1  # a process that was killed may still have files open, a prober the device


class Unavailable(Exception):
    """There can be no such disk here; the text says why."""


@dataclasses.dataclass(frozen=True)
class Disk:
    mount: pathlib.Path
    device: str
    algorithm: str


@dataclasses.dataclass(frozen=True)
class Taken:
    device: str
    added: bool  # for us, and to be removed
    algorithm: str  # before
    boot_id: str  # after a restart the device is somebody else's


def parse_algorithms(text: str) -> tuple[str, list[str]]:
    """(chosen, offered) of what comp_algorithm says: the chosen one is in brackets."""
    words = text.split()
    chosen = next((word.strip("[]") for word in words if word.startswith("[")), "")
    return chosen, [word.strip("[]") for word in words]


def parse_available_bytes(meminfo: str) -> int:
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def why_not(size_bytes: int, root: pathlib.Path = pathlib.Path("/")) -> str | None:
    """None where a disk of that size can be tried, otherwise the reason. `root`: where the kernel's files are found."""
    if os.geteuid() != 0:
        return "making a zram device needs root"
    below = [root / path.relative_to("/") for path in (BLOCK_DEVICES, CONTROL)]
    if not below[1].exists() and not list(below[0].glob("zram*")):
        return "the kernel has no zram (modprobe zram loads it where there is a module)"
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return f"{tool} is missing"
    available = parse_available_bytes((root / "proc/meminfo").read_text())
    if available < size_bytes:  # all of it may be written, and hardly compressible
        return (f"{available >> 20} MiB of memory are free, the device may take {size_bytes >> 20} MiB; "
                "--scale makes it smaller")
    return None


def make_disk(directory: pathlib.Path, size_bytes: int) -> Disk:
    """Mounts ext4, made as mkfs makes it, below `directory`. For calls with signals waiting (workspace.undisturbed): a
    device just added is known to nobody yet. Raises Unavailable, also when release() has something to undo."""
    with _only_one():
        taken, algorithm = _sized_device(directory, size_bytes)
        mount = directory / MOUNT
        mount.mkdir()
        # All at once: what ext4 would otherwise make in the background would be measured.
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", f"/dev/{taken.device}")
        _run("mount", f"/dev/{taken.device}", str(mount))
    return Disk(mount, taken.device, algorithm)


def make_swap(directory: pathlib.Path, size_bytes: int) -> str:
    """Swaps to a zram device, and gives its name. As make_disk() in all else."""
    with _only_one():
        taken, _ = _sized_device(directory, size_bytes)
        _run("mkswap", f"/dev/{taken.device}")
        _run("swapon", f"/dev/{taken.device}")
    return taken.device


@dataclasses.dataclass(frozen=True)
class Held:
    """What a device has been given, and the most memory that it took for it."""

    data_bytes: int
    most_bytes: int


def held(device: str) -> Held:
    fields = _read(BLOCK_DEVICES / device / "mm_stat").split()
    return Held(int(fields[0]), int(fields[4]))


def release(directory: pathlib.Path) -> bool:
    """Gives back what make_disk() took for this directory, if anything. False: it is in use, and all is left there."""
    record = directory / RECORD
    # Anybody may write where temporary directories are: only our own record says what is done to a device.
    if not os.path.exists(record) or os.lstat(directory).st_uid != os.geteuid():
        return True
    taken = Taken(**json.loads(record.read_text()))
    if taken.boot_id == _read(BOOT_ID):
        with _only_one():
            _end_swapping(taken.device)
            if not _unmounted(directory / MOUNT) or not _given_back(taken):
                return False
    record.unlink()
    return True


@contextlib.contextmanager
def _only_one():
    """Of the benchmark runs of a machine: until a device has a size, nothing shows that somebody has chosen it."""
    if not CONTROL.exists():
        yield
        return
    descriptor = os.open(CONTROL, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: pathlib.Path) -> str:
    return path.read_text().strip()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")


def _sized_device(directory: pathlib.Path, size_bytes: int) -> tuple[Taken, str]:
    """And the algorithm that it compresses with."""
    try:
        taken = _take(directory)
    except OSError as error:
        raise Unavailable(f"no zram device can be had: {error}") from None
    return taken, _initialise(directory, taken, size_bytes)


def _take(directory: pathlib.Path) -> Taken:
    """A device without a size, or a new one; noted before anything of it is changed."""
    free = (path.name for path in sorted(BLOCK_DEVICES.glob("zram*")) if _read(path / "disksize") == "0")
    device = next(free, "")
    added = not device
    if added:
        device = f"zram{_read(CONTROL / 'hot_add')}"
    algorithm = parse_algorithms(_read(BLOCK_DEVICES / device / "comp_algorithm"))[0]
    taken = Taken(device, added, algorithm, _read(BOOT_ID))
    part = directory / f"{RECORD}.part"
    part.write_text(json.dumps(dataclasses.asdict(taken)))
    part.rename(directory / RECORD)  # as a whole or not at all
    return taken


def _initialise(directory: pathlib.Path, taken: Taken, size_bytes: int) -> str:
    """The algorithm that the device compresses with."""
    settings = BLOCK_DEVICES / taken.device
    algorithm, offered = parse_algorithms(_read(settings / "comp_algorithm"))
    try:
        if ALGORITHM in offered:
            (settings / "comp_algorithm").write_text(ALGORITHM)
            algorithm = ALGORITHM
        (settings / "disksize").write_text(str(size_bytes))
    except OSError as error:
        if not taken.added:  # it was somebody else's by now, and is not to be reset
            (directory / RECORD).unlink()
        raise Unavailable(f"{taken.device} cannot be set up: {error.strerror}") from None
    return algorithm


def _end_swapping(device: str) -> None:
    if any(line.split()[0] == f"/dev/{device}" for line in pathlib.Path("/proc/swaps").read_text().splitlines()[1:]):
        subprocess.run(["swapoff", f"/dev/{device}"], capture_output=True, check=False)


def _unmounted(mount: pathlib.Path) -> bool:
    for _ in range(BUSY_TRIES_MAX):
        if not os.path.ismount(mount):
            return True
        if subprocess.run(["umount", mount], capture_output=True, check=False).returncode != 0:
            time.sleep(BUSY_PAUSE_S)
    return not os.path.ismount(mount)


def _written(path: pathlib.Path, text: str) -> bool:
    for _ in range(BUSY_TRIES_MAX):
        try:
            path.write_text(text)
            return True
        except OSError:
            time.sleep(BUSY_PAUSE_S)
    return False


def _given_back(taken: Taken) -> bool:
    settings = BLOCK_DEVICES / taken.device
    if not settings.exists():
        return True
    # The kernel refuses to reset a device that is open: nothing is taken from anybody.
    if _read(settings / "disksize") != "0" and not _written(settings / "reset", "1"):
        return False
    if taken.added:
        return _written(CONTROL / "hot_remove", taken.device.removeprefix("zram"))
    return _written(settings / "comp_algorithm", taken.algorithm)
