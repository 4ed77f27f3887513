"""`spillway run` of programs as they are: it puts the library into them, and their data goes through the cache."""
import pathlib

import pytest
from kit import Kit, MIB, Run, expect, program_of

pytestmark = pytest.mark.engines("unmodified")
PYTHON = "/usr/bin/python3"
CAP = ("--memory", "32M", "--quota", "4M")

# Half of what it makes is dropped and made anew, so that freed ranges are met again too.
LISTS = """
blocks = [bytearray(bytes([i % 251])) * 200_000 for i in range(400)]
for i in range(0, 400, 2): blocks[i] = bytearray(bytes([i % 83])) * 300_000
print(sum(sum(block[::997]) for block in blocks), len(blocks[0]), blocks[399][-1])
"""

# Which of the files named are managed where they are mapped, and what they hold.
MAPS = """
import ctypes, mmap, sys
managed = ctypes.CDLL(None).spw_is_managed
managed.argtypes = [ctypes.c_void_p]
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    print(name.split("/")[-1], managed(address), sum(data[::4096]), data[-1])
"""

# Workers add up pieces of what their parent has, or with `spawn` of what they have made themselves.
POOL = """
import multiprocessing, sys
pieces = [bytearray(bytes([i])) * (1 << 20) for i in range(96)]
def total(i): return sum(pieces[i][::4096])
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    with multiprocessing.Pool(3) as pool:
        print(sum(pool.map(total, range(96))), flush=True)
"""
# A pool whose workers end starts others, for ever.
POOL_TIME_LIMIT_S = 90


def _tool(kit: Kit, *words, env: dict[str, str] | None = None) -> Run:
    return kit.run(kit.build / "bin" / "spillway", "run", *words, env=env)


def _evicts_and_prints_the_same(kit: Kit, *command: str, least_bytes: int) -> None:
    free = kit.run(pathlib.Path(command[0]), *command[1:])
    run = _tool(kit, *CAP, "--store", kit.store, "--stats", kit.report_file, "--", *command)
    expect((run.code, run.output, run.errors) == (0, free.output, ""), f"{run.last_words()}\nwithout a cap\n{free.output[-500:]}")
    made = kit.report()
    expect(made["facts"]["engine"] == "mapped" and made["facts"]["memory_cap_bytes"] == 32 * MIB, f"{made['facts']}")
    counters = made["counters"]
    expect(counters["managed_bytes_allocated"] >= least_bytes and counters["evictions"] > 0 and counters["fills"] > 0,
           f"{counters}")


def test_run_takes_sort_beyond_the_cap(kit: Kit) -> None:
    lines = kit.place / "lines"
    lines.write_text("".join(f"{i * 7919 % 300_007:08d} {'x' * 60}\n" for i in range(300_007)))
    _evicts_and_prints_the_same(kit, program_of("sort"), "--buffer-size=64M", "--parallel=2", str(lines), least_bytes=48 * MIB)


def test_run_takes_python_beyond_the_cap(kit: Kit) -> None:
    _evicts_and_prints_the_same(kit, program_of(PYTHON), "-c", LISTS, least_bytes=64 * MIB)


def test_the_report_of_a_program_that_closes_standard_error_is_not_lost(kit: Kit) -> None:
    lines = kit.place / "lines"
    lines.write_text("".join(f"{i * 7919 % 100_003:08d} {'x' * 60}\n" for i in range(100_003)))
    run = _tool(kit, *CAP, "--store", kit.store, "--stats", "text", "--", program_of("sort"), "--buffer-size=64M", str(lines))
    expect(run.code == 0 and "ran" in run.errors and "faults served by the thread that faults" in run.errors
           and "(p99.9)" in run.errors, run.last_words())


def _pool(kit: Kit, start_method: str) -> Run:
    script = kit.place / "pool.py"
    script.write_text(POOL)
    program = (*CAP, "--store", kit.store, "--", program_of(PYTHON), script, start_method)
    return kit.run(kit.build / "bin" / "spillway", "run", *program, time_limit_s=POOL_TIME_LIMIT_S)


def test_a_python_pool_of_forked_workers_works(kit: Kit) -> None:
    run = _pool(kit, "fork")
    expect((run.code, run.output, run.errors) == (0, f"{sum(range(96)) * 256}\n", ""), run.last_words())


def test_a_python_pool_of_spawned_workers_works(kit: Kit) -> None:
    run = _pool(kit, "spawn")
    expect((run.code, run.output, run.errors) == (0, f"{sum(range(96)) * 256}\n", ""), run.last_words())


def _managed_files(kit: Kit, *options: str) -> set[str]:
    """Of three files that Python maps, the names of those that came in through Spillway. All of them read right."""
    files = [kit.place / name for name in ("one.idx", "two.dat", "three.npy")]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number + 1]) * MIB)
    run = _tool(kit, *CAP, "--store", kit.store, "--mapped-reads", "cache", *options, "--", program_of(PYTHON), "-c", MAPS, *files)
    expect(run.code == 0, run.last_words())
    rows = [line.split() for line in run.output.splitlines()]
    expect([(row[0], row[2], row[3]) for row in rows] ==
           [(file.name, str(256 * (i + 1)), str(i + 1)) for i, file in enumerate(files)], run.output)
    return {row[0] for row in rows if row[1] == "1"}


def test_map_files_chooses_the_files_that_are_managed(kit: Kit) -> None:
    for options, wanted in (((), set()),
                            (("--map-files", "none"), set()),
                            (("--map-files", "*.idx"), {"one.idx"}),
                            (("--map-files", f"/nowhere/*:{kit.place}/two*:*.npy"), {"two.dat", "three.npy"}),
                            (("--map-files", "*"), {"one.idx", "two.dat", "three.npy"}),
                            (("--map-files", "one.idx"), set())):  # a pattern is for the whole path
        managed = _managed_files(kit, *options)
        expect(managed == wanted, f"{options}: {managed} instead of {wanted}")


def test_without_userfaultfd_programs_run_as_they_are(kit: Kit) -> None:
    """In 24 MiB: a list of 100 MiB of bytes, of which each is found again."""
    code = "a = [bytes([i % 251]) * 65536 for i in range(1600)]; print(sum(a[i][i] for i in range(1600)), sum(a[-7]))"
    native = kit.run(program_of(PYTHON), "-c", code)
    run = _tool(kit, "--store", kit.store, "--memory", "24M", "--threshold", "4K", "--stats", kit.report_file, "--", program_of(PYTHON), "-c", code,
                env={"SPILLWAY_TEST_USERFAULT": "none"})
    expect((run.code, run.output, run.errors) == (0, native.output, ""), run.last_words())
    made = kit.report()
    expect("by access rights" in made["facts"]["faults_by"] and made["counters"]["evictions"] > 1000, f"{made['facts']} {made['counters']}")
