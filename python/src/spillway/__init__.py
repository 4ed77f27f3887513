"""Data bigger than memory: numpy arrays on managed memory, and whole programs under `spillway run`.

Whole programs, as they are::

    python -m spillway run --memory 4G --store /mnt/nvme script.py

Arrays of their own, in any process::

    import spillway

    spillway.configure(memory="4G", store="/mnt/nvme")
    matrix = spillway.empty((10_000_000, 128), "f4")     # a numpy.ndarray
    table = spillway.open_memmap("table.npy", "r")        # in place of numpy's
    with spillway.numpy_allocator(threshold="1M"):        # numpy's own allocations
        scores = matrix @ weights
    print(spillway.statistics())

In notebooks: ``%load_ext spillway``, then ``%%spillway`` above a cell. numpy is imported with the first array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import NotPreloadedError, OutOfMemoryError, SpillwayError, SpillwayWarning
from ._process import Limit, Statistics, configure, is_preloaded, limit, statistics, version

if TYPE_CHECKING:
    from ._allocator import numpy_allocator
    from ._arrays import array, empty, full, ones, zeros
    from ._npy import Memmap, open_memmap
    from ._ranges import Pin, advise, flush, is_managed, pin, prefetch, sync
    from ._regions import NativeStore

__all__ = [
    "Limit",
    "Memmap",
    "NativeStore",
    "NotPreloadedError",
    "OutOfMemoryError",
    "Pin",
    "SpillwayError",
    "SpillwayWarning",
    "Statistics",
    "advise",
    "array",
    "configure",
    "empty",
    "flush",
    "full",
    "is_managed",
    "is_preloaded",
    "limit",
    "numpy_allocator",
    "ones",
    "open_memmap",
    "pin",
    "prefetch",
    "statistics",
    "sync",
    "version",
    "zeros",
]

# What needs numpy: imported when it is first asked for.
_LAZY = {
    "numpy_allocator": "_allocator",
    **dict.fromkeys(("array", "empty", "full", "ones", "zeros"), "_arrays"),
    "NativeStore": "_regions",
    **dict.fromkeys(("Memmap", "open_memmap"), "_npy"),
    **dict.fromkeys(("Pin", "advise", "flush", "is_managed", "pin", "prefetch", "sync"), "_ranges"),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        try:
            module = importlib.import_module("." + _LAZY[name], __name__)
        except ModuleNotFoundError as error:
            if error.name == "numpy":
                raise ImportError(f"spillway.{name} needs numpy: pip install numpy", name="numpy") from error
            raise
        value = getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext spillway`: the magics %spillway and %%spillway."""
    from ._notebook import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext spillway`."""
    from ._notebook import unload

    unload(shell)
