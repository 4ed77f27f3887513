"""numpy on arrays of more than memory: Debian's, and the wheel."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import main, python_row  # noqa: E402

MIB = 1 << 20


def told(*arrays) -> None:
    """Prints what shows whether every byte is right."""
    import hashlib
    for array in arrays:
        print(array.shape, array.dtype, hashlib.sha256(memoryview(array).cast("B")).hexdigest())


def numpy_sort():
    """sorts 256 MiB of random numbers in place"""
    import numpy
    numbers = numpy.random.default_rng(7).random(32 * MIB)
    numbers.sort()
    told(numbers)


def numpy_sort_debian():
    """sorts 128 MiB of random numbers by a stable sort, which takes 64 MiB more"""
    import numpy
    numbers = numpy.random.default_rng(7).random(16 * MIB)
    numbers.sort(kind="stable")
    told(numbers)


def numpy_matmul():
    """multiplies two matrices of 128 MiB to one of 128 MiB (OpenBLAS, two threads)"""
    import numpy
    generator = numpy.random.default_rng(7)
    # Small whole numbers: sums are exact in whatever order the threads make them.
    left, right = (generator.integers(-8, 8, (4096, 4096)).astype(numpy.float64) for _ in range(2))
    told(left @ right)


def numpy_expressions():
    """elementwise expressions on four arrays of 96 MiB, with views, strides, masks and copies"""
    import numpy
    generator = numpy.random.default_rng(7)
    size = 12 * MIB
    first, second = generator.random(size), generator.random(size)
    third = first * 3 + second[::-1]
    third[::7] = -third[::7]
    chosen = third[third > 1]
    fourth = numpy.concatenate([chosen, first])
    numpy.cumsum(fourth, out=fourth)
    told(third, fourth[::4].copy())


def numpy_memmap():
    """makes a file of 512 MiB by memmap, reads it in another order and changes it (the kernel's: nothing is managed)"""
    import numpy
    shape = (4096, 16384)
    made = numpy.memmap("numbers", dtype=numpy.float64, mode="w+", shape=shape)
    generator = numpy.random.default_rng(7)
    for row in made:
        row[:] = generator.random(shape[1])
    made.flush()
    del made
    again = numpy.memmap("numbers", dtype=numpy.float64, mode="r+", shape=shape)
    print(again.sum(axis=0).sum().hex())
    again[:, ::512] *= 2
    again.flush()
    print(again[17:4000:13].sum().hex())


ROWS = [
    python_row(numpy_sort, package="numpy", pypi=("numpy",), cap_mib=64, data_mib=256),
    python_row(numpy_matmul, package="numpy", pypi=("numpy",), cap_mib=96, data_mib=384),
    python_row(numpy_expressions, package="numpy", pypi=("numpy",), cap_mib=96, data_mib=384),
    python_row(numpy_memmap, package="numpy", pypi=("numpy",), cap_mib=128, data_mib=512, compares=("numbers",)),
    python_row(numpy_sort_debian, package="numpy", debian=("python3-numpy",), cap_mib=48, data_mib=192, short=True),
]

if __name__ == "__main__":
    main(globals())
