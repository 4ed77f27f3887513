"""All processes of one `spillway run` are killed at any moment: nothing that was synced is lost, and nothing is left behind."""
import contextlib
import copy
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest
from killing import all_there, check_records, check_region, counts, rounds, whole_lines
from kit import HERE, Kit, expect

pytestmark = pytest.mark.engines("unmodified")
HEADERS = f"-I{HERE.parents[1] / 'include'}"
GONE_S = 10
# Killed at once, or one of them (its number follows from the dice), and the others a moment later.
WAYS = ("all", "all", "tool first", "one first")


def _members_of(group: int) -> list[int]:
    """The processes of a group that have not ended, whoever has still to hear of it. (The first thread may have, before others.)"""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and (state not in "ZX" or len(list((entry / "task").iterdir())) > 1):
                found.append(int(entry.name))
    return found


def _kill(tool: subprocess.Popen, dice: random.Random) -> None:
    way = dice.choice(WAYS)
    if way == "tool first":
        tool.kill()
    elif way == "one first":
        members = [pid for pid in _members_of(tool.pid) if pid != tool.pid]
        if members:
            os.kill(dice.choice(members), signal.SIGKILL)
    if way != "all":
        time.sleep(dice.random() * 0.02)
    os.killpg(tool.pid, signal.SIGKILL)
    tool.wait()
    end = time.monotonic() + GONE_S
    while _members_of(tool.pid):
        expect(time.monotonic() < end, f"{way}: processes are left after {GONE_S} s: {_members_of(tool.pid)}")
        time.sleep(0.002)


class _Tree:
    """Three programs, each with its own file and journal: a buffered file, a shared mapping, a region on disk."""

    def __init__(self, kit: Kit, dice: random.Random) -> None:
        self.kit = kit
        self.files = [kit.place / name for name in ("buffered.dat", "mapped.dat", "region")]
        self.journals = [kit.place / f"{file.name}.said" for file in self.files]
        for file in (*self.files, *self.journals):
            file.unlink(missing_ok=True)
        seed = dice.randrange(1 << 30)
        records = dice.choice((64, 2_000, 16_000))
        killed = kit.compile("killed.cc", "-O2", HEADERS)
        programs = ([killed, self.files[0], seed, records], [kit.compile("synced.cc", "-O2"), self.files[1], seed, records],
                    [_bank(kit), self.files[2], "run", 2, seed])
        self.script = " & ".join(f"{' '.join(map(str, words))} > {journal}" for words, journal in zip(programs, self.journals)) + " & wait"

    def run_and_kill(self, dice: random.Random) -> None:
        tool = self.kit.build / "bin" / "spillway"
        with open(self.kit.place / "errors", "w+b") as errors:
            process = subprocess.Popen([tool, "run", "--memory", "48M", "--store", self.kit.store, "--buffer", "buffered.dat", "--buffer-after", "0", "--map-files",
                                        "mapped.dat", "--", "/bin/sh", "-c", self.script], cwd=self.kit.place, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=errors, env=self.kit.environment({}), start_new_session=True)
            time.sleep(0.05 + dice.random() ** 2 * 0.4)
            ended = process.poll()
            _kill(process, dice)
            errors.seek(0)
            expect(ended is None, f"it ended by itself, exit code {ended}: {errors.read().decode(errors='replace')[-500:]}")

    def confirmed(self) -> int:
        """How many steps the three had said to be durable, all of which are there."""
        said = [journal.read_text() if journal.exists() else "" for journal in self.journals]
        steps = sum(check_records(text, file.read_bytes() if file.exists() else b"")[1]
                    for file, text in zip(self.files[:2], said[:2]))
        durable = counts(whole_lines(said[2].removeprefix("begun\n")))
        if whole_lines(said[2]):  # one that was just being made is no region yet
            check_region(self.kit, self.files[2])
            found = self.kit.run(_bank(self.kit), self.files[2], "check")
            expect(found.code == 0, found.last_words())
            all_there(durable, counts(found.output.splitlines()), "transfers")
        return steps + sum(durable.values())

    def expect_nothing_left(self) -> None:
        expect(not list(self.kit.store.iterdir()), f"left in the store's directory: {list(self.kit.store.iterdir())}")
        known = {*self.files, *self.journals, self.kit.store, self.kit.place / "errors"}
        expect({*self.kit.place.iterdir()} <= known, f"left: { {*self.kit.place.iterdir()} - known}")


def _bank(kit: Kit) -> pathlib.Path:
    """It is recompiled: stores to a region are announced by code that the pass has seen."""
    recompiled = copy.copy(kit)
    recompiled.engine = "translated"
    return recompiled.compile("bank.cc", "-O2", "-fspillway-durable", HEADERS)


def _rounds(kit: Kit, count: int) -> None:
    def one_round(dice: random.Random) -> int:
        tree = _Tree(kit, dice)
        tree.run_and_kill(dice)
        steps = tree.confirmed()
        tree.expect_nothing_left()
        return steps

    rounds(count, one_round)


def test_killed_at_random_a_tree_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 12)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_killed_ten_thousand_times_a_tree_loses_nothing_synced(kit: Kit, part: int) -> None:
    _rounds(kit, 2000)
