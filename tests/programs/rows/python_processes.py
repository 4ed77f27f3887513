"""Python itself: its objects, and its ways to have several processes."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import main, python_row  # noqa: E402

MIB = 1 << 20
array = None  # what forked workers inherit


def told(value) -> None:
    import hashlib
    print(hashlib.sha256(memoryview(value).cast("B")).hexdigest())


def python_objects():
    """900 k small dictionaries, lists and texts (270 MiB), walked by its garbage collector, changed, dropped in part"""
    import gc
    made = {}
    for number in range(900_000):
        made[f"name {number}"] = [number, str(number * 7919), (number, number + 1)]
    gc.collect()
    for number in range(0, 900_000, 3):
        del made[f"name {number}"]
    total = 0
    for name, (number, text, pair) in made.items():
        total += len(name) * number + len(text) * pair[1]
    print(len(made), total)


def chunk_sum(place: int) -> tuple:
    part = array[place << 20:(place + 1) << 20]
    return int(part.sum()), int(part.max())


def pool_fork():
    """Pool(4), fork: workers read an array of 256 MiB that they inherited, the parent changes it meanwhile"""
    import multiprocessing

    import numpy
    global array
    array = numpy.arange(32 * MIB, dtype=numpy.int64) * 7
    with multiprocessing.get_context("fork").Pool(4) as pool:
        waits = pool.map_async(chunk_sum, range(32), chunksize=1)
        array[::4096] += 1  # the workers' stays as it was
        print(waits.get())
        print(pool.map(chunk_sum, range(31, -1, -1), chunksize=1))
    told(array)


def pool_fork_writes():
    """Pool(4), fork: workers change their parts of an array of 256 MiB that they inherited, and send them back"""
    import multiprocessing

    import numpy
    global array
    array = numpy.arange(32 * MIB, dtype=numpy.int64) * 7
    with multiprocessing.get_context("fork").Pool(4) as pool:
        for place, part in enumerate(pool.imap(changed_in_place, range(64))):
            array[place << 19:(place + 1) << 19] = part
    told(array)


def changed_in_place(place: int):
    part = array[place << 19:(place + 1) << 19]
    part *= part + place
    return part


def changed(numbers):
    return numbers * (numbers + 1)


def pool_of(method: str) -> None:
    """An array that is sent to the workers in parts, and what they make of it."""
    import multiprocessing

    import numpy
    numbers = numpy.arange(96 * MIB, dtype=numpy.int64)
    with multiprocessing.get_context(method).Pool(4) as pool:
        parts = (numbers[start:start + MIB] for start in range(0, len(numbers), MIB))
        for place, part in enumerate(pool.imap(changed, parts)):
            numbers[place * MIB:(place + 1) * MIB] = part
    told(numbers)


def pool_forkserver():
    """Pool(4), forkserver: an array of 768 MiB is sent to the workers in parts of 8 MiB, and comes back changed"""
    pool_of("forkserver")


def pool_spawn():
    """Pool(4), spawn: an array of 768 MiB is sent to the workers in parts of 8 MiB, and comes back changed"""
    pool_of("spawn")


def shared_memory_pool():
    """Pool(4), fork: workers sort parts of 256 MiB of multiprocessing.shared_memory (the kernel's: not managed)"""
    import multiprocessing
    from multiprocessing import shared_memory

    import numpy
    global array
    block = shared_memory.SharedMemory(create=True, size=256 * MIB)
    try:
        array = numpy.ndarray(32 * MIB, dtype=numpy.int64, buffer=block.buf)
        array[:] = numpy.random.default_rng(3).integers(0, 1 << 60, 32 * MIB)
        with multiprocessing.get_context("fork").Pool(4) as pool:
            pool.map(sort_part, range(32))
        told(array)
        array = None
    finally:
        block.close()
        block.unlink()


def sort_part(place: int) -> None:
    array[place << 20:(place + 1) << 20].sort()


NOTEBOOK = ("import numpy; numbers = numpy.arange(40 << 20)[::-1].copy()", "!echo one > made; ls", "numbers.sort(); int(numbers[12345])",
            "%%bash\nls | wc -l", "import subprocess; subprocess.run(['ls'], capture_output=True, text=True).stdout",
            "found = !cat made\nfound", "int((numbers * 3 % 1000).sum())")


def jupyter_shell_commands():
    """a notebook by nbclient: an array of 320 MiB, with its copies, and !ls, %%bash and subprocess between"""
    import nbclient
    import nbformat
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK])
    nbclient.NotebookClient(made, timeout=150, kernel_name="python3").execute()
    for cell in made.cells:
        for output in cell.outputs:
            print(output.get("text") or output.get("data", {}).get("text/plain"))


NUMPY = ("python3-numpy",)
ROWS = [
    python_row(python_objects, package="", cap_mib=64, data_mib=256),
    python_row(pool_fork, package="numpy", debian=NUMPY, cap_mib=64, data_mib=256, short=True),
    python_row(pool_fork_writes, package="numpy", debian=NUMPY, cap_mib=64, data_mib=256),
    python_row(pool_forkserver, package="numpy", debian=NUMPY, cap_mib=192, data_mib=768),
    python_row(pool_spawn, package="numpy", debian=NUMPY, cap_mib=192, data_mib=768),
    python_row(shared_memory_pool, package="numpy", debian=NUMPY, cap_mib=64, data_mib=256),
    python_row(jupyter_shell_commands, package="nbclient", pypi=("nbclient", "ipykernel", "numpy"), cap_mib=128, data_mib=512),
]

if __name__ == "__main__":
    main(globals())
