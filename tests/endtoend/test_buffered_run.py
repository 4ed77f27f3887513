"""Programs of others, unmodified, on files that --buffer names."""
import pathlib
import re

import pytest
from kit import THREADS, Kit, MIB, Run, expect, program_of, start

pytestmark = pytest.mark.engines("unmodified", "threads")
CAP = ("--memory", "16M", "--quota", "4M", "--buffer", "*.dat")

VERIFIED = """
[global]
ioengine=psync
thread=1
filename=fio.dat
size=48m
bs=4k
verify=crc32c
verify_fatal=1
do_verify=1
[random]
rw=randwrite
[unaligned]
stonewall
rw=write
bsrange=512-9000
bs_unaligned=1
fsync=500
[mixed]
stonewall
rw=randrw
size=16m
filename=mixed.dat
"""

STATEMENTS = """
pragma journal_mode={mode};
create table t(a integer primary key, b text, c real);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) insert into t select i, hex(i * 7919) || i, i * 1.5 from n;
commit;
create index tb on t(b);
update t set c = c + 1 where a % 7 = 0;
delete from t where a % 11 = 0;
begin; update t set b = 'gone'; rollback;
vacuum;
pragma integrity_check;
select count(*), sum(c), sum(length(b)) from t;
"""


def _run(kit: Kit, *command: str, stdin: str = "") -> Run:
    faults = ("--faults", "threads") if kit.engine == THREADS else ()
    return kit.run(kit.build / "bin" / "spillway", "run", *CAP, *faults, "--store", kit.store, "--stats", kit.report_file, "--",
                   *command, stdin=stdin)


def test_fio_verifies_what_it_wrote(kit: Kit) -> None:
    jobs = kit.place / "jobs.fio"
    jobs.write_text(VERIFIED)
    run = _run(kit, program_of("fio"), str(jobs))
    expect(run.code == 0 and "err= 0" in run.output and "verify" not in run.errors, run.last_words())
    counters = kit.report()["counters"]
    expect(counters["store_write_bytes"] > 48 * MIB and counters["evictions"] > 5000, f"it was not buffered: {counters}")


def test_sqlite_keeps_a_database(kit: Kit) -> None:
    sqlite = program_of("sqlite3")
    for mode in ("delete", "truncate", "wal"):
        statements = STATEMENTS.format(mode=mode)
        native = kit.run(pathlib.Path(sqlite), str(kit.place / f"native.{mode}"), stdin=statements)
        database = str(kit.place / f"{mode}.dat")
        run = _run(kit, sqlite, database, stdin=statements)
        expect((run.code, run.output) == (0, native.output), f"{mode}: {run.last_words()}\nnatively {native.output}")
        counters = kit.report()["counters"]
        expect(counters["store_write_bytes"] > 2 * MIB, f"{mode}: it was not buffered: {counters}")
        again = kit.run(pathlib.Path(sqlite), database, stdin="\n".join(statements.splitlines()[-2:]))
        expect(again.output == "\n".join(native.output.splitlines()[-2:]) + "\n", f"{mode}, read by another process: {again.last_words()}")


WRITER = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], timeout=300, isolation_level=None)
base.execute("pragma synchronous=off")
for i in range(5000):
    base.execute("begin immediate")
    base.execute("update counter set n = n + 1")
    base.execute("insert into rows (text) values (?)", ("x" * 200,))
    base.execute("commit")
    if i == 50:
        print("begun", flush=True)
        sys.stdin.readline()
"""


# The second one opens what the first one has buffered and changed; both lock it, as SQLite does.
def test_two_processes_write_one_database(kit: Kit) -> None:
    sqlite, python = pathlib.Path(program_of("sqlite3")), program_of("python3")
    faults = ("--faults", "threads") if kit.engine == THREADS else ()
    buffered = (kit.build / "bin" / "spillway", "run", *CAP, *faults, "--store", kit.store, "--")
    for mode, second in (("delete", buffered), ("wal", buffered), ("delete", ()), ("wal", ())):
        database = str(kit.place / f"{mode}{len(second)}.dat")
        kit.run(sqlite, database, stdin=f"pragma journal_mode={mode}; create table counter(n); insert into counter values (0);"
                "create table rows(id integer primary key, text);")
        with start(kit, *buffered, python, "-c", WRITER, database) as one:
            expect(one.stdout.readline() == "begun\n", "the first one did not begin")
            with start(kit, *second, python, "-c", WRITER, database) as other:
                expect(other.stdout.readline() == "begun\n", "the second one did not begin")
                for process in (one, other):
                    process.stdin.write("\n")
                    process.stdin.flush()
                said = [process.communicate(timeout=300)[1] for process in (one, other)]
        expect((one.returncode, other.returncode) == (0, 0), f"{mode}: {said}")
        expect(mode == "wal" or "another process has opened it" in said[0], f"it was not buffered at first: {said[0]}")
        found = kit.run(sqlite, database, stdin="pragma integrity_check; select n from counter; select count(*) from rows;")
        expect(found.output == "ok\n10000\n10000\n", f"{mode}, {'both' if second else 'one'} buffered: {found.last_words()}")


def test_pg_test_fsync_finds_every_way_to_sync(kit: Kit) -> None:
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_test_fsync"))
    if not programs:
        pytest.skip("there is no pg_test_fsync here, a program of PostgreSQL's server package")
    run = _run(kit, str(programs[-1]), "-s", "1", "-f", "synced.dat")
    expect(run.code == 0, run.last_words())
    rates = [(line.split()[0], float(rate)) for line in run.output.splitlines() for rate in re.findall(r"([\d.]+) ops/sec", line)]
    ways = {way for way, _ in rates}
    expect({"open_datasync", "fdatasync", "fsync", "open_sync", "write,", "write"} <= ways and all(rate > 0 for _, rate in rates), run.output)
    # The last rate is of writes that are not synced. Each is of about a second, and of one block at least each time: a sync that does nothing would
    # leave most of them unwritten, as they go to the same place.
    written, synced = kit.report()["counters"]["writebacks"], sum(rate for _, rate in rates[:-1])
    expect(written > synced / 2, f"{written} blocks were written in about {synced:.0f} syncs")


def test_where_only_files_are_buffered_no_userfaultfd_is_needed(kit: Kit) -> None:
    for options, env, engine in ((("--engine", "translated"), {}, "translated"), ((), {"SPILLWAY_TEST_USERFAULT": "none"}, "mapped")):
        file = kit.place / "only.dat"
        file.unlink(missing_ok=True)
        run = kit.run(kit.build / "bin" / "spillway", "run", *CAP, *options, "--store", kit.store, "--stats", kit.report_file, "--",
                      program_of("fio"), "--name=j", "--filename=only.dat", "--size=40m", "--rw=randrw", "--ioengine=psync", "--thread", "--verify=crc32c",
                      "--verify_fatal=1", env=env)
        expect(run.code == 0 and "err= 0" in run.output, run.last_words())
        made = kit.report()
        expect(made["facts"]["engine"] == engine and made["counters"]["evictions"] > 2000, f"{made['facts']}")


def test_dd_and_cp_move_files(kit: Kit) -> None:
    data = bytes(range(256)) * 100_003
    (kit.place / "from.dat").write_bytes(data)
    for command in (("cp", "from.dat", "to.dat"), ("dd", "if=from.dat", "of=to.dat", "bs=7777", "status=none"),
                    ("dd", "if=from.dat", "of=to.dat", "bs=1M", "conv=fsync", "status=none"),
                    ("sh", "-c", "cat from.dat > to.dat"), ("tee", "to.dat")):
        (kit.place / "to.dat").unlink(missing_ok=True)
        run = _run(kit, program_of(command[0]), *command[1:], stdin=data.decode("latin-1") if command[0] == "tee" else "")
        expect(run.code == 0, f"{command}: {run.last_words()}")
        found = (kit.place / "to.dat").read_bytes()
        wanted = data if command[0] != "tee" else data.decode("latin-1").encode()
        expect(found == wanted, f"{command}: {len(found)} bytes instead of {len(wanted)}, or others")
