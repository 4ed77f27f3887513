"""pin, prefetch, advise, flush, sync, is_managed."""

import gc

import numpy as np
import pytest
import spillway

MIB = 1 << 20


def pinned_bytes():
    return spillway.statistics().pinned_bytes


@pytest.fixture
def array():
    made = spillway.empty(8 * MIB, "u1")
    made[:] = 7
    return made


def test_is_managed(array):
    assert spillway.is_managed(array) and spillway.is_managed(array[::-3]) and spillway.is_managed(memoryview(array))
    assert not spillway.is_managed(np.ones(3)) and not spillway.is_managed(array[:0])
    assert not spillway.is_managed([1, 2]) and not spillway.is_managed(3)


def test_a_pin_keeps_memory_and_ends(array):
    pin = spillway.pin(array[: 3 * MIB])
    assert pinned_bytes() == 3 * MIB
    pin.unpin()
    pin.unpin()
    assert pinned_bytes() == 0
    with spillway.pin(array[MIB : 2 * MIB]), spillway.pin(array[MIB : 2 * MIB : 5]):
        assert pinned_bytes() == 2 * MIB
    assert pinned_bytes() == 0
    with pytest.raises(ZeroDivisionError), spillway.pin(array[:MIB]):
        1 / 0
    assert pinned_bytes() == 0
    spillway.pin(array[:MIB])
    gc.collect()
    assert pinned_bytes() == 0
    spillway.pin(array[:0]).unpin()


def test_what_is_pinned_stays_while_others_come(array):
    # Half of a fourth of the cap is the least that may be pinned, however much else the tests have in memory.
    with spillway.pin(array[: 3 * MIB]):
        spillway.full(24 * MIB, 1.0)  # 192 MiB under 64
        before = spillway.statistics()
        assert (array[: 3 * MIB] == 7).all()
        assert (spillway.statistics() - before).misses == 0


def test_a_pin_keeps_the_array():
    pin = spillway.pin(spillway.ones(MIB, "u1"))
    gc.collect()
    assert pinned_bytes() == MIB
    pin.unpin()
    assert pinned_bytes() == 0


def test_too_much_cannot_be_pinned():
    array = spillway.ones(60 * MIB, "u1")
    with pytest.raises(spillway.OutOfMemoryError):
        spillway.pin(array)
    with pytest.raises(MemoryError):
        spillway.pin(array)
    assert pinned_bytes() == 0


def test_prefetch_brings_in(tmp_path):
    np.full(32 * MIB, 7, "u1").tofile(tmp_path / "file")
    array = spillway.empty(32 * MIB, "u1", store=tmp_path / "file")
    pieces = [array[at * MIB : at * MIB + 65536] for at in (1, 17, 30)]
    before = spillway.statistics()
    spillway.prefetch(*pieces)
    assert (spillway.statistics() - before).misses == 0
    assert all((piece == 7).all() for piece in pieces)
    cost = spillway.statistics() - before
    # Some may not have been counted yet: whoever comes next counts what has arrived.
    assert cost.misses == 0 and cost.fills == 0 and cost.ahead_fills > 0
    spillway.prefetch()
    spillway.prefetch(array[:0])


def test_advice(array):
    for advice in ("sequential", "random", "normal", "willneed"):
        spillway.advise(array, advice)
        assert (array == 7).all()
    spillway.advise(array[: 4 * MIB], "dontneed")
    assert not array[: 4 * MIB].any() and (array[4 * MIB :] == 7).all()
    with pytest.raises(ValueError, match="gaps"):
        spillway.advise(array[::2], "dontneed")
    with pytest.raises(ValueError, match="advice is one of normal, sequential"):
        spillway.advise(array, "soon")


def test_sync_of_a_file(tmp_path):
    array = spillway.empty(MIB, "u1", store=tmp_path / "file")
    array[:] = 9
    spillway.flush(array[:4096])
    assert np.fromfile(tmp_path / "file", "u1", 4096).tolist() == [9] * 4096
    spillway.sync(array)
    assert (np.fromfile(tmp_path / "file", "u1") == 9).all()


@pytest.mark.parametrize(
    "call", [spillway.pin, spillway.prefetch, spillway.flush, spillway.sync, lambda a: spillway.advise(a, "random")]
)
def test_others_memory_is_refused(call):
    with pytest.raises(spillway.SpillwayError, match="takes managed arrays"):
        call(np.ones(1000))
