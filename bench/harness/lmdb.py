"""LMDB from its source package, with its data in a persistent region (bench/durable/lmdb/lmdb_region.h)."""
import pathlib

from . import sources
from .command import ROOT

SHIM = ROOT / "bench" / "durable" / "lmdb"
RENAMED = ("mmap", "munmap", "msync")
OBJECTS = ("mdb.o", "midl.o", "lmdb_region.o")


def _library(tree: pathlib.Path) -> pathlib.Path:
    return tree / "libraries" / "liblmdb"


def _make(tree: pathlib.Path, compiler: list[str]) -> None:
    command = [*compiler, "-fspillway-durable", "-O2", "-pthread", "-w", f"-I{ROOT / 'include'}"]
    names = [f"-D{name}=lmdb_region_{name}" for name in RENAMED]
    sources.run([*command, *names, "-c", "mdb.c", "midl.c"], _library(tree))
    sources.run([*command, "-c", SHIM / "lmdb_region.c"], _library(tree))


def built(build: pathlib.Path) -> tuple[tuple[str, ...], tuple[pathlib.Path, ...]]:
    """Where a program finds the headers, as flags, and what it is linked with."""
    library = _library(sources.built(build, "lmdb", "none", _make, depends=(*SHIM.glob("lmdb_region.*"), ROOT / "include/spillway/durable.h")))
    return tuple(f"-I{folder}" for folder in (library, SHIM, ROOT / "include")), tuple(library / name for name in OBJECTS)
