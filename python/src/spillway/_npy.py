"""open_memmap: .npy files as managed arrays, in place of numpy.lib.format.open_memmap.

numpy reads, writes and checks the header of the file (all versions of the format); only the mapping is ours.
"""

from __future__ import annotations

import os
from typing import Any, Literal, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _library
from ._arrays import Shape, on_region, shape_of
from ._regions import PRIVATE, READ_ONLY, SHARED, Region

Mode = Literal["r", "r+", "w+", "c"]
_FLAGS = {"r": READ_ONLY, "r+": SHARED, "w+": SHARED, "c": PRIVATE}
_MODES_OF_NUMPY = {"readonly": "r", "copyonwrite": "c", "readwrite": "r+", "write": "w+"}


class Memmap(np.ndarray[Any, np.dtype[Any]]):
    """An array of a file, on managed memory; a numpy.ndarray with what numpy.memmap has besides.

    filename: the file's path. mode: "r", "r+", "w+" or "c". offset: bytes of the file before the array's first one.
    Results that are not views of it are plain arrays, whose filename would be None.
    """

    filename: Optional[str]
    mode: Optional[str]
    offset: Optional[int]
    _region: Optional[Region]

    def __array_finalize__(self, obj: Any) -> None:
        is_view = isinstance(obj, Memmap) and np.may_share_memory(self, obj)
        for name in ("filename", "mode", "offset", "_region"):
            setattr(self, name, getattr(obj, name, None) if is_view else None)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        wrapped = super().__array_wrap__(array, context)
        if self is array or type(self) is not Memmap:
            return wrapped
        # numpy 1 leaves it to us to see that it is a scalar.
        is_scalar = return_scalar or (wrapped.shape == () and np.__version__.startswith("1."))
        return wrapped[()] if is_scalar else wrapped.view(np.ndarray)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found.view(np.ndarray) if type(found) is Memmap and found._region is None else found

    def flush(self) -> None:
        """Writes what was stored to the whole file's array and makes it durable. Nothing in modes r and c.

        SpillwayError when the device or the file system refuses; what was stored stays in memory, so it can be tried
        again.
        """
        if self._region is not None and self._region.is_shared:
            functions = _library.functions()
            _library.check(functions.sync(self._region.address, self._region.length), functions)


def open_memmap(
    filename: Union[str, os.PathLike[str]],
    mode: Mode = "r+",
    dtype: Optional[npt.DTypeLike] = None,
    shape: Optional[Shape] = None,
    fortran_order: bool = False,
    version: Optional[tuple[int, int]] = None,
    *,
    block: Optional[int] = None,
    max_header_size: int = 10000,
) -> Memmap:
    """The array of the .npy file `filename`, on managed memory, as numpy.lib.format.open_memmap().

    mode: "r" (a store to it ends in SIGSEGV where numpy does not refuse it), "r+" (stores reach the file), "w+" (a new
    file, of zeros, of the shape and dtype that are given), "c" (what is stored stays in the process, and is spilled).
    block: bytes that a miss brings in; None: what misses show to be best.

    Stores reach the file by flush(), with the end of the last view, or of the process by exit. Two arrays of one file,
    also of two processes, do not see each other's stores until these have reached it. Raises what numpy does for a bad
    file, and SpillwayError.
    """
    word = _MODES_OF_NUMPY.get(mode, mode)
    if word not in _FLAGS:
        raise ValueError(f"mode is one of {', '.join(_FLAGS)}, not {mode!r}")
    path = os.path.abspath(os.fspath(filename))
    if word == "w+":
        if shape is None:
            raise ValueError("a new file needs a shape")
        made = np.lib.format.open_memmap(
            path, "w+", np.dtype(dtype), shape_of(shape), fortran_order, version, max_header_size=max_header_size
        )
    else:
        made = np.lib.format.open_memmap(path, "r", max_header_size=max_header_size)
    kind, dims, offset = made.dtype, made.shape, int(made.offset)
    order = "F" if made.flags.f_contiguous and not made.flags.c_contiguous else "C"
    length = made.nbytes
    del made
    if length == 0:
        return _named(np.empty(dims, kind, "F" if order == "F" else "C").view(Memmap), path, word, offset, None)
    region = Region(offset + length, store="file:" + path, flags=_FLAGS[word], block_bytes=block or 0)
    return _named(on_region(region, dims, kind, order, offset).view(Memmap), path, word, offset, region)


def _named(array: Memmap, path: str, mode: str, offset: int, region: Optional[Region]) -> Memmap:
    array.filename, array.mode, array.offset, array._region = path, mode, offset, region
    return array
