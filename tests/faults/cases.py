"""What is run, and which calls fail in it: the tables of every_nth.py."""
import dataclasses
import errno


@dataclasses.dataclass(frozen=True)
class Case:
    """One program in one way of running it. `made`: which of the programs (native, mapped, translated). `options` of spillway run."""
    name: str
    does: str  # what the program is told to do (program.cc); "region": region.cc
    made: str
    options: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    denied: tuple[str, ...] = ()  # calls that the kernel shall not have

    @property
    def has_file(self) -> bool:
        return self.does not in ("heap", "threads", "fork", "region")

    @property
    def writes(self) -> bool:
        return self.has_file and self.does != "map_read"

    @property
    def makes(self) -> bool:
        return self.does == "grow"


NO_AIO = ("io_setup",)
RIGHTS = (("SPILLWAY_TEST_USERFAULT", "none"),)
MAPS, BUFFERS = ("--map-files", "*"), ("--buffer", "*.data", "--buffer-after", "0")
CASES = {case.name: case for case in (
    Case("heap-unmodified", "heap", "native"),
    Case("heap-signals", "heap", "native", ("--faults", "signals")),
    Case("heap-threads", "heap", "native", ("--faults", "threads", "--io", "threads")),
    Case("heap-rights", "heap", "native", ("--io", "io_uring"), RIGHTS),
    Case("heap-mapped", "heap", "mapped", ("--io", "threads")),
    Case("heap-translated", "heap", "translated"),
    Case("heap-rings", "heap", "translated", ("--io", "io_uring")),
    Case("heap-encrypted", "heap", "mapped", ("--encrypt",)),
    Case("threads-unmodified", "threads", "native", ("--io", "threads")),
    Case("threads-mapped", "threads", "mapped"),
    Case("threads-translated", "threads", "translated"),
    Case("fork-unmodified", "fork", "native"),
    Case("fork-rights", "fork", "native", (), RIGHTS),
    Case("fork-mapped", "fork", "mapped"),
    Case("read-kernel", "map_read", "native", (*MAPS, "--mapped-reads", "kernel")),
    Case("read-cache", "map_read", "native", (*MAPS, "--mapped-reads", "cache")),
    Case("read-mapped", "map_read", "mapped", MAPS),
    Case("read-translated", "map_read", "translated", MAPS),
    Case("read-plain", "map_read", "native", (*MAPS, "--mapped-reads", "cache"), (), NO_AIO),
    Case("write-unmodified", "map_write", "native", MAPS),
    Case("write-plain", "map_write", "native", (*MAPS, "--io", "threads"), (), NO_AIO),
    Case("write-rights", "map_write", "native", MAPS, RIGHTS),
    Case("write-mapped", "map_write", "mapped", MAPS),
    Case("write-translated", "map_write", "translated", MAPS),
    Case("buffer-unmodified", "buffer", "native", BUFFERS),
    Case("buffer-light", "buffer", "native", (*BUFFERS, "--engine", "translated")),
    Case("buffer-plain", "buffer", "native", BUFFERS, (), NO_AIO),
    Case("buffer-mapped", "buffer", "mapped", BUFFERS),
    Case("buffer-translated", "buffer", "translated", BUFFERS),
    Case("leave-unmodified", "leave", "native", BUFFERS),
    Case("leave-plain", "leave", "translated", BUFFERS, (), NO_AIO),
    Case("leave-map", "map_leave", "native", MAPS),
    Case("leave-map-plain", "map_leave", "translated", MAPS, (), NO_AIO),
    Case("grow-unmodified", "grow", "native", BUFFERS),
    Case("grow-plain", "grow", "native", (*BUFFERS, "--engine", "translated"), (), NO_AIO),
    Case("grow-mapped", "grow", "mapped", BUFFERS),
    Case("region-unmodified", "region", "native"),
    Case("region-mapped", "region", "mapped"),
    Case("region-translated", "region", "translated"),
)}


@dataclasses.dataclass(frozen=True)
class Call:
    """A class of calls, and how they fail. `errors`: errno's names, or "short": half of the transfer is made."""
    name: str
    calls: tuple[str, ...]
    errors: tuple[str, ...]

    def number(self, error: str) -> int:
        return getattr(errno, error)

    def modes(self, error: str) -> tuple[str, ...]:
        return (ONCE,) if error in AGAIN and self.name != "threads" else (ONCE, LASTING)


ONCE, LASTING = "once", "lasting"
# A call that says so for ever is one that cannot be waited for, and no kernel has it. Of clone EAGAIN is a limit.
AGAIN = ("EINTR", "EAGAIN", "EBUSY", "short")
CALLS = {call.name: call for call in (
    Call("reads", ("read", "readv", "pread64", "preadv", "preadv2"), ("EIO", "EINTR", "short")),
    Call("writes", ("write", "writev", "pwrite64", "pwritev", "pwritev2"), ("EIO", "ENOSPC", "EINTR", "short")),
    Call("syncs", ("fsync", "fdatasync", "msync", "sync_file_range"), ("EIO", "ENOSPC", "EINTR")),
    Call("space", ("fallocate", "ftruncate"), ("ENOSPC", "EIO", "EOPNOTSUPP")),
    Call("opens", ("open", "openat", "memfd_create"), ("EMFILE", "EACCES", "ENOENT")),
    Call("maps", ("mmap", "mremap", "brk"), ("ENOMEM",)),
    Call("unmaps", ("munmap",), ("ENOMEM",)),
    Call("protects", ("mprotect",), ("ENOMEM",)),
    Call("advice", ("madvise",), ("ENOMEM", "EINVAL", "EAGAIN")),
    Call("userfaultfd", ("userfaultfd",), ("EPERM", "ENOMEM", "EMFILE")),
    Call("ioctls", ("ioctl",), ("ENOMEM", "EAGAIN", "EINVAL")),
    Call("threads", ("clone", "clone3"), ("EAGAIN",)),
    Call("rings", ("io_uring_setup", "io_uring_register"), ("ENOMEM", "EPERM", "ENOSYS")),
    Call("uring", ("io_uring_enter",), ("EAGAIN", "EINTR", "EPERM", "EBUSY")),
    Call("aio", ("io_setup", "io_submit", "io_getevents"), ("EAGAIN", "EINTR", "ENOMEM")),
    Call("asks", ("fstat", "newfstatat", "statx", "fstatfs", "lseek"), ("EIO", "ENOMEM")),
    Call("descriptors", ("fcntl", "dup", "dup3", "eventfd2", "epoll_create1", "pipe2"), ("EMFILE",)),
    Call("locks", ("flock",), ("EWOULDBLOCK", "ENOLCK", "EINTR")),
    Call("settings", ("prctl", "membarrier", "sched_getaffinity"), ("EINVAL", "EPERM")),
    Call("entropy", ("getrandom", "mlock"), ("EAGAIN", "ENOSYS")),
    Call("allocations", ("getpgid",), ("ENOMEM",)),  # of the runtime's own objects: SPILLWAY_TEST_ALLOCATIONS
    Call("closes", ("close",), ("EIO", "EINTR")),
)}
