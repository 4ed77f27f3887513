"""Regions: pieces of managed memory, each kept by a Python object and given back when the last user of it is gone.

A region is what numpy calls the owner of an array's memory: every view refers to it in the end, also by way of a
memoryview, of another array of bytes or of a tensor that shares it. No lock is held while one is given back, which may
happen in any thread.

At the end of the interpreter nothing is given back: threads may still run, and the runtime writes what is shared to its
stores as the process ends. Neither is anything by a forked child what its parent mapped: the child's copy goes with it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import weakref
from _ctypes import CFuncPtr
from typing import Any, Optional, Union

from . import _library
from ._errors import SpillwayError

SHARED, PRIVATE, READ_ONLY, CREATE = 1, 2, 4, 8  # enum spw_map_flags
ADDRESSES_BYTES = 16 << 40  # of managed space


Function = Union[int, Any]
"""Of C: its address, or what ctypes has of it."""


class NativeStore:
    """A store of your own, whose bytes C functions move: those of struct spw_store (spw_map_store(3)).

    bytes: its size. read, write, sync: addresses, or functions of a ctypes library (numba's cfunc(...).address is one).
    write None: arrays on it are read-only. context: what they are given first, an address. keeps: an object that has to
    live as long as they may be called. They run inside page faults, in any thread and several at a time, so they cannot
    be Python's: TypeError.
    """

    def __init__(
        self,
        bytes: int,
        read: Function,
        write: Optional[Function] = None,
        sync: Optional[Function] = None,
        *,
        context: int = 0,
        keeps: object = None,
    ) -> None:
        addresses = [_address_of(function) for function in (read, write, sync)]
        if addresses[0] is None:
            raise TypeError("a store has a function that reads")
        self.is_writable = addresses[1] is not None
        self.table = _library.StoreTable(ctypes.sizeof(_library.StoreTable), context or None, bytes, *addresses)
        self._keeps = (read, write, sync, keeps)

    def __str__(self) -> str:
        return "a store of C functions"


def _address_of(function: Optional[Function]) -> Optional[int]:
    if function is None or isinstance(function, int):
        return function
    if not isinstance(function, CFuncPtr):
        raise TypeError(f"a function of C, by its address or from a ctypes library, not {function!r}")
    if any("CThunk" in type(part).__name__ for part in (function._objects or {}).values()):
        raise TypeError("a page fault cannot wait for Python: the functions of a store are C's")
    return ctypes.cast(function, ctypes.c_void_p).value


class Region:
    """Bytes [0, length) at `address`. Errors when it is mapped: SpillwayError, OutOfMemoryError."""

    def __init__(
        self, length: int, *, store: Union[str, NativeStore, None] = None, flags: int = 0, block_bytes: int = 0
    ) -> None:
        if length > ADDRESSES_BYTES:
            raise _library.error_of(
                -errno.ENOMEM, f"{length} bytes are more than the {ADDRESSES_BYTES} of addresses that there are"
            )
        functions = _library.functions()
        address = ctypes.c_void_p()
        where = (0, length, flags, block_bytes, ctypes.byref(address))
        if isinstance(store, NativeStore):
            result = functions.map_store(ctypes.byref(store.table), *where)
        else:
            result = functions.map(None if store is None else os.fsencode(store), *where)
        _library.check(result, functions)
        if address.value is None:  # never: success means an address
            raise SpillwayError(errno.EFAULT, "spw_map gave no address")
        self.address: int = address.value
        self.length = length
        self.is_read_only = bool(flags & READ_ONLY)
        self.is_shared = bool(flags & SHARED)
        self.store = store
        self._end = weakref.finalize(self, _give_back, self.address, os.getpid(), store)
        self._end.atexit = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": (self.length,),
            "typestr": "|u1",
            "data": (self.address, self.is_read_only),
        }


def _give_back(address: int, process: int, store: Union[str, NativeStore, None]) -> None:
    functions = _library.loaded()
    if functions is None or os.getpid() != process:
        return
    result = functions.unmap(address)
    if result == 0:
        return
    # The region stays, so nothing is lost: what is dirty is tried again as the process ends. Nobody can catch this:
    # Python prints it, by sys.unraisablehook.
    reason = f"what an array that is gone had stored to {store} could not be written: {functions.message()}"
    raise _library.error_of(result, reason)
