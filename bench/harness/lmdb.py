"""LMDB from its source package, with its data in a persistent region (bench/durable/lmdb/lmdb_region.h)."""
import os
import pathlib

from . import sources
from .command import ROOT

SHIM = ROOT / "bench" / "durable" / "lmdb"
RENAMED = ("mmap", "munmap", "msync")
OBJECTS = ("mdb.o", "midl.o", "lmdb_region.o")


def _library(tree: pathlib.Path) -> pathlib.Path:
    return tree / "libraries" / "liblmdb"


def _make(tree: pathlib.Path, compiler: list[str]) -> None:
    # Not vectorised, as compilers of the paper's days would not have it at -O2: a store of LMDB's source is a store.
    command = [*compiler, "-fspillway-durable", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-pthread", "-w", f"-I{ROOT / 'include'}"]
    names = [f"-D{name}=lmdb_region_{name}" for name in RENAMED]
    sources.run([*command, *names, "-c", "mdb.c", "midl.c"], _library(tree))
    sources.run([*command, "-c", SHIM / "lmdb_region.c"], _library(tree))


def built(build: pathlib.Path) -> tuple[tuple[str, ...], tuple[pathlib.Path, ...]]:
    """Where a program finds the headers, as flags, and what it is linked with."""
    library = _library(sources.built(build, "lmdb", "none", _make, depends=(*SHIM.glob("lmdb_region.*"), ROOT / "include/spillway/durable.h", pathlib.Path(__file__))))
    return tuple(f"-I{folder}" for folder in (library, SHIM, ROOT / "include")), tuple(library / name for name in OBJECTS)


def benchmark(build: pathlib.Path) -> pathlib.Path:
    """mdb_bench.cc, compiled anew."""
    flags, objects = built(build)
    program = build / "bench" / "mdb_bench"
    program.parent.mkdir(exist_ok=True)
    made = program.with_suffix(f".{os.getpid()}")  # another process may be running it
    sources.run([build / "bin" / "spillway-clang++", "-fspillway-engine=none", "-fspillway-durable", "-std=c++20", "-O2", "-pthread", *flags,
                 SHIM / "mdb_bench.cc", *objects, "-o", made], ROOT)
    return made.rename(program)
