"""What runs on the disk whose power is cut, and what has to be found on it afterwards."""
import dataclasses
import pathlib
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "endtoend"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from killing import all_there, check_records, check_region, contents, counts, whole_lines  # noqa: E402
from kit import HERE, SMALL, Kit, expect  # noqa: E402

HEADERS = f"-I{HERE.parents[1] / 'include'}"
CHUNK_BYTES, MEMBERS = 64 << 10, 3
TECHNIQUES = ("eager", "lazy", "table", "adaptive")


@dataclasses.dataclass(frozen=True)
class Case:
    """`words`: the program to run in the directory, and its environment; it runs until it is killed, and says on standard output
    what is durable. `check`: that a directory after a cut has all that had been said by then; the number of steps that were confirmed."""
    engine: str
    words: Callable[[Kit, pathlib.Path, random.Random], tuple[list, dict[str, str]]]
    check: Callable[[Kit, pathlib.Path, str], int]
    begun: str = "\n"  # what it says once there is something to find


# Buffered files: records of several versions, by fsync, fdatasync and O_DSYNC.
def _records_words(kit: Kit, directory: pathlib.Path, dice: random.Random) -> tuple[list, dict[str, str]]:
    program = kit.compile("killed.cc", "-O2", HEADERS)
    records = dice.choice((64, 2_000, 16_000))
    flush = {"SPILLWAY_FLUSH": dice.choice(("auto", "direct", "background")), "SPILLWAY_DIRTY": dice.choice(("1", "50", "100"))}
    return ([program, directory / "records.dat", dice.randrange(1 << 30), records],
            SMALL.environment() | flush | {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"})


def _records_check(kit: Kit, directory: pathlib.Path, said: str) -> int:
    file = directory / "records.dat"
    return check_records(said, file.read_bytes() if file.exists() else b"")[1]


# A striped file: its members lie on the one disk here.
def _members(directory: pathlib.Path) -> list[pathlib.Path]:
    return [directory / f"member{i}.dat" for i in range(MEMBERS)]


def _striped_words(kit: Kit, directory: pathlib.Path, dice: random.Random) -> tuple[list, dict[str, str]]:
    words, environment = _records_words(kit, directory, dice)
    words[1] = f"striped:chunk={CHUNK_BYTES >> 10}K," + ",".join(map(str, _members(directory)))
    return words, environment


def _striped_check(kit: Kit, directory: pathlib.Path, said: str) -> int:
    return check_records(said, contents(_members(directory), CHUNK_BYTES))[1]


# Shared mappings of files: the same records, by msync.
def _mapped_words(kit: Kit, directory: pathlib.Path, dice: random.Random) -> tuple[list, dict[str, str]]:
    program = kit.compile("synced.cc", "-O2")
    environment = SMALL.environment() | {"SPILLWAY_MAP_FILES": "*.dat"}
    return [program, directory / "records.dat", dice.randrange(1 << 30), dice.choice((2_000, 16_000))], environment


# A region of the block domain: transfers between accounts.
def _bank_words(kit: Kit, directory: pathlib.Path, dice: random.Random) -> tuple[list, dict[str, str]]:
    program = kit.compile("bank.cc", "-O2", "-fspillway-durable", HEADERS)
    return ([program, directory / "bank", "run", dice.randint(1, 4), dice.randrange(1 << 20), "block"],
            SMALL.environment() | {"SPILLWAY_DURABLE": dice.choice(TECHNIQUES)})


def _bank_check(kit: Kit, directory: pathlib.Path, said: str) -> int:
    region = directory / "bank"
    durable = counts(whole_lines(said.removeprefix("begun\n")))
    check_region(kit, region)
    found = kit.run(kit.compile("bank.cc", "-O2", "-fspillway-durable", HEADERS), region, "check", env=SMALL.environment())
    expect(found.code == 0, found.last_words())
    all_there(durable, counts(found.output.splitlines()), "transfers")
    return sum(durable.values())


# SQLite as Python has it, its files buffered.
SQLITE = """
import random, sqlite3, sys
path, seed, journal = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dice = random.Random(seed)
base = sqlite3.connect(path, isolation_level=None)
base.execute(f"pragma journal_mode={journal}")
base.execute("pragma synchronous=" + ("full" if journal == "wal" else "extra"))
base.execute("create table t(number integer primary key, transfer integer, text blob)")
base.execute("create index i on t(transfer)")
sys.stdout.write("begun\\n"), sys.stdout.flush()
for transfer in range(1, 1 << 30):
    base.execute("begin")
    for _ in range(dice.randint(1, 20)):
        base.execute("insert or replace into t values(?, ?, ?)", (dice.randrange(400), transfer, bytes([transfer % 251]) * dice.randint(1, 3000)))
    base.execute("commit")
    sys.stdout.write(f"{transfer}\\n"), sys.stdout.flush()
"""


def _sqlite_words(journal: str) -> Callable:
    def words(kit: Kit, directory: pathlib.Path, dice: random.Random) -> tuple[list, dict[str, str]]:
        return ([sys.executable, "-c", SQLITE, directory / "base.db", dice.randrange(1 << 30), journal],
                SMALL.environment() | {"SPILLWAY_BUFFER": "*.db*", "SPILLWAY_BUFFER_AFTER": "0", "SPILLWAY_MEMORY": "24M", "SPILLWAY_THRESHOLD": "64K"})
    return words


def _sqlite_check(kit: Kit, directory: pathlib.Path, said: str) -> int:
    confirmed = int((whole_lines(said)[-1:] or ["0"])[0].replace("begun", "0"))
    base = sqlite3.connect(directory / "base.db")
    try:
        broken = base.execute("pragma integrity_check").fetchall()
        expect(broken == [("ok",)], f"SQLite finds it damaged: {broken[:3]}")
        last, = base.execute("select coalesce(max(transfer), 0) from t").fetchone()
        expect(last >= confirmed, f"transaction {confirmed} was committed, {last} is the last one there")
        for transfer, text in base.execute("select transfer, text from t"):
            expect(set(text) == {transfer % 251}, f"a row of transaction {transfer} holds {set(text)}")
    finally:
        base.close()
    return confirmed


CASES = {
    "buffered": Case("unmodified", _records_words, _records_check),
    "buffered-recompiled": Case("mapped", _records_words, _records_check),
    "striped": Case("unmodified", _striped_words, _striped_check),
    "mapped": Case("unmodified", _mapped_words, _records_check),
    "mapped-recompiled": Case("mapped", _mapped_words, _records_check),
    "region": Case("translated", _bank_words, _bank_check, "begun\n"),
    "sqlite-wal": Case("unmodified", _sqlite_words("wal"), _sqlite_check, "begun\n"),
    "sqlite-journal": Case("unmodified", _sqlite_words("delete"), _sqlite_check, "begun\n"),
}
