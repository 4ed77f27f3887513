"""Programs from Debian's packages, as they are, on more data than the cap: the same results as without a cap."""
import os
import pathlib
import random
import shutil
import subprocess

import pytest
from kit import EXIT_FAILURE, HERE, Kit, MIB, expect

pytestmark = pytest.mark.engines("unmodified", "threads")
# Who serves the faults changes nothing of what these programs do: with threads sort and Java stand for them.
once_with_threads_is_enough = pytest.mark.slow_with("threads")
USER_FAULTS_ONLY = {"SPILLWAY_TEST_USERFAULT": "user"}
# A few times the cap, which is large enough for what the programs keep natively.
CAP = {"SPILLWAY_MEMORY": "32M", "SPILLWAY_THRESHOLD": "64K", "SPILLWAY_QUOTA": "4M"}
# Of a virtual machine only the large buffers are managed, which it gets from malloc().
BUFFERS_ONLY = {"SPILLWAY_THRESHOLD": "1M"}
GO_WORDS = 160_000  # 45 MiB
# What a virtual machine keeps for itself is managed, too.
HEAP_CAP = {"SPILLWAY_MEMORY": "96M"}

NUMPY = """
import numpy
numbers = numpy.arange(6_000_000, dtype=numpy.float64)
squares = numbers * numbers
print(squares.sum(), numbers[::4099].sum(), (squares - numbers).max())
rows = squares[:4_000_000].reshape(2000, 2000)
print(rows.sum(axis=0)[::199], numpy.sort(rows[::-1].ravel())[::800_000])
"""

SQL = (HERE / "programs" / "words.sql").read_text()


def _program(name: str, *more: str) -> pathlib.Path:
    found = next((path for path in (*more, shutil.which(name)) if path and os.path.exists(path)), None)
    if not found:
        pytest.skip(f"there is no {name} here")
    return pathlib.Path(found)


def _same_without_a_cap(kit: Kit, program: pathlib.Path, *arguments, least_bytes: int, env: dict[str, str],
                        stdin: str = "", counter: str = "managed_bytes_allocated") -> None:
    """The run under the cap prints what the other does, had more data than the cap, and kept to the cap."""
    free = kit.run(program, *arguments, stdin=stdin)
    expect(free.code == 0, f"without a cap: {free.last_words()}")
    capped = kit.run(program, *arguments, stdin=stdin, env=CAP | env | kit.wants_report)
    expect(capped.code == 0, f"with the cap: {capped.last_words()}")
    expect(capped.output == free.output, f"with the cap\n{capped.output[-800:]}\nwithout\n{free.output[-800:]}")
    made = kit.report()
    if "SPILLWAY_TEST_USERFAULT" in env:
        expect(made["facts"]["system_call_faults"] == "brought in first", f"{made['facts']}")
    counters = made["counters"]
    expect(counters[counter] >= least_bytes and counters["evictions"] > 0, f"{counters}")


def _numpy(kit: Kit, env: dict[str, str]) -> None:
    python = _program("python3", "/usr/bin/python3")
    if kit.run(python, "-c", "import numpy").code != 0:
        pytest.skip(f"{python} has no numpy")
    script = kit.place / "script.py"
    script.write_text(NUMPY)
    _same_without_a_cap(kit, python, script, least_bytes=64 * MIB, env=env)


def _sort(kit: Kit, env: dict[str, str]) -> None:
    lines = kit.place / "lines"
    source = random.Random(4)
    with open(lines, "w") as file:
        for _ in range(600_000):
            file.write(f"{source.getrandbits(96):024x} {source.getrandbits(64):016x}\n")
    # With a buffer of its own that holds all of it, it neither merges files nor knows of the cap.
    _same_without_a_cap(kit, _program("sort"), "--buffer-size=96M", "--parallel=2", lines, least_bytes=64 * MIB, env=env)


def test_numpy_works_on_more_than_the_cap(kit: Kit) -> None:
    _numpy(kit, {})


@once_with_threads_is_enough
def test_sqlite_in_memory_works_on_more_than_the_cap(kit: Kit) -> None:
    _same_without_a_cap(kit, _program("sqlite3"), ":memory:", stdin=SQL, least_bytes=32 * MIB, env={})


def test_sort_works_on_more_than_the_cap(kit: Kit) -> None:
    _sort(kit, {})


def test_java_works_on_direct_buffers_beyond_the_cap(kit: Kit) -> None:
    _same_without_a_cap(kit, _program("java"), "-Xmx64m", "-XX:MaxDirectMemorySize=200m", "-XX:+UseSerialGC",
                        HERE / "programs" / "DirectBuffers.java", least_bytes=96 * MIB, env=BUFFERS_ONLY)


@once_with_threads_is_enough
def test_node_works_on_buffers_beyond_the_cap(kit: Kit) -> None:
    _same_without_a_cap(kit, _program("node"), HERE / "programs" / "buffers.js", least_bytes=96 * MIB, env=BUFFERS_ONLY)


def test_java_collects_a_heap_beyond_the_cap(kit: Kit) -> None:
    for collector in ("Serial", "G1"):
        _same_without_a_cap(kit, _program("java"), "-Xmx700m", f"-XX:+Use{collector}GC", HERE / "programs" / "ObjectHeap.java", 500,
                            least_bytes=192 * MIB, env=HEAP_CAP, counter="bytes_dirtied")


@once_with_threads_is_enough
def test_java_starts_with_a_collector_that_wants_addresses_of_its_own(kit: Kit) -> None:
    """ZGC maps shared memory at several places, with marks in the address: that stays the kernel's."""
    java = _program("java")
    if kit.run(java, "-XX:+UseZGC", "-version").code != 0:
        pytest.skip("this Java has no ZGC")
    run = kit.run(java, "-XX:+UseZGC", "-Xmx200m", HERE / "programs" / "ObjectHeap.java", 50, env=HEAP_CAP)
    expect(run.code == 0, run.last_words())


def _go(kit: Kit) -> pathlib.Path:
    go = _program("go", "/usr/local/go/bin/go")
    if shutil.which("gcc") is None:
        pytest.skip("cgo needs gcc")
    source, program = kit.place / "go", kit.place / "go_heap"
    source.mkdir()
    shutil.copy(HERE / "programs" / "go_heap.go", source / "main.go")
    (source / "go.mod").write_text("module go_heap\n\ngo 1.18\n")
    env = os.environ | {"CGO_ENABLED": "1", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    if "HOME" not in env:
        env["GOCACHE"] = str(kit.place / "go-cache")
    built = subprocess.run([go, "build", "-o", program, "."], cwd=source, env=env, capture_output=True, text=True, check=False)
    expect(built.returncode == 0, f"go build: {built.stderr[-800:]}")
    return program


def test_go_has_its_stacks_on_a_heap_beyond_the_cap(kit: Kit) -> None:
    """The kernel cannot send a signal where the stack for it is not in memory. It ends by a system call: there is no report."""
    program, cap = _go(kit), CAP | {"SPILLWAY_MEMORY": "16M"}
    free, capped = kit.run(program, GO_WORDS), kit.run(program, GO_WORDS, env=cap)
    expect(free.code == 0 and capped.code == 0, f"without a cap: {free.last_words()}; with: {capped.last_words()}")
    expect(capped.output == free.output, f"with the cap\n{capped.output[-800:]}\nwithout\n{free.output[-800:]}")
    refused = kit.run(program, GO_WORDS, env=cap | USER_FAULTS_ONLY)
    expect(refused.code == EXIT_FAILURE and "Go's runtime" in refused.errors, refused.last_words())


@once_with_threads_is_enough
def test_node_collects_a_heap_beyond_the_cap(kit: Kit) -> None:
    _same_without_a_cap(kit, _program("node"), HERE / "programs" / "object_heap.js", least_bytes=192 * MIB, env=HEAP_CAP,
                        counter="bytes_dirtied")


def test_numpy_works_where_system_calls_may_not_fault(kit: Kit) -> None:
    _numpy(kit, USER_FAULTS_ONLY)


def test_sqlite_works_where_system_calls_may_not_fault(kit: Kit) -> None:
    fewer = SQL.replace("400000", "120000")
    _same_without_a_cap(kit, _program("sqlite3"), ":memory:", stdin=fewer, least_bytes=16 * MIB,
                        env=USER_FAULTS_ONLY | {"SPILLWAY_MEMORY": "16M"})


@once_with_threads_is_enough
def test_sort_works_where_system_calls_may_not_fault(kit: Kit) -> None:
    _sort(kit, USER_FAULTS_ONLY)
