"""libspillway.so in this process, by ctypes: which one, its functions, and what is set before its first use.

Two ways in. *Preloaded*: the process was started by `spillway run`, or is linked with the library, which then stands in
the global scope; options are those of the run. *Loaded*: by ctypes, in a scope of its own, so that malloc and the
functions of libc stay libc's, and only arrays of this package are managed.

A loaded library ends the process when an option of the environment is wrong or the store cannot be used. So another
interpreter tries all of it first (`_try_out`), and what it says becomes an exception.

Threads: any. Lifetime: of the process. Fork: the library goes on in a child, with what was set here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
import threading
import warnings
from typing import Optional

from ._errors import NotPreloadedError, OutOfMemoryError, SpillwayError, SpillwayWarning
from ._installation import find_library
from ._kernel import serves_system_calls

_lock = threading.RLock()
_functions: Optional[Functions] = None
_is_preloaded = False
_options: dict[str, str] = {}  # that were set here, as the library knows them


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()  # a thread that the child does not have may hold it


os.register_at_fork(after_in_child=_after_fork_in_child)


class Range(ctypes.Structure):
    """struct spw_range."""

    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class StoreTable(ctypes.Structure):
    """struct spw_store."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("context", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("sync", ctypes.c_void_p),
    ]


class Functions:
    """The functions of <spillway/spillway.h> that this package calls, with their types. They release the GIL."""

    def __init__(self, library: ctypes.CDLL) -> None:
        text, pointer, size, u64 = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64

        def function(name: str, result: object, *arguments: object) -> ctypes._NamedFuncPointer:
            found: ctypes._NamedFuncPointer = getattr(library, name)
            found.restype, found.argtypes = result, arguments  # type: ignore[assignment]
            return found

        number = ctypes.c_int
        self.version = function("spw_version", text)
        self.error_message = function("spw_error_message", text)
        self.is_managed = function("spw_is_managed", number, pointer)
        self.set_option = function("spw_set_option", number, text, text)
        self.memory_limit = function("spw_memory_limit", u64)
        self.set_memory_limit = function("spw_set_memory_limit", number, u64)
        self.map = function("spw_map", number, text, u64, size, ctypes.c_uint, size, ctypes.POINTER(pointer))
        self.map_store = function(
            "spw_map_store", number, ctypes.POINTER(StoreTable), u64, size, ctypes.c_uint, size, ctypes.POINTER(pointer)
        )
        self.unmap = function("spw_unmap", number, pointer)
        self.unmap_unsaved = function("spw_unmap_unsaved", number, pointer)
        self.flush = function("spw_flush", number, pointer, size)
        self.sync = function("spw_sync", number, pointer, size)
        self.prefetch_ranges = function("spw_prefetch_ranges", number, ctypes.POINTER(Range), size)
        self.pin_range = function("spw_pin_range", number, pointer, size)
        self.unpin_range = function("spw_unpin_range", number, pointer, size)
        self.advise = function("spw_advise", number, pointer, size, number)
        self.get_statistics = function("spw_get_statistics", number, pointer)

    def message(self) -> str:
        """Of the last call that failed in this thread."""
        said: bytes = self.error_message()
        return said.decode(errors="replace")


def error_of(result: int, message: str) -> SpillwayError:
    """The exception for a negative errno."""
    number = -result
    kind = OutOfMemoryError if number in (errno.ENOMEM, errno.ENFILE) else SpillwayError
    return kind(number, message or os.strerror(number))


def check(result: int, functions: Functions) -> None:
    """Raises what a call that returned `result` means."""
    if result != 0:
        raise error_of(result, functions.message())


def _preloaded() -> Optional[ctypes.CDLL]:
    everywhere = ctypes.CDLL(None)
    return everywhere if hasattr(everywhere, "spw_version") else None


def is_preloaded() -> bool:
    """Whether this process runs under `spillway run` (or is linked with the library): then all its large allocations
    are managed, not only arrays of this package."""
    return _is_preloaded if _functions is not None else _preloaded() is not None


def loaded() -> Optional[Functions]:
    """The functions if the library is in the process already, by whichever way."""
    if _functions is None and _preloaded() is not None:
        return functions()
    return _functions


def functions() -> Functions:
    """The functions; the first call loads the library. SpillwayError when it is not there or refuses what is set."""
    if _functions is not None:
        return _functions
    with _lock:
        return _functions if _functions is not None else _load({})


def configure(options: dict[str, str]) -> None:
    """Sets options, over what the environment says. SpillwayError: a wrong one, or managed memory is in use already."""
    with _lock:
        if _functions is None:
            _load(options)
        else:
            if not _is_preloaded:
                _try_out({**_options, **options})
            _set(_functions, options)


def _load(options: dict[str, str]) -> Functions:
    global _functions, _is_preloaded
    preloaded = _preloaded()
    if preloaded is None:
        _try_out(options)
    found = Functions(preloaded if preloaded is not None else _open())
    _set(found, options)
    if preloaded is None:
        _be_quiet(found)
        _choose_faults(found)
    _functions, _is_preloaded = found, preloaded is not None
    return found


def _set(functions: Functions, options: dict[str, str]) -> None:
    for name, value in options.items():
        result = functions.set_option(name.encode(), os.fsencode(value))
        if result == -errno.EBUSY and is_preloaded():
            raise error_of(
                result,
                f"{name}={value}: under `spillway run` options are the run's, --{name}={value}; "
                "call spillway.configure() only if not spillway.is_preloaded()",
            )
        check(result, functions)
        _options[name] = value


def _open() -> ctypes.CDLL:
    path = _library_path()
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        hint = ""
        if "static TLS" in str(error):
            # Libraries that are loaded later share a small reserve for thread-local variables of the fastest kind.
            hint = (
                "; call spillway.configure() before other libraries are imported, set the environment variable "
                "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4096, or start with: python -m spillway run"
            )
        raise SpillwayError(errno.ENOEXEC, f"libspillway.so cannot be loaded: {error}{hint}") from None


def _library_path() -> str:
    path = find_library()
    if path is None:
        raise SpillwayError(
            errno.ENOENT,
            "libspillway.so is neither in this package nor beside the program `spillway`; "
            "install the wheel for Linux on x86-64 (pip install spillway-memory), or Spillway itself",
        )
    return str(path)


def _be_quiet(functions: Functions) -> None:
    """The line about what a run came to is for who started a run, not for who imported a package."""
    if "quiet" not in _options and "SPILLWAY_QUIET" not in os.environ:
        functions.set_option(b"quiet", b"on")  # unknown to a library before 0.2, which has no such line


def _choose_faults(functions: Functions) -> None:
    """Without the preload the functions of libc are not Spillway's: system calls on managed memory work where the
    kernel has their page faults served by other threads, and only then."""
    if "faults" in _options or "SPILLWAY_FAULTS" in os.environ:
        return
    if serves_system_calls():
        _set(functions, {"faults": "threads"})
        del _options["faults"]  # that was no wish of the user's
        return
    warnings.warn(
        "this kernel does not let userfaultfd serve system calls, so reading files into managed arrays and writing "
        "such arrays to files may fail with EFAULT (Bad address); start with `python -m spillway run`, or allow it: "
        "sysctl vm.unprivileged_userfaultfd=1",
        SpillwayWarning,
        stacklevel=5,
    )


# In another interpreter: what would end this one ends that.
_TRIAL = """
import ctypes, sys
try:
    library = ctypes.CDLL(sys.argv[1])
except OSError:
    sys.exit(0)  # whoever asks for this will find the same, and say more
library.spw_error_message.restype = ctypes.c_char_p
for word in sys.argv[2:]:
    name, value = word.encode(errors="surrogateescape").split(b"=", 1)
    if library.spw_set_option(name, value):
        sys.exit("spillway: " + library.spw_error_message().decode(errors="replace"))
size, pointer = ctypes.c_size_t, ctypes.c_void_p
library.spw_map.argtypes = [ctypes.c_char_p, ctypes.c_uint64, size, ctypes.c_uint, size, pointer]
address = ctypes.c_void_p()
if library.spw_map(None, 0, 4096, 0, 0, ctypes.byref(address)):
    sys.exit("spillway: " + library.spw_error_message().decode(errors="replace"))
"""
_TRIAL_SECONDS_MAX = 60


def _try_out(options: dict[str, str]) -> None:
    """Raises what a process with these options would end with. Nothing where no interpreter can be started for it.

    The store is opened there and closed again; nothing is written to it.
    """
    if not os.path.basename(sys.executable or "").startswith("python"):
        return
    words = [f"{name}={value}" for name, value in options.items()]
    # A report or a trace is of the process itself.
    surroundings = {n: v for n, v in os.environ.items() if n not in ("SPILLWAY_STATS", "SPILLWAY_TRACE")}
    try:
        trial = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _TRIAL, _library_path(), *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=surroundings, timeout=_TRIAL_SECONDS_MAX, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return
    if trial.returncode != 0:
        said = trial.stderr.decode(errors="replace").strip().splitlines() or [f"ended with {trial.returncode}"]
        raise SpillwayError(errno.EINVAL, said[0].removeprefix("spillway: "))


def require_preload(what: str) -> Functions:
    """The functions of a preloaded library. NotPreloadedError, which says how to start, without one."""
    if not is_preloaded():
        raise NotPreloadedError(
            errno.ENOTSUP,
            f"{what} needs a process that was started under Spillway: python -m spillway run --memory 4G script.py "
            "(spillway run --memory 4G -- jupyter lab for notebooks). "
            'Arrays of spillway.empty() and its kin need no such start: spillway.configure(memory="4G") sets their cap',
        )
    return functions()
