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
from typing import Any, Optional

from . import _library
from ._errors import SpillwayError

SHARED, PRIVATE, READ_ONLY, CREATE = 1, 2, 4, 8  # enum spw_map_flags
ADDRESSES_BYTES = 16 << 40  # of managed space


class Region:
    """Bytes [0, length) at `address`. Errors when it is mapped: SpillwayError, OutOfMemoryError."""

    def __init__(self, length: int, *, store: Optional[str] = None, flags: int = 0, block_bytes: int = 0) -> None:
        if length > ADDRESSES_BYTES:
            raise _library.error_of(
                -errno.ENOMEM, f"{length} bytes are more than the {ADDRESSES_BYTES} of addresses that there are"
            )
        functions = _library.functions()
        address = ctypes.c_void_p()
        name = None if store is None else os.fsencode(store)
        _library.check(functions.map(name, 0, length, flags, block_bytes, ctypes.byref(address)), functions)
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


def _give_back(address: int, process: int, store: Optional[str]) -> None:
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
