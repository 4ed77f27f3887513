"""Large programs from Debian's source packages, recompiled: they do what native builds of the same sources do."""
import pathlib
import random
import shutil

import pytest
from kit import HERE, Kit, Run, expect, skipped_when_unavailable, start
from harness import sources
from redis_client import RedisClient

pytestmark = pytest.mark.engines("translated", "mapped")
JOBS = "-j2"
SQL = (HERE / "programs" / "words.sql").read_text()
RUN_TIME_LIMIT_S = 300
REDIS_KEYS = 60_000


# ---- Builds ----

def _built(kit: Kit, package: str, make) -> dict[str, pathlib.Path]:
    """Two trees, `native` and the engine's."""
    with skipped_when_unavailable():
        return {kind: sources.built(kit.build, package, kind, make) for kind in ("native", kit.engine)}


# ---- Runs ----

def _capped(kit: Kit, memory: str, program: pathlib.Path, *arguments) -> list:
    """The words that run the program with every allocation managed; it leaves a report."""
    return ["run", "--memory", memory, "--block", "auto", "--threshold", "1", "--quota", "0", "--store", kit.store,
            "--stats", kit.report_file, "--", program, *arguments]


def _spilled(kit: Kit, least_bytes: int) -> None:
    made = kit.expect_spilled("it")
    expect(made["facts"]["engine"] == kit.engine, f"{made['facts']}")
    expect(made["counters"]["managed_bytes_allocated"] >= least_bytes, f"{made['counters']}")


def _same_as_native(kit: Kit, memory: str, trees: dict[str, pathlib.Path], name: str, *arguments, stdin: str = "", answer=str.splitlines) -> None:
    def run(program: pathlib.Path, *words) -> Run:
        done = kit.run(program, *words, stdin=stdin, time_limit_s=RUN_TIME_LIMIT_S)
        expect(done.code == 0 and done.errors == "", done.last_words())
        return answer(done.output)

    native = run(trees["native"] / name, *arguments)
    expect(len(native) > 0, f"{name} printed nothing")
    ours = run(kit.build / "bin" / "spillway", *_capped(kit, memory, trees[kit.engine] / name, *arguments))
    expect(ours == native, f"{name} {arguments}:\n{ours}\nnatively\n{native}")


# ---- SQLite ----

def _make_sqlite(tree: pathlib.Path, compiler: list[str]) -> None:
    sources.run(["./configure", "--disable-tcl", "--disable-readline"], tree)
    sources.run(["make", JOBS, "sqlite3.c", "shell.c"], tree)
    command = [*compiler, "-O2", "-w", "-I.", "-DSQLITE_THREADSAFE=1"]
    sources.run([*command, "-c", "sqlite3.c"], tree)
    for program, source in (("speedtest1", "test/speedtest1.c"), ("shell", "shell.c")):
        sources.run([*command, source, "sqlite3.o", "-o", program, "-lpthread", "-ldl", "-lm"], tree)


def _sqlite(kit: Kit) -> dict[str, pathlib.Path]:
    if not shutil.which("tclsh"):
        pytest.skip("tclsh makes SQLite's one file of its many")
    return _built(kit, "sqlite3", _make_sqlite)


@pytest.mark.slow
def test_sqlite_passes_its_speed_test_beyond_the_cap(kit: Kit) -> None:
    """Its hash is of every row that its queries return."""
    _same_as_native(kit, "10M", _sqlite(kit), "speedtest1", "--memdb", "--size", "40", "--verify",
                    answer=lambda output: [line for line in output.splitlines() if "Hash" in line])
    _spilled(kit, 16 << 20)


@pytest.mark.slow
def test_sqlite_in_memory_answers_beyond_the_cap(kit: Kit) -> None:
    _same_as_native(kit, "24M", _sqlite(kit), "shell", ":memory:", stdin=SQL.replace("400000", "150000"))
    _spilled(kit, 24 << 20)


# ---- Redis ----

def _make_redis(tree: pathlib.Path, compiler: list[str]) -> None:
    sources.run(["make", JOBS, "MALLOC=libc", "BUILD_TLS=no", "USE_SYSTEMD=no", f"CC={' '.join(compiler)}", "OPTIMIZATION=-O2",
                 "REDIS_CFLAGS=-w", "REDIS_LDFLAGS=", "redis-server"], tree / "src")


def _value(key: int) -> str:
    return f"{key * 7919:x}-" * (20 + key % 50)


def _converse(client: RedisClient) -> list:
    """Fills the server, reads every third value back, deletes, sorts, and has it save and load itself; what it answers."""
    answers = client.ask(*(("SET", f"key:{i}", _value(i)) for i in range(REDIS_KEYS)))
    expect(answers == ["OK"] * REDIS_KEYS, "a SET failed")
    looked_at = list(range(0, REDIS_KEYS, 3))
    random.Random(5).shuffle(looked_at)
    for key, value in zip(looked_at, client.ask(*(("GET", f"key:{key}") for key in looked_at))):
        expect(value == _value(key), f"key:{key} is {value!r}")
    answers = client.ask(*(("ZADD", "sorted", i * 7919 % 10007, f"member{i}") for i in range(20_000)))
    answers += client.ask(*(("HSET", f"hash{i % 100}", f"field{i}", "v" * (i % 200)) for i in range(20_000)))
    answers += client.ask(*(("RPUSH", "list", f"element{i}") for i in range(10_000)))
    answers += client.ask(*(("DEL", f"key:{i}") for i in range(0, REDIS_KEYS, 2)))
    answers += client.ask(("EVAL", "return redis.call('ZRANGE', 'sorted', 9000, 9020, 'WITHSCORES')", 0), ("LRANGE", "list", 990, 999),
                          ("SORT", "list", "LIMIT", 100, 5, "ALPHA"), ("HLEN", "hash7"), ("DBSIZE",), ("DEBUG", "DIGEST"), ("SAVE",),
                          ("DEBUG", "RELOAD"), ("DEBUG", "DIGEST"))
    return answers


@pytest.mark.slow
def test_redis_serves_more_than_the_cap(kit: Kit) -> None:
    trees = _built(kit, "redis", _make_redis)

    def serve(kind: str) -> list:
        place = kit.place / kind  # of its own: a server loads the dump that it finds
        place.mkdir()
        socket = place / "sock"
        # No saving by a child: it would touch managed memory (spillway-regions(7)).
        words = [trees[kind] / "src" / "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
                 "--enable-debug-command", "yes", "--logfile", place / "log", "--dir", place]
        if kind != "native":
            words = [kit.build / "bin" / "spillway", *_capped(kit, "24M", *words)]
        with start(kit, *words) as server:
            with RedisClient(socket, server, RUN_TIME_LIMIT_S) as client:
                answers = _converse(client)
                client.leave("SHUTDOWN", "NOSAVE")
            code = server.wait(RUN_TIME_LIMIT_S)
            errors = server.stderr.read()
            expect(code == 0 and errors == "", f"exit code {code}: {errors[-800:]}")
        return answers

    native, ours = serve("native"), serve(kit.engine)
    wrong = next((i for i, (got, expected) in enumerate(zip(ours, native, strict=True)) if got != expected), None)
    expect(wrong is None, f"answer {wrong} is {ours[wrong or 0]!r}, natively {native[wrong or 0]!r}")
    _spilled(kit, 32 << 20)
