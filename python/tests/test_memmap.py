"""spillway.open_memmap beside numpy's."""

import gc
import os
import pickle
import tempfile

import numpy as np
import pytest
import spillway

MIB = 1 << 20


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table, 50 %.npy"


@pytest.mark.parametrize("fortran_order", [False, True])
@pytest.mark.parametrize("shape", [(5,), (300, 40), (), (0, 3), (2, 3, 4), 7])
@pytest.mark.parametrize("dtype", ["f8", ">i4", "U5", [("a", "i2"), ("b", "f8", (2,))], "M8[ns]"])
def test_a_new_file_is_what_numpy_makes(file, tmp_path, dtype, shape, fortran_order):
    theirs = np.lib.format.open_memmap(
        tmp_path / "theirs.npy", "w+", np.dtype(dtype), (shape,) if shape == 7 else shape, fortran_order
    )
    ours = spillway.open_memmap(file, "w+", dtype, shape, fortran_order)
    assert isinstance(ours, np.ndarray)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert ours.strides == theirs.strides or ours.size == 0
    content = np.random.default_rng(7).integers(1, 1000, theirs.shape).astype("i2")
    if np.dtype(dtype).names:
        ours["a"], theirs["a"] = content, content
    else:
        ours[...] = theirs[...] = content.astype(dtype)
    ours.flush()
    theirs.flush()
    assert file.read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    assert (np.load(file) == np.asarray(theirs)).all()
    assert ours.filename == os.path.abspath(file) and ours.mode == "w+" and ours.offset == theirs.offset


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_versions_of_the_format(file, version):
    spillway.open_memmap(file, "w+", "i4", (3,), version=version)[:] = 5
    gc.collect()
    with open(file, "rb") as opened:
        assert np.lib.format.read_magic(opened) == version
    assert spillway.open_memmap(file, "r").tolist() == [5, 5, 5]


def test_modes(file):
    np.save(file, np.arange(1000.0))
    read = spillway.open_memmap(file, "r")
    assert not read.flags.writeable and spillway.is_managed(read)
    with pytest.raises(ValueError, match="read-only"):
        read[0] = 1
    private = spillway.open_memmap(file, "c")
    private[0] = 77
    private.flush()
    assert private[0] == 77 and np.load(file)[0] == 0
    shared = spillway.open_memmap(file)
    assert shared.mode == "r+"
    shared[1] = 88
    shared.flush()
    assert np.load(file)[:3].tolist() == [0, 88, 2]
    assert spillway.open_memmap(file, "readonly").mode == "r"


def test_more_than_memory(file):
    shape = (24, MIB)  # 192 MiB under 64
    made = spillway.open_memmap(file, "w+", "i8", shape)
    for i in range(shape[0]):
        made[i] = np.arange(i, i + MIB)
    del made
    gc.collect()
    theirs = np.load(file, mmap_mode="r")
    assert all((theirs[i] == np.arange(i, i + MIB)).all() for i in range(shape[0]))
    read = spillway.open_memmap(file, "r")
    assert all((read[i] == theirs[i]).all() for i in reversed(range(shape[0])))
    assert spillway.statistics().cached_bytes <= 64 * MIB


def test_views_are_of_the_file_and_results_are_plain(file):
    array = spillway.open_memmap(file, "w+", "f4", (10, 10))
    view = array[2:5].T
    assert view.filename == array.filename
    view.flush()
    for result in (array + 1, array.sum(axis=0), array[[1, 2]], np.sqrt(array)):
        assert type(result) is np.ndarray
    out = spillway.zeros((), "f4")
    assert np.add(array[0, 0], 1, out=out) is out
    assert isinstance(array.sum(), np.float32) and isinstance(array[0, 0], np.float32)
    assert array.copy().filename is None
    copied = pickle.loads(pickle.dumps(array))
    assert (copied == array).all() and not spillway.is_managed(copied)
    del array
    view[0, 0] = 3
    view.flush()
    assert np.load(file)[2, 0] == 3


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("w",), ValueError, "mode is one of r, r\\+, w\\+, c, not 'w'"),
        (("w+", "f8"), ValueError, "a new file needs a shape"),
        (("w+", object, (3,)), ValueError, "Python objects"),
        (("w+", "f8", (-3,)), ValueError, "negative"),
    ],
)
def test_wrong_arguments(file, arguments, error, text):
    with pytest.raises(error, match=text):
        spillway.open_memmap(file, *arguments)
    assert not file.exists()


def test_wrong_files(file):
    with pytest.raises(FileNotFoundError):
        spillway.open_memmap(file, "r")
    file.write_bytes(b"nothing of numpy's")
    with pytest.raises(ValueError, match="magic"):
        spillway.open_memmap(file, "r")
    np.save(file, np.arange(100_000))
    os.truncate(file, 5000)
    with pytest.raises(ValueError, match="length"):
        spillway.open_memmap(file, "r")
    np.save(file, np.array([{}], object))
    with pytest.raises(ValueError, match="objects"):
        spillway.open_memmap(file, "r")


def test_a_file_that_may_not_be_written(good):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "table.npy")
        np.save(file, np.arange(3))
        os.chmod(file, 0o444)
        said = good(
            """
            import os, sys
            import mmap, numpy, spillway
            spillway.open_memmap(sys.argv[1], "r")
            if os.getuid() == 0: os.setuid(65534)
            print(spillway.open_memmap(sys.argv[1], "r").sum())
            try: spillway.open_memmap(sys.argv[1], "r+")
            except spillway.SpillwayError as error: print(error)
            """,
            file,
        )
    assert said == f"3\n[Errno 13] cannot write to {file}: Permission denied\n"
