"""Stores that fill up, are too small, or cannot be used at all."""
import os
import pathlib
import subprocess
import time

import pytest
from kit import Config, EXIT_FAILURE, EXIT_USAGE, Kit, MIB, SMALL, UNOPTIMISED, Run, TIME_LIMIT_S, expect
from small_filesystem import free_bytes, inside, on_small_store

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("translated", "mapped")

ROOM_BYTES = 80 * MIB
MORE_THAN_ROOM_MIB = 128
SHORT_WAIT = {"SPILLWAY_TEST_FRAME_WAIT_MS": "1000"}


def _ended(process: subprocess.Popen, stdin: str = "") -> Run:
    output, errors = process.communicate(stdin, timeout=TIME_LIMIT_S)
    # Some of these filesystems are in memory, which is warned of.
    lines = [line for line in errors.splitlines(keepends=True) if not (line.startswith("spillway: warning: ") and "on a tmpfs" in line)]
    return Run(process.returncode, output, "".join(lines))


def _expect_told_that_it_is_full(kit: Kit, run: Run, where: str) -> None:
    expect(run.code == EXIT_FAILURE, f"{where}: {run.last_words()}")
    expect(run.errors.count("\n") == 1 and run.errors.startswith("spillway: cannot write block "),
           f"{where}: not one line: {run.errors}")
    for part in (f"spill:{kit.store} ", "No space left on device", "make some there, or, for a spill file, name a larger place with --store"):
        expect(part in run.errors, f"{where}: {part!r} is not in {run.errors}")
    expect(run.output == "", f"{where}: {run.output}")


def _fills_up(kit: Kit, filesystem: str, part: str, *configs: Config) -> None:
    for config in configs:
        program = kit.compile("spill.cc", *config.flags)
        with on_small_store(kit, filesystem, ROOM_BYTES, program, part, MORE_THAN_ROOM_MIB,
                            env=config.environment() | SHORT_WAIT) as process:
            _expect_told_that_it_is_full(kit, _ended(process), f"{part} on {filesystem} with {config}")


@pytest.mark.root
def test_a_full_tmpfs_ends_the_program_with_one_line(kit: Kit) -> None:
    _fills_up(kit, "tmpfs", "fill", SMALL, UNOPTIMISED)


@pytest.mark.root
def test_a_full_ext4_ends_the_program_with_one_line(kit: Kit) -> None:
    _fills_up(kit, "ext4", "fill", SMALL)


@pytest.mark.root
def test_threads_that_meet_a_full_store_say_so_once(kit: Kit) -> None:
    _fills_up(kit, "tmpfs", "fill_by_threads", SMALL, UNOPTIMISED)


@pytest.mark.root
def test_a_program_that_fits_into_its_store_finishes(kit: Kit) -> None:
    program = kit.compile("spill.cc", "-O2")
    with on_small_store(kit, "tmpfs", ROOM_BYTES, program, "fill", 72, env=SMALL.environment() | SHORT_WAIT) as process:
        run = _ended(process)
    expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), run.last_words())


def _await_full(process: subprocess.Popen, store: pathlib.Path) -> None:
    """Full at many looks in a row: an attempt to reserve more than there is takes all of it for a moment."""
    full_looks, deadline = 0, time.monotonic() + TIME_LIMIT_S
    while full_looks < 20:
        expect(process.poll() is None, "it did not wait")
        expect(time.monotonic() < deadline, f"the store has {free_bytes(store)} bytes free still")
        time.sleep(0.02)
        full_looks = full_looks + 1 if free_bytes(store) == 0 else 0


@pytest.mark.root
def test_a_program_waits_for_room_and_goes_on(kit: Kit) -> None:
    for config in (SMALL, UNOPTIMISED):
        program = kit.compile("spill.cc", *config.flags)
        with on_small_store(kit, "tmpfs", ROOM_BYTES, program, "fill_when_told", 48, env=config.environment()) as process:
            expect(process.stdout.readline() == "look\n", "the program did not start")
            store = inside(process, kit.store)
            filler = store / "filler"
            with open(filler, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, free_bytes(store) - 8 * MIB)
            process.stdin.write("go\n")
            process.stdin.flush()
            _await_full(process, store)
            filler.unlink()
            run = _ended(process)
        expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{config}: {run.last_words()}")


def _refused(kit: Kit, store: pathlib.Path, why: str) -> None:
    run = kit.run(kit.compile("spill.cc", "-O2"), "fill", 1, env=SMALL.environment() | {"SPILLWAY_STORE": str(store)})
    _expect_refused(run, store, why)


def _expect_refused(run: Run, store: pathlib.Path, why: str) -> None:
    begin, end = f"spillway: the store directory {store}: {why}", "; name another one with --store\n"
    expect(run.code == EXIT_USAGE and run.output == "" and run.errors.count("\n") == 1 and run.errors.startswith(begin)
           and run.errors.endswith(end), f"{run.last_words()}\nnot {begin}…{end}")


def test_unusable_store_directories_are_refused_with_one_line(kit: Kit) -> None:
    _refused(kit, kit.place / "nowhere" / "at all", "it does not exist")
    file = kit.place / "file"
    file.write_text("")
    _refused(kit, file, "it is not a directory")
    _refused(kit, pathlib.Path("/proc"), "no file can be made there (")
    if os.geteuid() != 0:
        kit.store.chmod(0o500)
        _refused(kit, kit.store, "no file can be made there (Permission denied)")


@pytest.mark.root
def test_a_store_that_is_too_small_is_refused_with_one_line(kit: Kit) -> None:
    with on_small_store(kit, "tmpfs", 16 * MIB, kit.compile("spill.cc", "-O2"), "fill", 1,
                        env=SMALL.environment()) as process:
        _expect_refused(_ended(process), kit.store, "it has 16.0 MiB free, and at least 64.0 MiB are needed")
