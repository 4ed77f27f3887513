"""Language runtimes, each with a heap of its own and a way of its own to get memory for it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import Data, Needs, Row  # noqa: E402

SOURCES = "{rows}/sources/"


def built(name: str, key: str, *command: str) -> Data:
    """`key`: the source, which is a file beside this one."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sources", key), encoding="utf-8") as file:
        return Data(name, command, file.read())


JAVA = built("java", "Heap.java", "javac", "-d", ".", SOURCES + "Heap.java")
GO = built("go", "heap.go", "go", "build", "-o", "heap", SOURCES + "heap.go")
RUST = built("rust", "heap.rs", "rustc", "-O", "-o", "heap", SOURCES + "heap.rs")
HASKELL = built("haskell", "Heap.hs", "ghc", "-O", "-rtsopts", "-outputdir", ".", "-o", "heap", SOURCES + "Heap.hs")
OCAML = built("ocaml", "heap.ml", "sh", "-c", f"cp {SOURCES}heap.ml . && ocamlopt -o heap heap.ml")


def java(name: str, about: str, *options: str) -> Row:
    return Row(name=f"java_{name}", about=about, command=("java", *options, "-Xmx600m", "-cp", "{data}", "Heap", "360"),
               needs=Needs(commands=("java", "javac")), version=("java", "-version"), data=JAVA, cap_mib=96, data_mib=400)


ROWS = [
    java("g1", "a hash map of 360 MiB of arrays, with G1", "-XX:+UseG1GC"),
    java("serial", "the same with the serial collector", "-XX:+UseSerialGC"),
    java("parallel", "the same with the parallel collector", "-XX:+UseParallelGC"),
    Row(name="node", about="a map of 1,800,000 objects", command=("node", "--max-old-space-size=2000", SOURCES + "heap.js", "1800000"),
        needs=Needs(commands=("node",)), version=("node", "--version"), cap_mib=96, data_mib=384, limit_s=300),
    Row(name="go_cgo", about="140 MiB of slices that goroutines make and read; with cgo", command=("{data}/heap", "140"),
        needs=Needs(commands=("go", "gcc")), version=("go", "version"), data=GO, cap_mib=48, data_mib=192,
        remark="threads serve its faults, since its stacks are on its heap"),
    Row(name="rust", about="a B-tree of 500,000 vectors, and a sort of 128 MiB", command=("{data}/heap", "500000"),
        needs=Needs(commands=("rustc",)), version=("rustc", "--version"), data=RUST, cap_mib=60, data_mib=250),
    Row(name="haskell", about="a map of 600,000 lists, collected by copying (GHC)", command=("{data}/heap", "600000"),
        needs=Needs(debian=("ghc",)), version=("ghc", "--version"), data=HASKELL, cap_mib=96, data_mib=384, limit_s=400),
    Row(name="ocaml", about="a hash table of 500,000 lists and strings", command=("{data}/heap", "500000"),
        needs=Needs(debian=("ocaml-nox",)), version=("ocamlopt", "-version"), data=OCAML, cap_mib=48, data_mib=192),
    Row(name="r_mclapply", about="an array of 128 MiB, of which four forked workers take parts (parallel::mclapply)",
        command=("Rscript", "--vanilla", SOURCES + "mclapply.R", "16000000"), needs=Needs(debian=("r-base-core",)),
        version=("Rscript", "--version"), cap_mib=96, data_mib=384, limit_s=300),
]
