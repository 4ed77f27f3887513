"""spillway.numpy_allocator: numpy's own allocations."""

import gc
import threading

import numpy as np
import pytest
import spillway
from spillway._allocator import _handler_name, live_regions

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_is_left():
    gc.collect()
    before = live_regions()
    yield
    gc.collect()
    assert live_regions() == before and _handler_name() == "default_allocator"


def test_arrays_from_the_threshold_on_are_managed():
    with spillway.numpy_allocator("1M"):
        assert _handler_name() == "spillway"
        assert not spillway.is_managed(np.empty(MIB - 1, "u1"))
        assert spillway.is_managed(np.empty(MIB, "u1"))
        made = np.arange(MIB)
        for result in (made + 1, made[::2].copy(), np.zeros(MIB), np.sort(made), made.astype("f4"), np.full(MIB, 2)):
            assert spillway.is_managed(result)
    assert not spillway.is_managed(np.empty(MIB))
    assert spillway.is_managed(made) and (made == np.arange(MIB)).all()


def test_zeros_are_zero_where_something_was():
    with spillway.numpy_allocator(4096):
        for _ in range(50):
            assert not np.zeros(MIB, "u1").any()
            np.empty(MIB, "u1").fill(255)


def test_more_than_memory():
    with spillway.numpy_allocator():
        words = np.arange(24 * MIB, dtype="i8")  # 192 MiB under 64, and as much again
        doubled = words * 2
        assert (doubled[::4096] == 2 * words[::4096]).all() and doubled[-1] == 2 * (24 * MIB - 1)


@pytest.mark.parametrize(
    "sizes", [(10, MIB), (MIB, 10), (MIB, 3 * MIB), (3 * MIB, MIB), (100, 200), (MIB, 100, MIB, 5 * MIB)]
)
def test_resize_keeps_what_was_there(sizes):
    with spillway.numpy_allocator("64K"):
        array = np.arange(sizes[0])
        for before, size in zip(sizes, sizes[1:]):
            array.resize(size, refcheck=False)
            kept = min(*sizes[: sizes.index(size) + 1], before, size)
            assert (array[:kept] == np.arange(kept)).all()
            assert not array[before:].any()
            assert spillway.is_managed(array) == (size >= MIB) or size * 8 < 65536


def test_statements_nest_and_end_with_exceptions():
    with spillway.numpy_allocator("1K"):
        with spillway.numpy_allocator("1G"):
            assert not spillway.is_managed(np.empty(MIB))
        assert spillway.is_managed(np.empty(MIB))
        with pytest.raises(ZeroDivisionError), spillway.numpy_allocator("2G"):
            1 / 0
        assert spillway.is_managed(np.empty(MIB))


def test_it_is_of_the_thread_and_arrays_may_die_in_another():
    with spillway.numpy_allocator("64K"):
        arrays = [np.full(MIB, i) for i in range(10)]
        found = []

        def work():
            found.append(spillway.is_managed(np.empty(MIB)))
            while arrays:
                arrays.pop()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [False]


def test_many_threads_at_once():
    wrong = []

    def work(number):
        with spillway.numpy_allocator("4K"):
            for turn in range(300):
                array = np.full(600 + turn * 7, number * 1000 + turn)
                array = np.concatenate([array, array])
                if not (array == number * 1000 + turn).all():
                    wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_wrong_thresholds():
    for threshold, error in ((0, ValueError), ("4GG", ValueError), (-1, ValueError), (None, TypeError)):
        with pytest.raises(error, match="threshold"), spillway.numpy_allocator(threshold):
            pass


def test_what_has_no_addresses_is_a_memory_error():
    with spillway.numpy_allocator("1M"), pytest.raises(MemoryError):
        np.empty(15 << 40, "u1"), np.empty(15 << 40, "u1")


def test_children_keep_their_parents_arrays(good):
    said = good(
        """
        import os, gc
        import numpy as np, spillway
        from spillway._allocator import live_regions
        spillway.configure(memory="32M")
        with spillway.numpy_allocator("1M"):
            array = np.arange(8 << 20)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    assert array[-1] == (8 << 20) - 1
                    array += 1
                    other = np.ones(8 << 20)
                    assert spillway.is_managed(other) and array[0] == 1 and other.sum() == 8 << 20
                    del array, other
                    gc.collect()
                    assert live_regions() == 0
                    status = 0
                finally:
                    os._exit(status)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (array == np.arange(8 << 20)).all())
        """
    )
    assert said == "0 True\n"
