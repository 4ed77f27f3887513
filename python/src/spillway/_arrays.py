"""numpy arrays on managed memory of their own: empty, zeros, ones, full, array.

Each array of at least a byte is a region (`_regions.Region`): it begins on a page of its own, may be far larger than
memory, and takes of memory what the cap lets it. Without `store` what does not fit is spilled; with one it is kept
there.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from typing import Any, Literal, Optional, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from ._regions import CREATE, READ_ONLY, SHARED, NativeStore, Region
from ._sizes import Size, parse_size

Shape = Union[SupportsIndex, Sequence[SupportsIndex]]
Store = Union[str, "os.PathLike[str]", NativeStore, None]
Array = npt.NDArray[Any]

_SCHEMES = ("file:", "sparse:", "striped:", "nbd:", "nbd+unix:", "nbds:", "nbds+unix:", "rbd:", "memory:")


def shape_of(shape: Shape) -> tuple[int, ...]:
    """As a tuple of whole numbers from 0 on."""
    try:
        dimensions: tuple[int, ...] = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        dimensions = tuple(operator.index(extent) for extent in shape)  # type: ignore[union-attr]
    if any(extent < 0 for extent in dimensions):
        raise ValueError("negative dimensions are not allowed")
    return dimensions


def _order_of(order: str, allowed: str = "CF") -> str:
    if not isinstance(order, str) or len(order) != 1 or order.upper() not in allowed:
        raise ValueError(f"order is one of {', '.join(allowed)}, not {order!r}")
    return order.upper()


def _store_name(store: Store) -> Union[str, NativeStore, None]:
    """The URI of a store; of a path, that of the file. IsADirectoryError for a directory."""
    if store is None or isinstance(store, NativeStore) or (isinstance(store, str) and store.startswith(_SCHEMES)):
        return store
    path = os.fspath(store)
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"{path} is a directory: name a file in it, or leave store out and say where everything is spilled, "
            f'by spillway.configure(store="{path}") or spillway run --store {path}'
        )
    return "file:" + os.path.abspath(path)


def on_region(region: Region, shape: tuple[int, ...], dtype: np.dtype[Any], order: str, offset: int = 0) -> Array:
    """An array of what stands from `offset` on in the region, which lives as long as anything refers to the array."""
    made: Array = np.ndarray(shape, dtype, buffer=np.asarray(region), offset=offset, order="F" if order == "F" else "C")
    return made


def _flags_of(name: Union[str, NativeStore, None]) -> int:
    if name is None:
        return 0
    if isinstance(name, NativeStore):
        return SHARED if name.is_writable else READ_ONLY
    return SHARED | (CREATE if name.startswith("file:") else 0)


def _is_new(name: Union[str, NativeStore]) -> bool:
    """Whether a file of a store has nothing in it, so that it reads as zeros once it is lengthened."""
    if isinstance(name, NativeStore):
        return False
    path = name.removeprefix("file:")
    return name.startswith("file:") and (not os.path.exists(path) or os.path.getsize(path) == 0)


def _make(
    shape: Shape, dtype: npt.DTypeLike, order: str, store: Store, block: Optional[Size], clears: bool = False
) -> Array:
    """`clears`: all bytes are zero, whatever the store holds."""
    order = _order_of(order)
    # numpy's own rules: "S" is "S1", and a subarray's dimensions come last.
    model = np.empty((0,), dtype)
    if model.dtype.hasobject:
        raise TypeError(
            f"an array of {model.dtype} holds references to objects, which cannot be on managed memory of their own; "
            "`python -m spillway run` manages the memory of such arrays and of their objects"
        )
    dimensions = shape_of(shape) + model.shape[1:]
    length = math.prod(dimensions) * model.dtype.itemsize
    block_bytes = 0 if block is None else parse_size(block, "block")
    name = _store_name(store)
    if length == 0:
        if name is not None:
            raise ValueError(f"{name}: an array of no bytes cannot be on a store")
        return np.empty(dimensions, model.dtype, "F" if order == "F" else "C")
    is_zero = name is None or _is_new(name)  # before the file is made
    region = Region(length, store=name, flags=_flags_of(name), block_bytes=block_bytes)
    if clears and not is_zero:
        np.asarray(region)[:] = 0
    return on_region(region, dimensions, model.dtype, order)


def empty(
    shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C", *,
    store: Store = None, block: Optional[Size] = None,
) -> Array:  # fmt: skip
    """An array on managed memory, as numpy.empty().

    shape: whole numbers, up to 16 TiB in all. dtype: any of fixed size, no objects.
    store: None: spilled where everything is, and all zeros. A path: of a file that the array is kept in, without a
    header; it is made, and lengthened if need be, and what is in it is the array's content. A text such as
    "sparse:DIR?size=1T" or "striped:..." names a store (spillway(1)); a NativeStore is one of your own.
    block: bytes that a miss brings in, a power of two from "4K" to "8M"; None: what misses show to be best.

    What is stored reaches a store with spillway.sync() or spillway.flush(), with the end of the last view, or of the
    process.
    Raises OutOfMemoryError, SpillwayError (a store that cannot be used), ValueError, TypeError.
    """
    return _make(shape, dtype, order, store, block)


def zeros(
    shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C", *,
    store: Store = None, block: Optional[Size] = None,
) -> Array:  # fmt: skip
    """As empty(), filled with zeros. Without a store, or with a new file, that takes neither time nor memory."""
    return _make(shape, dtype, order, store, block, clears=True)


def ones(
    shape: Shape, dtype: npt.DTypeLike = float, order: Literal["C", "F"] = "C", *,
    store: Store = None, block: Optional[Size] = None,
) -> Array:  # fmt: skip
    """As empty(), filled with ones."""
    made = _make(shape, dtype, order, store, block)
    made[...] = 1
    return made


def full(
    shape: Shape, fill_value: Any, dtype: Optional[npt.DTypeLike] = None, order: Literal["C", "F"] = "C", *,
    store: Store = None, block: Optional[Size] = None,
) -> Array:  # fmt: skip
    """As empty(), filled with fill_value. dtype None: that of fill_value."""
    fill = np.asarray(fill_value)
    made = _make(shape, fill.dtype if dtype is None else dtype, order, store, block)
    made[...] = fill
    return made


def array(
    source: npt.ArrayLike, dtype: Optional[npt.DTypeLike] = None, order: Literal["K", "A", "C", "F"] = "K", *,
    store: Store = None, block: Optional[Size] = None,
) -> Array:  # fmt: skip
    """A copy of `source` on managed memory, as numpy.array(). Other sequences than arrays are made one in ordinary
    memory first.

    order K or A: Fortran's if that is how `source` is laid out, else C's. The rest as empty().
    """
    order_wanted = _order_of(order, "KACF")
    content = np.asarray(source)
    if order_wanted in "KA":
        order_wanted = "F" if content.flags.fnc else "C"
    made = _make(content.shape, content.dtype if dtype is None else dtype, order_wanted, store, block)
    made[...] = content
    return made
