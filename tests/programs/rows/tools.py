"""Sorting, compressing, compiling and linking: tools that keep what they work on in memory."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import DEBIAN_PYTHON, Needs, Row, main, python_data  # noqa: E402

MIB = 1 << 20


def lines():
    """200 MiB of lines of 512 bytes, in no order."""
    import random
    source = random.Random(4)
    with open("lines", "w") as file:
        for _ in range(400 << 10):
            file.write(f"{source.getrandbits(128):032x} {source.getrandbits(1912):0478x}\n")


def repeats():
    """192 MiB in which most has come before, tens of MiB ago."""
    import random
    source = random.Random(4)
    parts = [source.randbytes(MIB) for _ in range(48)]
    with open("repeats", "wb") as file:
        for _ in range(192):
            part = source.choice(parts)
            at = source.randrange(MIB)
            file.write(part[at:] + part[:at])


def functions():
    """C, of many functions that are optimised together."""
    with open("functions.c", "w") as file:
        for i in range(3000):
            calls = " + ".join(f"f{j}(x ^ {j}u)" for j in range(max(0, i - 1), i)) or "x"
            file.write(f"unsigned table{i}[16];\nunsigned f{i}(unsigned x) {{\n  if (x < {i % 7 + 2}u) return x;\n"
                       f"  unsigned s = 0;\n  for (unsigned k = 0; k < 16; ++k) s += table{i}[k] * (x + k);\n"
                       f"  switch (x % 9) {{ " + " ".join(f"case {c}: s ^= {i * c + 1}u; break;" for c in range(9)) +
                       f" }}\n  return x & 1 ? s : s + (x > 1000u ? {calls} : 1);\n}}\n")


def of_python(function):
    return python_data(function, python=DEBIAN_PYTHON)


XZ = ("xz", "--threads=1", "--stdout", "--lzma2=preset=0,dict=64MiB")
LLD = "ld.lld-19"
ARCHIVES = ("LLVMX86CodeGen", "LLVMCodeGen", "LLVMAMDGPUCodeGen", "LLVMAnalysis", "LLVMAArch64CodeGen", "LLVMipo", "LLVMCore",
            "LLVMSelectionDAG", "LLVMScalarOpts", "LLVMTransformUtils", "LLVMAMDGPUDesc")

ROWS = [
    Row(name="coreutils_sort", about="sorts 200 MiB of lines in a buffer of 300 MiB, with two threads",
        command=("sort", "--buffer-size=300M", "--parallel=2", "--output=sorted", "{data}/lines"), compares=("sorted",),
        needs=Needs(debian=("coreutils",)), version=("sort", "--version"), data=of_python(lines), cap_mib=52, data_mib=210, limit_s=400),
    Row(name="xz", about="compresses 48 MiB with a dictionary of 64 MiB",
        command=("sh", "-c", "head -c 48M {data}/lines | \"$@\"", "sh", "{spillway}", *XZ), needs=Needs(debian=("xz-utils",)),
        version=("xz", "--version"), data=of_python(lines), cap_mib=40, data_mib=160, limit_s=400),
    Row(name="zstd_long", about="compresses 192 MiB with a window of 128 MiB",
        command=("zstd", "--long=27", "-3", "--single-thread", "-q", "-o", "repeats.zst", "{data}/repeats"),
        compares=("repeats.zst",), needs=Needs(debian=("zstd",)), version=("zstd", "--version"),
        data=of_python(repeats), cap_mib=40, data_mib=160),
    Row(name="gcc", about="compiles a file of 3,000 functions with -O1",
        command=("gcc", "-O1", "-c", "-o", "functions.o", "{data}/functions.c"), compares=("functions.o",),
        needs=Needs(debian=("gcc",)), version=("gcc", "--version"), data=of_python(functions), cap_mib=48, data_mib=192,
        limit_s=600),
    Row(name="lld", about="links eleven of LLVM's libraries, whole, to a shared library",
        command=(LLD, "-shared", "--threads=2", "-o", "linked.so", "-L/usr/lib/llvm-19/lib", "--whole-archive",
                 *("-l" + name for name in ARCHIVES)),
        compares=("linked.so",), needs=Needs(debian=("lld-19", "llvm-19-dev")), version=(LLD, "--version"),
        cap_mib=48, data_mib=192),
]

if __name__ == "__main__":
    main(globals())
