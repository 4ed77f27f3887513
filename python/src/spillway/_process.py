"""What concerns the process as a whole: options, the cap, statistics."""

from __future__ import annotations

import ctypes
import errno
import os
import warnings
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Optional, Union

from . import _library
from ._errors import SpillwayError, SpillwayWarning
from ._sizes import Size, format_size, parse_size


def configure(
    *,
    memory: Union[Size, None] = None,
    store: Union[str, os.PathLike[str], None] = None,
    **options: object,
) -> None:
    """Sets options of this process before managed memory is first used, over what SPILLWAY_... in the environment says.

    memory: hard cap on the memory for data: a size ("4G", bytes) or "auto". Default: 3/4 of what is available.
    store: the directory where what does not fit is spilled, or the name of a store. Default: $TMPDIR, or /tmp.
    options: any other one of `spillway options`, such as block="64K", policy="lru", faults="signals", stats="text".

    Raises SpillwayError with the line that says what is wrong: an unknown option, a store that is not there or has no
    room, or (errno EBUSY) managed memory is in use already, as it is from the start under `spillway run`. Nothing is
    set then, or, of several options, those before the wrong one.
    """
    words = {name.replace("_", "-"): str(value) for name, value in options.items()}
    if memory is not None:
        words["memory"] = "auto" if memory == "auto" else str(parse_size(memory, "memory"))
    if store is not None:
        words["store"] = _store_text(store)
    _library.configure(words)


def _store_text(store: Union[str, os.PathLike[str]]) -> str:
    text = os.fspath(store)
    if not text:
        raise ValueError("store is a directory or the name of a store, not an empty text")
    if ":" not in text and not os.path.isdir(text):
        there = "it is not a directory" if os.path.exists(text) else "it does not exist"
        raise SpillwayError(errno.ENOENT, f"the store directory {text}: {there}; name another one")
    return text


def is_preloaded() -> bool:
    """Whether this process was started by `spillway run`: all its large allocations are managed, not only arrays of
    this package."""
    return _library.is_preloaded()


class Limit:
    """What limit() gives: in a `with` statement, the cap is again what it was when that ends."""

    def __init__(self, before_bytes: int) -> None:
        self._before_bytes = before_bytes

    def __enter__(self) -> Limit:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        _set_limit(self._before_bytes)


def limit(memory: Size, *, store: Union[str, os.PathLike[str], None] = None) -> Limit:
    """Sets the cap of this process, which runs under `spillway run`, from now on or for a `with` statement.

    memory: a size. It is the process's, not the thread's. At most what the run began with; a lower one evicts what is
    above it before this returns. store: what the run was started with, or SpillwayError: it cannot be changed.

    Raises NotPreloadedError, which says how to start, where the process was not; SpillwayError when the cap is too
    small, above that of the start, or pinned arrays need it. A SpillwayWarning: it holds, but what is above it could
    not be written in 30 s.
    """
    wanted = parse_size(memory, "memory")
    functions = _library.require_preload("spillway.limit()")
    if store is not None:
        _check_store(_store_text(store), functions)
    before: int = functions.memory_limit()
    _set_limit(wanted)
    return Limit(before)


def _check_store(store: str, functions: _library.Functions) -> None:
    if functions.set_option(b"store", os.fsencode(store)) == 0:
        return  # nothing was managed so far
    current = os.environ.get("SPILLWAY_STORE") or os.environ.get("TMPDIR") or "/tmp"
    is_same = store == current or (os.path.isdir(store) and os.path.isdir(current) and os.path.samefile(store, current))
    if not is_same:
        raise SpillwayError(
            errno.EBUSY,
            f"this process spills to {current}, which cannot be changed any more; "
            f"start with: python -m spillway run --store {store}",
        )


def _set_limit(memory_bytes: int) -> None:
    functions = _library.functions()
    result = functions.set_memory_limit(memory_bytes)
    if result == -errno.ETIMEDOUT:
        warnings.warn(functions.message(), SpillwayWarning, stacklevel=3)
        return
    _library.check(result, functions)


@dataclass(frozen=True)
class Statistics:
    """Counts of this process since its start; a difference of two is what happened in between.

    Amounts that are now, not counts: memory_limit_bytes, block_bytes, managed_bytes, cached_bytes and pinned_bytes. A
    difference has the later ones.
    """

    memory_limit_bytes: int = 0
    """The cap."""
    block_bytes: int = 0
    """The unit of caching."""
    managed_bytes: int = 0
    """In managed space now: arrays and, under `spillway run`, allocations."""
    cached_bytes: int = 0
    """Of these, in memory now."""
    pinned_bytes: int = 0
    """Kept in memory by pin(); twice what is pinned twice."""
    misses: int = 0
    """Blocks brought in because somebody waited for them."""
    faults: int = 0
    """Page faults on managed memory."""
    fills: int = 0
    """Blocks read from stores on demand."""
    ahead_fills: int = 0
    """Blocks read from stores ahead of need."""
    zero_fills: int = 0
    """Blocks brought in that had never been written."""
    evictions: int = 0
    """Blocks that left memory."""
    writebacks: int = 0
    """Blocks written to stores."""
    read_bytes: int = 0
    """Read from stores."""
    written_bytes: int = 0
    """Written to stores."""
    waited_ns: int = 0
    """Nanoseconds that threads waited for blocks to be read, all threads together."""

    def __sub__(self, before: Statistics) -> Statistics:
        if not isinstance(before, Statistics):
            return NotImplemented
        now = {field.name: getattr(self, field.name) for field in fields(self)}
        return Statistics(
            **{name: value if name in _AMOUNTS else value - getattr(before, name) for name, value in now.items()}
        )

    def __str__(self) -> str:
        return describe(self)


_AMOUNTS = frozenset({"memory_limit_bytes", "block_bytes", "managed_bytes", "cached_bytes", "pinned_bytes"})


class _Counts(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(field.name, ctypes.c_uint64) for field in fields(Statistics)]


def statistics() -> Statistics:
    """The counts of this process; all zero while no managed memory has been used. A library older than this package
    leaves what it does not know at zero."""
    functions = _library.loaded()
    if functions is None:
        return Statistics()
    counts = _Counts(size=ctypes.sizeof(_Counts))
    _library.check(functions.get_statistics(ctypes.byref(counts)), functions)
    return Statistics(**{field.name: getattr(counts, field.name) for field in fields(Statistics)})


def describe(counts: Statistics) -> str:
    """One line about them, for people."""
    return (
        f"{counts.misses:,} misses, read {format_size(counts.read_bytes)}, wrote {format_size(counts.written_bytes)}, "
        f"waited {counts.waited_ns / 1e9:.2f} s; {format_size(counts.cached_bytes)} of "
        f"{format_size(counts.managed_bytes)} in memory, cap {format_size(counts.memory_limit_bytes)}"
    )


def version() -> str:
    """The version of the library: "0.1.0". SpillwayError when there is none."""
    said: bytes = _library.functions().version()
    return said.decode()
