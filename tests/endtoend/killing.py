"""Programs that say what is durable, and are killed at some moment."""
import collections.abc
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest
from kit import Kit, Wrong, expect, start

RECORD_BYTES = 700  # of killed.cc


def counts(lines: list[str]) -> dict[int, int]:
    """Of lines "THREAD COUNT", the last one of each thread."""
    return {int(line.split()[0]): int(line.split()[1]) for line in lines}


def durable_when_killed(kit: Kit, *words, env: dict[str, str], dice: random.Random, also_early: bool = False) -> dict[int, int]:
    """What each thread of the program had said is durable. It is killed some time after "begun", or `also_early` before."""
    with start(kit, *words, env=env) as process:
        os.set_blocking(process.stdout.fileno(), True)
        if not also_early:
            first = process.stdout.readline()
            expect(first == "begun\n", f"it did not begin: {first}{process.stderr.read() if not first else ''}")
        time.sleep(dice.random() ** 2 * 0.2)
        expect(process.poll() is None, f"it ended by itself, exit code {process.returncode}")
        os.killpg(process.pid, signal.SIGKILL)
        journal = process.stdout.read()
    expect("wrong" not in journal, journal[-300:])
    return counts(whole_lines(journal.removeprefix("begun\n")))


def whole_lines(journal: str) -> list[str]:
    """Of what a killed program said: the last line may be cut off."""
    return journal[:journal.rfind("\n") + 1].splitlines()


def check_records(journal: str, found: bytes) -> tuple[int, int]:
    """Of what killed.cc said, and its file: how many records must be there whole, in some version, and are; how many transactions were confirmed."""
    confirmed: dict[int, int] = {}  # by record: version
    done, begun, begun_records = 0, 0, set()  # one transaction after the other
    for line in whole_lines(journal):
        words = line.split()
        if words[0] == "begin":
            begun, begun_records = int(words[1]), set(map(int, words[2:]))
        else:
            confirmed.update(dict.fromkeys(begun_records, begun))
            done, begun_records = done + 1, set()
    for record, version in confirmed.items():
        bytes_found = found[record * RECORD_BYTES:(record + 1) * RECORD_BYTES]
        allowed = {1 + v % 255 for v in ((version, begun) if record in begun_records else (version,))}
        expect(len(bytes_found) == RECORD_BYTES and set(bytes_found) <= allowed,
               f"record {record}: version {version} was synced, {len(bytes_found)} bytes {set(bytes_found)} are there")
    return len(confirmed), done


def contents(members: list[pathlib.Path], chunk_bytes: int) -> bytes:
    """Of a striped file, or of one that is whole; what a member does not have of it is zeros."""
    parts = [member.read_bytes() if member.exists() else b"" for member in members]
    if len(parts) == 1:
        return parts[0]
    rows = -(-max(len(part) for part in parts) // chunk_bytes)
    chunks = (part[row * chunk_bytes:(row + 1) * chunk_bytes] for row in range(rows) for part in parts)
    return b"".join(chunk.ljust(chunk_bytes, b"\0") for chunk in chunks)


def check_region(kit: Kit, file: pathlib.Path) -> None:
    tool = subprocess.run([kit.build / "bin" / "spillway", "check", file], capture_output=True, text=True)
    expect(tool.returncode == 0, f"{tool.stdout}{tool.stderr}")


def all_there(durable: dict[int, int], there: dict[int, int], what: str) -> None:
    for thread, count in durable.items():
        expect(there[thread] >= count, f"thread {thread} was told that {count} {what} are durable, {there[thread]} are there")


def rounds(count: int, one_round: collections.abc.Callable[[random.Random], int]) -> None:
    """A round says how many of its program's steps it knows to be durable. All of them together are more than there are rounds."""
    seed = random.randrange(1 << 30)
    dice = random.Random(seed)
    total = 0
    for i in range(count):
        try:
            total += one_round(dice)
        except Wrong as wrong:
            raise Wrong(f"seed {seed}, round {i}: {wrong}") from None
    expect(total > count, f"only {total} steps in {count} rounds")


def memory_directory() -> pathlib.Path:
    memory = pathlib.Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("there is no /dev/shm to write to")
    return memory
