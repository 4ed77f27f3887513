"""Control groups that limit memory and the rate of devices, version 1 or 2, and what they say about a run."""
import contextlib
import dataclasses
import os
import pathlib
import signal
import time

MOUNT = pathlib.Path("/sys/fs/cgroup")
IO_MOUNT = MOUNT / "blkio"
PREFIX = "spillway-bench-"
REMOVE_TRIES_MAX = 100
KILL_TRIES_MAX = 200


@dataclasses.dataclass
class Usage:
    """peak_program_bytes: anonymous and shared memory, which a cap can be compared with (sampled: `samples` has (time, bytes)).
    peak_total_bytes: all that was charged, page cache included (exact; 0 where the kernel does not say)."""

    peak_program_bytes: int = 0
    peak_total_bytes: int = 0
    out_of_memory_kills: int = 0
    samples: list[tuple[float, int]] = dataclasses.field(default_factory=list, repr=False)

    def longest_above_s(self, limit_bytes: int) -> float:
        """For how long without a break the program had more, as exactly as it was sampled."""
        longest, since = 0.0, None
        for at, held in self.samples:
            if held <= limit_bytes:
                since = None
                continue
            since = at if since is None else since
            longest = max(longest, at - since)
        return longest


class MemoryGroup:
    def __init__(self, directory: pathlib.Path, version: int):
        self.directory = directory
        self.version = version
        self.usage = Usage()
        self.io_directory = None  # version 1 has a hierarchy of its own for it

    def _read(self, name: str) -> str:
        try:
            return (self.directory / name).read_text()
        except OSError:
            return ""

    def _field(self, file: str, name: str) -> int:
        for line in self._read(file).splitlines():
            words = line.split()
            if words[0] == name:
                return int(words[1])
        return 0

    def limit(self, limit_bytes: int) -> None:
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.directory / name).write_text(str(limit_bytes))

    def limit_device(self, device: pathlib.Path, requests_per_s: int, bytes_per_s: int) -> None:
        """Of reads, and of writes, by the group's processes. OSError: the kernel limits no devices here."""
        number = os.stat(device).st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        if self.version == 2:
            (self.directory.parent / "cgroup.subtree_control").write_text("+io")
            words = (f"{way}{unit}={limit}" for way in "rw" for unit, limit in (("iops", requests_per_s), ("bps", bytes_per_s)))
            (self.directory / "io.max").write_text(f"{name} {' '.join(words)}")
            return
        self.io_directory = IO_MOUNT / self.directory.name
        self.io_directory.mkdir(exist_ok=True)
        for way in ("read", "write"):
            (self.io_directory / f"blkio.throttle.{way}_iops_device").write_text(f"{name} {requests_per_s}")
            (self.io_directory / f"blkio.throttle.{way}_bps_device").write_text(f"{name} {bytes_per_s}")

    def enter(self) -> None:
        """Moves the calling process in."""
        for directory in filter(None, (self.directory, self.io_directory)):
            (directory / "cgroup.procs").write_text(str(os.getpid()))

    def kill_all(self) -> None:
        """Ends what a program left behind, in whatever session or process group it is by now."""
        for _ in range(KILL_TRIES_MAX):
            members = self._read("cgroup.procs").split()
            if not members:
                return
            for member in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(member), signal.SIGKILL)
            time.sleep(0.01)

    def sample(self) -> None:
        anonymous = "rss" if self.version == 1 else "anon"
        now = self._field("memory.stat", anonymous) + self._field("memory.stat", "shmem")
        self.usage.peak_program_bytes = max(self.usage.peak_program_bytes, now)
        self.usage.samples.append((time.monotonic(), now))

    def finish(self) -> Usage:
        peak = "memory.max_usage_in_bytes" if self.version == 1 else "memory.peak"
        events = "memory.oom_control" if self.version == 1 else "memory.events"
        self.usage.peak_total_bytes = int(self._read(peak) or 0)
        self.usage.out_of_memory_kills = self._field(events, "oom_kill")
        return self.usage


def _own_group_v2() -> pathlib.Path:
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return MOUNT / line[3:].lstrip("/")
    return MOUNT


def _parent() -> tuple[pathlib.Path, int] | None:
    """Where a group with a memory limit can be made, and the version there. The own group of version 2 holds processes
    and so may not hand memory control down; its parent may."""
    if (MOUNT / "memory").is_dir():
        return MOUNT / "memory", 1
    own = _own_group_v2()
    for candidate in (own, own.parent, MOUNT):
        try:
            (candidate / "cgroup.subtree_control").write_text("+memory")
            return candidate, 2
        except OSError:
            continue
    return None


def sweep(is_alive) -> None:
    """Removes the groups of runs that were killed outright."""
    parent = _parent()
    for stale in [*(parent[0].glob(PREFIX + "*") if parent else ()), *IO_MOUNT.glob(PREFIX + "*")]:
        if not is_alive(int(stale.name.removeprefix(PREFIX))):
            _remove(stale)


def why_not() -> str | None:
    """None where memory can be limited, otherwise the reason."""
    try:
        with memory_group(None):
            return None
    except OSError as error:
        return f"no control group can be made ({error.strerror})"


@contextlib.contextmanager
def memory_group(limit_bytes: int | None):
    parent = _parent()
    if parent is None:
        raise OSError(1, "memory control is not handed to this user")
    directory, version = parent
    directory = directory / f"{PREFIX}{os.getpid()}"
    directory.mkdir(exist_ok=True)
    group = MemoryGroup(directory, version)
    try:
        if limit_bytes is not None:
            group.limit(limit_bytes)
        yield group
    finally:
        _remove(directory)
        if group.io_directory:
            _remove(group.io_directory)


def _remove(directory: pathlib.Path) -> None:
    for _ in range(REMOVE_TRIES_MAX):  # the kernel may still be tearing the last process down
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
