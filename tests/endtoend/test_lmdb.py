"""LMDB, recompiled, with its data in a persistent region: its write transactions are durable sections, by its own mutex. Killed at any moment,
a database holds whole transactions, and all whose commit has returned."""
import os
import pathlib
import random
import shutil

import pytest
from killing import all_there, check_region, counts, durable_when_killed, memory_directory, rounds
from kit import Kit, expect, skipped_when_unavailable
from harness import lmdb

pytestmark = pytest.mark.engines("none")
THREADS = 4
NEW_SHARE = 0.2  # of the rounds


def _rounds(kit: Kit, place: pathlib.Path, count: int) -> None:
    with skipped_when_unavailable():
        flags, objects = lmdb.built(kit.build)
    program = kit.compile("lmdb_bank.cc", "-O2", "-fspillway-durable", *flags, inputs=objects)
    directory = place / f"lmdb.{os.getpid()}"
    region = directory / "data.mdb.region"

    def one_round(dice: random.Random) -> int:
        is_new = dice.random() < NEW_SHARE
        if is_new:
            shutil.rmtree(directory)
            directory.mkdir()
        words = (program, directory, "run", dice.randint(1, THREADS), dice.randrange(1 << 20))
        durable = durable_when_killed(kit, *words, env={"SPILLWAY_DURABLE": dice.choice(("eager", "lazy", "table", "adaptive"))}, dice=dice,
                                      also_early=is_new)
        if not is_new:
            check_region(kit, region)  # one that was just being made is no region yet
        found = kit.run(program, directory, "check")
        expect(found.code == 0, found.last_words())
        all_there(durable, counts(found.output.splitlines()), "transactions")
        check_region(kit, region)
        return sum(durable.values())

    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    try:
        rounds(count, one_round)
    finally:
        shutil.rmtree(directory)


def test_killed_at_random_lmdb_in_memory_loses_no_transaction(kit: Kit) -> None:
    _rounds(kit, memory_directory(), 12)


def test_killed_at_random_lmdb_on_a_disk_loses_no_transaction(kit: Kit) -> None:
    _rounds(kit, kit.place, 10)


@pytest.mark.slow
def test_killed_hundreds_of_times_lmdb_loses_no_transaction(kit: Kit) -> None:
    _rounds(kit, memory_directory(), 300)
    _rounds(kit, kit.place, 200)
