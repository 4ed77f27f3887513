"""What a program may say about the memory of arrays: pin, prefetch, advise, flush, sync, and ask: is_managed.

An array stands for the bytes from its first to its last element; those of a view with gaps have the gaps in between.
"""

from __future__ import annotations

import errno
import weakref
from types import TracebackType
from typing import Any, Literal, NamedTuple, Optional

import numpy as np

from . import _library
from ._errors import SpillwayError

Advice = Literal["normal", "sequential", "random", "willneed", "dontneed"]
_ADVICES = {"normal": 0, "sequential": 1, "random": 2, "willneed": 3, "dontneed": 4}  # enum spw_advice


class _Bytes(NamedTuple):
    address: int
    length: int
    has_gaps: bool


def _bytes_of(array: Any) -> _Bytes:
    """Of an array, or of what numpy.asarray() takes without a copy: a tensor, a memoryview."""
    content = array if isinstance(array, np.ndarray) else np.asarray(array)
    if content.size == 0:
        return _Bytes(0, 0, False)
    low = high = content.__array_interface__["data"][0]
    for extent, stride in zip(content.shape, content.strides):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    length = high - low + content.itemsize
    return _Bytes(low, length, length > content.nbytes)


def is_managed(array: Any) -> bool:
    """Whether the memory of an array (or tensor, or memoryview) is Spillway's. False for an array without elements."""
    functions = _library.loaded()
    what = _bytes_of(array)
    return functions is not None and what.length > 0 and bool(functions.is_managed(what.address))


def _managed(array: Any, what_for: str) -> tuple[_library.Functions, _Bytes]:
    what = _bytes_of(array)
    functions = _library.loaded()
    if functions is None or (what.length > 0 and not functions.is_managed(what.address)):
        raise SpillwayError(
            errno.EINVAL,
            f"{what_for} takes managed arrays: of spillway.empty() and its kin, spillway.open_memmap(), "
            "or any large one under `spillway run`",
        )
    return functions, what


class Pin:
    """What pin() gives: it ends by unpin(), with a `with` statement, or with this object."""

    def __init__(self, array: Any) -> None:
        functions, what = _managed(array, "spillway.pin()")
        self._array = array  # pinned memory must not be given back
        if what.length > 0:
            _library.check(functions.pin_range(what.address, what.length), functions)
        self._end = weakref.finalize(self, _unpin, functions, what)
        self._end.atexit = False

    def unpin(self) -> None:
        """Lets it be evicted again. The second time it does nothing."""
        self._end()
        self._array = None

    def __enter__(self) -> Pin:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.unpin()


def _unpin(functions: _library.Functions, what: _Bytes) -> None:
    if what.length > 0:
        functions.unpin_range(what.address, what.length)  # refused in a forked child, which inherits no pins


def pin(array: Any) -> Pin:
    """Brings an array in and keeps it in memory. All pins together: half of the memory at most.

    OutOfMemoryError beyond that, and nothing is pinned; SpillwayError for an array that is not managed.
    """
    return Pin(array)


def prefetch(*arrays: Any) -> None:
    """Asks for arrays to be brought in, without waiting: at most an eighth of the memory at a time.

    SpillwayError for one that is not managed.
    """
    wanted = [_managed(array, "spillway.prefetch()") for array in arrays]
    ranges = [what for _, what in wanted if what.length > 0]
    if ranges:
        functions = wanted[0][0]
        table = (_library.Range * len(ranges))(*[_library.Range(what.address, what.length) for what in ranges])
        _library.check(functions.prefetch_ranges(table, len(ranges)), functions)


def advise(array: Any, advice: Advice) -> None:
    """Says how an array will be used.

    "sequential": misses bring in 1 MiB; "random": their block alone; "normal": what misses show to be best;
    "willneed": as prefetch(); "dontneed": what whole blocks of it hold is dropped, and reads as zeros (of an array on a
    store: written, so that it can be evicted at once). ValueError for another word, and for "dontneed" of a view with
    gaps.
    """
    if advice not in _ADVICES:
        raise ValueError(f"advice is one of {', '.join(_ADVICES)}, not {advice!r}")
    functions, what = _managed(array, "spillway.advise()")
    if advice == "dontneed" and what.has_gaps:
        raise ValueError('"dontneed" would drop what lies in the gaps of this view, too')
    if what.length > 0:
        _library.check(functions.advise(what.address, what.length, _ADVICES[advice]), functions)


def flush(array: Any) -> None:
    """Writes what is dirty of an array to its store, and keeps it in memory. SpillwayError when that fails."""
    functions, what = _managed(array, "spillway.flush()")
    if what.length > 0:
        _library.check(functions.flush(what.address, what.length), functions)


def sync(array: Any) -> None:
    """As flush(), and makes it durable."""
    functions, what = _managed(array, "spillway.sync()")
    if what.length > 0:
        _library.check(functions.sync(what.address, what.length), functions)
