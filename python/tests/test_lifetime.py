"""Ends: of the interpreter, of children, of what cannot be written."""

import signal

import pytest

SIGNALLED = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT}


@pytest.mark.parametrize("threads", [0, 3])
def test_the_interpreter_ends_with_arrays_threads_and_pins(run, threads):
    """Daemon threads keep the module's names, so that `late` is not ended; without them it is, at the very end."""
    done = run(
        """
        import atexit, sys, threading, time
        import numpy as np, spillway
        spillway.configure(memory="32M")
        array = spillway.ones(8 << 20)
        pin = spillway.pin(array[:1000])
        with spillway.numpy_allocator("64K"): other = np.ones(1 << 20)
        cycle = [array]; cycle.append(cycle)
        sys.keeps = spillway.ones(1000)
        class Late:
            def __init__(self): self.array = spillway.full(1 << 20, 2.0)
            def __del__(self): assert self.array[-1] == 2; print("late", flush=True)
        late = Late()
        def work():
            while True: array[:: 512] += 1; array.sum()
        for _ in range(int(sys.argv[1])): threading.Thread(target=work, daemon=True).start()
        atexit.register(lambda: print("atexit", array[1], flush=True))
        time.sleep(0.3)
        """,
        str(threads),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["atexit 1.0"] + ["late"] * (threads == 0)


def test_files_are_written_when_the_interpreter_ends(good, tmp_path):
    good(
        """
        import spillway, numpy as np
        spillway.configure(memory="32M")
        one = spillway.open_memmap("one.npy", "w+", "i4", (1000,))
        two = spillway.empty(1000, "i4", store="two")
        one[:] = 1; two[:] = 2
        """
    )
    import numpy as np

    assert (np.load(tmp_path / "one.npy") == 1).all() and (np.fromfile(tmp_path / "two", "i4") == 2).all()


def test_what_cannot_be_written_is_said_and_kept(run):
    """The file may not get as long as it is mapped, from when the array exists on."""
    done = run(
        """
        import gc, resource, signal
        import numpy as np, spillway
        spillway.configure(memory="32M")
        array = spillway.empty(1 << 20, "u1", store="file")
        array[:] = 5
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        try: spillway.sync(array)
        except spillway.SpillwayError as error: print("sync", error.errno)
        del array
        gc.collect()
        print("goes on", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        """
    )
    assert done.stdout == "sync 27\ngoes on\n"
    assert "what an array that is gone had stored to file:" in done.stderr and "could not be written" in done.stderr
    assert done.returncode not in SIGNALLED


CHILD = """
import os, sys, gc, multiprocessing
import numpy as np, spillway
if not spillway.is_preloaded(): spillway.configure(memory="32M")
array = spillway.empty(8 << 20)
array[:] = np.arange(array.size)
def total(part): return array[part::4].sum()
def own(number):
    made = spillway.full(2 << 20, number)
    made += 1
    return int(made.sum()) // made.size, spillway.is_managed(made)
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert array[-1] == array.size - 1
            array[:] = 1
            assert array.sum() == array.size
            view = array[5:]
            del globals()["array"], view
            gc.collect()
            assert own(3) == (4, True)
            status = 0
        finally: os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (array == np.arange(array.size)).all())
else:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(sum(pool.map(total, range(4))) == array.sum(), pool.map(own, [1, 2, 3]))
"""


@pytest.mark.parametrize("preloaded", [False, True])
@pytest.mark.parametrize("how", ["fork", "pool"])
@pytest.mark.parametrize("faults", ["auto", "signals"])
def test_forked_children_have_their_parents_arrays_and_make_their_own(good, how, preloaded, faults):
    said = good(CHILD, how, preloaded=preloaded, SPILLWAY_FAULTS=faults)
    assert said == ("0 True\n" if how == "fork" else "True [(2, True), (3, True), (4, True)]\n")


def test_children_that_are_refused_managed_memory_may_still_drop_arrays(good):
    """With --io threads a child that touches managed memory ends, and the run with it."""
    said = good(
        """
        import os, gc
        import spillway
        spillway.configure(memory="32M", io="threads")
        array = spillway.ones(1000)
        child = os.fork()
        if child == 0:
            del array
            gc.collect()
            os._exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), array.sum())
        """
    )
    assert said == "5 1000.0\n"


def test_spawned_processes_begin_anew(good):
    said = good(
        """
        import multiprocessing, sys
        import spillway
        if __name__ == "__main__":
            spillway.configure(memory="32M")
            array = spillway.ones(1000)
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=queue.put, args=(array,))
            process.start()
            print(queue.get().sum())
            process.join()
        """
    )
    assert said == "1000.0\n"


def test_an_interrupt_is_pythons(run):
    done = run(
        """
        import os, signal, threading
        import numpy as np, spillway
        spillway.configure(memory="32M")
        array = spillway.empty(16 << 20)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            for _ in iter(int, 1):
                array += 1
        except KeyboardInterrupt: print("interrupted")
        array[:] = 3
        print(array.sum() == 3 * array.size)
        """
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\nTrue\n")
