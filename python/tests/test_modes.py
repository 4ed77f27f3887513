"""What holds in which mode, as python/README.md says: faults served by threads, signals, access rights; preloaded.

`SPILLWAY_TEST_USERFAULT` makes the machine look poorer (src/process/userfault_check.h).
"""

import pytest
from conftest import needs_served_system_calls

CODE = """
import faulthandler, os, sys, threading, warnings
import numpy as np
warnings.simplefilter("ignore")
import spillway
if not spillway.is_preloaded(): spillway.configure(memory="32M")
words = spillway.empty(12 << 20)  # 96 MiB
def compute():
    words[:] = np.arange(words.size)
    assert words.sum() == words.size * (words.size - 1) / 2
    square = words[: 1024 * 1024].reshape(1024, 1024)
    assert np.allclose((square @ np.eye(1024))[5], square[5])  # threads of BLAS
def transfer():
    words.tofile("words")
    assert (np.fromfile("words") == words).all()
    words[:] = 0
    with open("words", "rb", buffering=0) as source:
        count, view = 0, memoryview(words).cast("B")
        while count < words.nbytes: count += source.readinto(view[count:])
    assert words[-1] == words.size - 1
def threads():
    failed = []
    def work():
        try: compute(); transfer()
        except Exception as error: failed.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed: raise failed[0]
def forks():
    words[0] = 5
    child = os.fork()
    if child == 0:
        try: os._exit(int(words[0]) + (words[-1] == words.size - 1))
        finally: os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
def child():
    # System calls on what is not in memory.
    child = os.fork()
    if child == 0:
        try: transfer(); os._exit(0)
        except Exception: os._exit(1)
        finally: os._exit(99)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0: raise OSError
def handlers():
    faulthandler.enable()
    compute()
compute()
for part in (compute, forks, transfer, threads, child, handlers)[: int(sys.argv[1])]:
    try: part(); print(part.__name__, "ok")
    except (OSError, AssertionError) as error: print(part.__name__, type(error).__name__)
"""
WORKS = dict.fromkeys(("compute", "forks", "transfer", "threads", "child", "handlers"), "ok")


def outcome(said):
    return dict(line.split() for line in said.splitlines())


@needs_served_system_calls
def test_loaded_where_threads_serve_the_faults_of_system_calls_all_works(good):
    assert outcome(good(CODE, "6")) == {**WORKS, "child": "OSError"}


@pytest.mark.parametrize("faults", ["auto", "signals"])
def test_preloaded_all_works(good, faults):
    assert outcome(good(CODE, "6", preloaded=True, memory="64M", SPILLWAY_FAULTS=faults)) == WORKS


@pytest.mark.parametrize("machine", ["user", "none"])
def test_preloaded_on_poorer_machines_all_works(good, machine):
    assert outcome(good(CODE, "6", preloaded=True, memory="64M", SPILLWAY_TEST_USERFAULT=machine)) == WORKS


@pytest.mark.parametrize("machine", ["user", "none"])
def test_loaded_on_poorer_machines_only_system_calls_fail(good, machine):
    found = outcome(good(CODE, "3", SPILLWAY_TEST_USERFAULT=machine))
    assert found["compute"] == found["forks"] == "ok"
    assert found["transfer"] in ("OSError", "AssertionError")


def test_that_is_said_once(run):
    done = run("import spillway; spillway.empty(3); spillway.empty(3)", SPILLWAY_TEST_USERFAULT="user")
    assert done.stderr.count("SpillwayWarning") == 1 and "python -m spillway run" in done.stderr
    assert run("import spillway; spillway.empty(3)", SPILLWAY_FAULTS="signals").stderr == ""


def test_faulthandler_may_be_there_before(good):
    """It takes SIGBUS and SIGSEGV, as pytest has it do."""
    for env in ({}, {"SPILLWAY_FAULTS": "signals"}, {"SPILLWAY_TEST_USERFAULT": "none"}):
        code = "import faulthandler; faulthandler.enable()\n" + CODE
        assert outcome(good(code, "1", **env))["compute"] == "ok"
