"""Persistent regions of recompiled programs with plain stores and plain mutexes: killed at any moment, they hold whole sections, and all that was
confirmed."""
import os
import pathlib
import random

import pytest
from killing import all_there, check_region, counts, durable_when_killed, memory_directory, rounds
from kit import HERE, SMALL, Kit, expect

pytestmark = pytest.mark.engines("translated", "mapped")
THREADS = 4
HEADERS = (f"-I{HERE.parents[1] / 'include'}",)


def _rounds(kit: Kit, directory: pathlib.Path, count: int) -> None:
    program = kit.compile("bank.cc", "-O2", "-fspillway-durable", *HEADERS)
    file = directory / f"bank.{os.getpid()}"

    def one_round(dice: random.Random) -> int:
        environment = SMALL.environment() | {"SPILLWAY_DURABLE": dice.choice(("eager", "lazy", "table", "adaptive"))}
        words = (program, file, "run", dice.randint(1, THREADS), dice.randrange(1 << 20))
        durable = durable_when_killed(kit, *words, env=environment, dice=dice)
        check_region(kit, file)
        found = kit.run(program, file, "check", env=environment)
        expect(found.code == 0, found.last_words())
        all_there(durable, counts(found.output.splitlines()), "transfers")
        return sum(durable.values())

    file.unlink(missing_ok=True)
    try:
        rounds(count, one_round)
    finally:
        file.unlink(missing_ok=True)


def test_killed_at_random_a_bank_in_memory_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, memory_directory(), 15)


def test_killed_at_random_a_bank_on_a_disk_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, kit.place, 10)


@pytest.mark.slow
def test_killed_a_thousand_times_a_bank_loses_no_transfer(kit: Kit) -> None:
    _rounds(kit, memory_directory(), 1000)
    _rounds(kit, kit.place, 1000)
