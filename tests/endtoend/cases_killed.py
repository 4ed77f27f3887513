"""A process that is killed at any moment loses nothing of a buffered file that a sync had confirmed."""
import collections
import os
import random
import signal
import time

from kit import SMALL, Kit, expect, start

SLOW = ("killed_thousands_of_times_a_process_loses_nothing_synced",)
RECORD_BYTES = 700


def _check(journal: str, found: bytes) -> tuple[int, int]:
    """The records that some version of must be found whole, and the transactions confirmed."""
    confirmed, begun = {}, collections.defaultdict(set)  # by record: version; versions that may be there in part
    open_records: dict[int, list[int]] = {}
    for line in journal.splitlines():
        words = line.split()
        if words[0] == "begin":
            records = open_records[int(words[1])] = [int(word) for word in words[2:]]
            for record in records:
                begun[record].add(int(words[1]))
        else:
            version = int(words[1])
            for record in open_records.pop(version):
                confirmed[record] = version
                begun[record] = {later for later in begun[record] if later > version}
    for record, version in confirmed.items():
        bytes_found = found[record * RECORD_BYTES:(record + 1) * RECORD_BYTES]
        allowed = {1 + v % 255 for v in begun[record] | {version}}
        expect(len(bytes_found) == RECORD_BYTES and set(bytes_found) <= allowed,
               f"record {record}: version {version} was synced, {len(bytes_found)} bytes {set(bytes_found)} are there")
    return len(confirmed), journal.count("done")


def _round(kit: Kit, seed: int) -> int:
    file = kit.place / "killed.dat"
    file.unlink(missing_ok=True)
    program = kit.compile("killed.cc", "-O2")
    dice = random.Random(seed)
    records = dice.choice((64, 2_000, 40_000))  # within a few blocks, in memory, three times the memory
    with start(kit, program, str(file), str(seed), str(records), env=SMALL.environment() | {"SPILLWAY_BUFFER": "*.dat"}) as process:
        os.set_blocking(process.stdout.fileno(), True)
        first = process.stdout.readline()  # it has started
        time.sleep(dice.random() ** 2 * 0.3)
        os.killpg(process.pid, signal.SIGKILL)
        journal = first + process.stdout.read()
    if not journal.endswith("\n"):
        journal = journal[:journal.rfind("\n") + 1]
    return _check(journal, file.read_bytes() if file.exists() else b"")[1]


def _rounds(kit: Kit, count: int) -> None:
    seed = random.randrange(1 << 30)
    done = 0
    for i in range(count):
        try:
            done += _round(kit, seed + i)
        except Exception as wrong:
            raise type(wrong)(f"seed {seed + i}: {wrong}") from None
    expect(done > count, f"only {done} transactions in {count} rounds")


def killed_at_random_a_process_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 25)


def killed_thousands_of_times_a_process_loses_nothing_synced(kit: Kit) -> None:
    _rounds(kit, 3000)
