"""numpy_allocator: numpy's own allocations, from a size on, in managed memory (NEP 49).

numpy takes an allocator as a capsule that holds a table of C functions, by PyDataMem_SetHandler. That function is in
the table of numpy's C API, at a place that is the same since numpy 1.22; ctypes calls it there. The functions are those
of libspillway_numpy.so.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

import numpy as np

from . import _library
from ._errors import SpillwayError
from ._installation import find_allocator
from ._sizes import Size, parse_size

_SET_HANDLER, _GET_HANDLER = 304, 305  # places in numpy's table of functions, by its headers
_CAPSULE_NAME = b"mem_handler"  # numpy's; lives as long as the capsules
_NAME = "spillway"

_lock = threading.Lock()
_helper: Optional[ctypes.CDLL] = None
_capsules: dict[int, object] = {}  # by threshold; arrays keep theirs, so none is ever freed


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)


def _multiarray() -> Any:
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    return importlib.import_module(core + "._multiarray_umath")


def _handler_name() -> str:
    """The name of the allocator that arrays of this context get."""
    name: str = _multiarray().get_handler_name()
    return name


def _set_handler() -> Callable[[object], object]:
    """PyDataMem_SetHandler(capsule): sets it for this context, and gives the one before."""
    is_valid, pointer_of = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(_multiarray()._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER] or 0)
    if not is_valid(get(), _CAPSULE_NAME):
        raise SpillwayError(errno.ENOTSUP, f"numpy {np.__version__} has no allocators where they are expected (NEP 49)")
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER] or 0)


def _loaded_helper() -> ctypes.CDLL:
    global _helper
    if _helper is not None:
        return _helper
    path = find_allocator()
    if path is None:
        raise SpillwayError(
            errno.ENOENT, "libspillway_numpy.so is missing: install the wheel (pip install spillway-memory)"
        )
    functions = _library.functions()
    helper = ctypes.CDLL(str(path))
    helper.spillway_numpy_handler.restype = ctypes.c_void_p
    helper.spillway_numpy_handler.argtypes = [ctypes.c_size_t]
    helper.spillway_numpy_regions.restype = ctypes.c_size_t
    addresses = [ctypes.cast(function, ctypes.c_void_p) for function in (functions.map, functions.unmap)]
    result = helper.spillway_numpy_begin(*addresses)
    if result != 0:
        raise SpillwayError(result, os.strerror(result))
    _helper = helper
    return helper


def _capsule(threshold: int) -> object:
    with _lock:
        if threshold not in _capsules:
            new = ctypes.pythonapi.PyCapsule_New
            new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
            handler = _loaded_helper().spillway_numpy_handler(threshold)
            if not handler:
                raise MemoryError
            _capsules[threshold] = new(handler, _CAPSULE_NAME, None)
        return _capsules[threshold]


def live_regions() -> int:
    """How many allocations of numpy are in managed memory by way of numpy_allocator() now."""
    return int(_helper.spillway_numpy_regions()) if _helper is not None else 0


@contextmanager
def numpy_allocator(threshold: Size = "1M") -> Iterator[None]:
    """In the `with` statement, the data of new numpy arrays of at least `threshold` is in managed memory.

    threshold: a size, from 1 byte on. Also that of results and temporary arrays, which spillway.empty() does not reach.
    It holds for this thread and context (numpy keeps it in a context variable); arrays keep their memory after the
    statement. Under `spillway run` it makes no difference.

    SpillwayError: libspillway_numpy.so is missing (only the wheel has it), or this numpy has no allocators (before
    1.22).
    """
    count = parse_size(threshold, "threshold")
    if count == 0:
        raise ValueError("threshold is at least a byte")
    set_handler = _set_handler()
    before = set_handler(_capsule(count))
    try:
        if _handler_name() != _NAME:
            raise SpillwayError(errno.ENOTSUP, f"numpy {np.__version__} did not take the allocator")
        yield
    finally:
        set_handler(before)
