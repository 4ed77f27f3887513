"""spillway.empty and its kin: what they make, and when it is given back."""

import ctypes
import gc
import os
import shutil
import subprocess
import threading

import numpy as np
import pytest
import spillway
from conftest import needs_served_system_calls

MIB = 1 << 20


def managed_bytes():
    gc.collect()
    return spillway.statistics().managed_bytes


@pytest.mark.parametrize("order", ["C", "F", "c"])
@pytest.mark.parametrize("shape", [7, (), (3,), (3, 4), (2, 0, 3), (2, 3, 4), [5], np.int64(4)])
@pytest.mark.parametrize("dtype", ["f4", "i8", "u1", "c16", "S", "U3", "M8[s]", "f2,i4", ("i4", (2,)), bool])
def test_they_are_numpy_arrays_of_numpys_shapes(shape, dtype, order):
    theirs = np.zeros(shape, dtype, order.upper())
    ours = spillway.zeros(shape, dtype, order)
    assert type(ours) is np.ndarray
    assert (ours.shape, ours.dtype, ours.strides) == (theirs.shape, theirs.dtype, theirs.strides)
    assert ours.flags.writeable and ours.flags.aligned
    assert ours.tobytes() == theirs.tobytes()
    assert spillway.is_managed(ours) == (ours.size > 0)


def test_values():
    assert spillway.ones((2, 2), "i4").tolist() == [[1, 1], [1, 1]]
    assert spillway.full((2,), 7).dtype == np.full((2,), 7).dtype
    assert spillway.full((2, 2), [1.5, 2]).tolist() == [[1.5, 2], [1.5, 2]]
    assert spillway.full(2, "ab").tolist() == ["ab", "ab"]
    assert np.isnan(spillway.full(1000, np.nan)).all()
    assert np.signbit(spillway.full(3, -0.0)).all()
    made = spillway.array([[1, 2], [3, 4]], "f8", "F")
    assert made.flags.f_contiguous and made.tolist() == [[1, 2], [3, 4]]
    source = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert spillway.array(source).strides == source.strides
    assert spillway.array(source, order="C").flags.c_contiguous
    assert spillway.array(source[:, ::2]).tolist() == source[:, ::2].tolist()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (((-1,),), ValueError, "negative dimensions"),
        (((2, -3),), ValueError, "negative dimensions"),
        ((1 << 50,), spillway.OutOfMemoryError, "addresses"),
        (((1 << 40, 1 << 40, 1 << 40),), spillway.OutOfMemoryError, "addresses"),
        ((15 << 40, "u1"), spillway.OutOfMemoryError, "no managed addresses left"),
        ((3, object), TypeError, "holds references"),
        ((3, [("a", object)]), TypeError, "holds references"),
        ((1.5,), TypeError, "not iterable"),
        (("33",), TypeError, "interpreted as an integer"),
        ((3, "no such"), TypeError, "not understood"),
        ((3, "f8", "K"), ValueError, "order is one of C, F"),
        (((1,) * 70,), ValueError, "dimension"),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, text):
    if arguments[0] == 15 << 40:
        _held = spillway.empty(4 << 40, "u1")  # so that not all of the addresses are free
    with pytest.raises(error, match=text):
        spillway.empty(*arguments)


def test_a_wrong_block_is_refused():
    with pytest.raises(spillway.SpillwayError, match="power of two"):
        spillway.empty(10, block="5000")
    assert spillway.is_managed(spillway.empty(10, block="8M"))


def test_more_than_memory_comes_back_as_it_was():
    words = spillway.empty((32 * MIB,), "i8")  # 256 MiB under 64
    words[:] = np.arange(0, words.size, dtype="i8")
    before = spillway.statistics()
    assert before.evictions > 0 and before.written_bytes > 100 * MIB
    for begin in range(0, words.size, MIB):
        assert words[begin] == begin and words[begin + 777] == begin + 777
    assert (words[1:] - words[:-1] == 1).all()
    cost = spillway.statistics() - before
    assert cost.read_bytes > 100 * MIB and cost.misses > 0 and cost.waited_ns > 0
    assert cost.cached_bytes <= 64 * MIB < cost.managed_bytes


@pytest.mark.parametrize(
    ("derive", "look"),
    [
        (lambda array: array[100::-7], lambda view: view.tolist()),
        (lambda array: memoryview(array), lambda view: view[:10].tolist()),
        (lambda array: np.asarray(memoryview(array[5:])), lambda view: view.tolist()),
        (lambda array: np.frombuffer(array, "u1"), lambda view: view[-10:].tolist()),
        (lambda array: array.view("i1").reshape(-1, 2)[:, 1], lambda view: view.tolist()),
        (lambda array: np.lib.stride_tricks.sliding_window_view(array, 3), lambda view: view[-1].tolist()),
        (lambda array: array.flat, lambda view: view[3:5].tolist()),
        (lambda array: iter(array), lambda view: [int(next(view))]),
        (lambda array: np.nditer(array), lambda view: [int(next(view))]),
        (lambda array: array.T.data, lambda view: list(view[:3])),
    ],
)
def test_the_memory_lives_as_long_as_any_view(derive, look):
    before = managed_bytes()
    array = spillway.ones(4 * MIB, "u1")
    view = derive(array)
    del array
    assert managed_bytes() >= before + 4 * MIB
    spillway.ones(4 * MIB, "u1")[:] = 9  # would be in its place
    assert set(look(view)) == {1}
    del view
    assert managed_bytes() == before


def test_thousands_of_small_ones_are_given_back():
    before = managed_bytes()
    for _ in range(20):
        arrays = [spillway.full(100, i) for i in range(500)]
        assert all((array == i).all() for i, array in enumerate(arrays))
        del arrays
    assert managed_bytes() == before


def test_threads_make_use_and_drop_them():
    before, wrong = managed_bytes(), []

    def work(number):
        for turn in range(30):
            array = spillway.full((200_000,), number * 1000 + turn, "i8")
            array += 1
            if not (array == number * 1000 + turn + 1).all():
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    del threads
    assert managed_bytes() == before


@needs_served_system_calls
def test_system_calls_take_them(tmp_path):
    file = tmp_path / "words"
    words = spillway.empty(12 * MIB, "i8")  # 96 MiB under 64
    words[:] = np.arange(words.size)
    words.tofile(file)
    read = np.fromfile(file, "i8")
    assert (read == words).all()
    words[:] = 0
    with open(file, "rb", buffering=0) as source:
        count, view = 0, memoryview(words).cast("B")
        while count < words.nbytes:
            count += source.readinto(view[count:])
    assert (read == words).all()
    assert os.write(os.open(os.devnull, os.O_WRONLY), words[:1000]) == 8000


class TestStores:
    def test_an_array_is_kept_in_its_file(self, tmp_path):
        file = tmp_path / "numbers, 100 % of them?"
        array = spillway.empty((1000, 100), "f8", store=file)
        assert (array == 0).all() and file.stat().st_size == 800_000
        array[:] = np.arange(100)
        spillway.sync(array)
        assert (np.fromfile(file).reshape(1000, 100) == np.arange(100)).all()
        del array
        again = spillway.empty((1000, 100), "f8", store=str(file))
        assert (again == np.arange(100)).all()
        del again
        assert (spillway.zeros((1000, 100), store=f"file:{file}") == 0).all()
        assert not np.fromfile(file).any()
        assert (spillway.full(3, 5.5, store=tmp_path / "new") == 5.5).all()
        assert np.fromfile(tmp_path / "new").tolist() == [5.5] * 3

    def test_the_end_of_the_last_view_writes_it(self, tmp_path):
        array = spillway.ones(100_000, "i4", store=tmp_path / "ones")
        view = array[:10]
        del array
        view[0] = 2
        del view
        gc.collect()
        assert np.fromfile(tmp_path / "ones", "i4")[:2].tolist() == [2, 1]

    def test_sparse_stores_by_their_names(self, tmp_path):
        name = f"sparse:{tmp_path}/segments?size=16M&segment=4M"
        array = spillway.zeros(MIB, "u1", store=name)
        array[:] = 3
        del array
        gc.collect()
        assert (spillway.empty(MIB, "u1", store=name) == 3).all()

    def test_wrong_ones_are_refused_with_a_line(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="name a file in it"):
            spillway.empty(3, store=tmp_path)
        with pytest.raises(spillway.SpillwayError, match="No such file"):
            spillway.empty(3, store=tmp_path / "not" / "there")
        with pytest.raises(spillway.SpillwayError, match="past its end"):
            spillway.empty(2 * MIB, "u1", store="memory:1M")
        with pytest.raises(ValueError, match="no bytes"):
            spillway.empty(0, store=tmp_path / "none")
        assert not (tmp_path / "none").exists()


C_STORE = """
#include <stdint.h>
#include <string.h>
int64_t store_read(void* context, void* buffer, size_t bytes, uint64_t at) {
  memcpy(buffer, (char*)context + at, bytes);
  return bytes;
}
int64_t store_write(void* context, const void* buffer, size_t bytes, uint64_t at) {
  memcpy((char*)context + at, buffer, bytes);
  return bytes;
}
int64_t store_fails(void* context, void* buffer, size_t bytes, uint64_t at) { return -28; }
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    folder = tmp_path_factory.mktemp("store")
    (folder / "store.c").write_text(C_STORE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "store.so", folder / "store.c"], check=True)
    return ctypes.CDLL(str(folder / "store.so"))


class TestNativeStores:
    def test_c_functions_move_the_bytes(self, functions):
        memory = np.arange(16 * MIB, dtype="i8")
        context = memory.__array_interface__["data"][0]
        store = spillway.NativeStore(memory.nbytes, functions.store_read, functions.store_write, context=context)
        array = spillway.empty(memory.size, "i8", store=store)
        assert (array == memory).all()
        array += 1
        del array
        gc.collect()
        assert memory[0] == 1 and memory[-1] == memory.size
        address = ctypes.cast(functions.store_read, ctypes.c_void_p).value
        array = spillway.empty(memory.size, "i8", store=spillway.NativeStore(memory.nbytes, address, context=context))
        assert (array == memory).all() and not array.flags.writeable

    def test_what_it_refuses_is_an_exception_of_sync(self, functions):
        memory = np.zeros(MIB, "u1")
        context = memory.__array_interface__["data"][0]
        store = spillway.NativeStore(MIB, functions.store_read, functions.store_fails, context=context)
        array = spillway.empty(MIB, "u1", store=store)
        array[:] = 1
        with pytest.raises(spillway.SpillwayError, match="No space left"):
            spillway.sync(array)
        # A region that cannot be written stays, which is said; it is this test's to let it go.
        import spillway._library as library

        assert library.functions().unmap_unsaved(array.__array_interface__["data"][0]) == 0
        array.base.base._end.detach()

    def test_python_and_nonsense_are_refused(self):
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64)
        with pytest.raises(TypeError, match="cannot wait for Python"):
            spillway.NativeStore(MIB, kind(lambda *_: 0))
        for function in (lambda *_: 0, "read"):
            with pytest.raises(TypeError, match="a function of C"):
                spillway.NativeStore(MIB, function)
        with pytest.raises(TypeError, match="reads"):
            spillway.NativeStore(MIB, None)
