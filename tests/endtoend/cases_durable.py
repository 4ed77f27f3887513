"""Persistent regions of recompiled programs with plain stores and plain mutexes: killed at any moment, they hold whole sections, and all that was
confirmed."""
import os
import pathlib
import random
import signal
import subprocess
import time

from kit import HERE, SMALL, Kit, Skipped, expect, start

ENGINES = ("translated", "mapped")
SLOW = ("killed_a_thousand_times_a_bank_loses_no_transfer",)
THREADS = 4
HEADERS = (f"-I{HERE.parents[1] / 'include'}",)


def _counts(lines: list[str]) -> dict[int, int]:
    return {int(line.split()[0]): int(line.split()[1]) for line in lines}


def _kill_once(kit: Kit, program: pathlib.Path, file: pathlib.Path, environment: dict, dice: random.Random) -> dict[int, int]:
    """The transfers of each thread that were durable when it was killed."""
    with start(kit, program, file, "run", dice.randint(1, THREADS), dice.randrange(1 << 20), env=environment) as process:
        os.set_blocking(process.stdout.fileno(), True)
        first = process.stdout.readline()
        expect(first == "begun\n", f"it did not begin: {first}{process.stderr.read() if not first else ''}")
        time.sleep(dice.random() ** 2 * 0.2)
        os.killpg(process.pid, signal.SIGKILL)
        journal = process.stdout.read()
    expect("wrong" not in journal, journal[-300:])
    return _counts(journal[:journal.rfind("\n") + 1].splitlines())


def _rounds(kit: Kit, directory: pathlib.Path, count: int) -> int:
    program = kit.compile("bank.cc", "-O2", "-fspillway-durable", *HEADERS)
    file = directory / f"bank.{os.getpid()}"
    file.unlink(missing_ok=True)
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    total = 0
    try:
        for i in range(count):
            environment = SMALL.environment() | {"SPILLWAY_DURABLE": dice.choice(("eager", "lazy", "table", "adaptive"))}
            durable = _kill_once(kit, program, file, environment, dice)
            tool = subprocess.run([kit.build / "bin" / "spillway", "check", file], capture_output=True, text=True)
            expect(tool.returncode == 0, f"seed {seed}, round {i}: {tool.stdout}{tool.stderr}")
            found = kit.run(program, file, "check", env=environment)
            expect(found.code == 0, f"seed {seed}, round {i}: {found.last_words()}")
            there = _counts(found.output.splitlines())
            for thread, transfers in durable.items():
                expect(there[thread] >= transfers, f"seed {seed}, round {i}: thread {thread} was told that {transfers} transfers are durable, {there[thread]} are there")
            total = sum(there.values())
    finally:
        file.unlink(missing_ok=True)
    expect(total > count, f"only {total} transfers in {count} rounds")
    return total


def _memory() -> pathlib.Path:
    memory = pathlib.Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        raise Skipped("there is no /dev/shm to write to")
    return memory


def killed_at_random_a_bank_in_memory_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, _memory(), 15)


def killed_at_random_a_bank_on_a_disk_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, kit.place, 10)


def killed_a_thousand_times_a_bank_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, _memory(), 1000)
    _rounds(kit, kit.place, 1000)
