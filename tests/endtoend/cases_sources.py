"""Large programs from Debian's source packages, recompiled: they do what native builds of the same sources do."""
import fcntl
import pathlib
import random
import shutil
import subprocess

from cases_unmodified import SQL
from kit import Kit, Run, Skipped, expect, start
from redis_client import RedisClient

ENGINES = ("translated", "mapped")
SLOW = ("sqlite_passes_its_speed_test_beyond_the_cap", "sqlite_in_memory_answers_beyond_the_cap", "redis_serves_more_than_the_cap")
JOBS = "-j2"
BUILD_TIME_LIMIT_S = 900
RUN_TIME_LIMIT_S = 300
REDIS_KEYS = 60_000
# Lists of apt that hooks of the machine add to, which are for its own package lists and caches.
APT_HOOKS = ("APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success")


# ---- Sources and builds ----

def _shell(command: list, where: pathlib.Path) -> None:
    done = subprocess.run([str(word) for word in command], cwd=where, capture_output=True, text=True, errors="replace",
                          timeout=BUILD_TIME_LIMIT_S)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def _apt_settings(place: pathlib.Path) -> pathlib.Path:
    """A configuration of apt with the machine's own package sources, as sources of source packages; nothing of the machine changes."""
    parts = place / "parts"
    for folder in (parts, place / "lists/partial", place / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    own = pathlib.Path("/etc/apt")
    files = [*own.glob("sources.list"), *own.glob("sources.list.d/*.list"), *own.glob("sources.list.d/*.sources")]
    for number, file in enumerate(files):
        lines = file.read_text().splitlines()
        if file.suffix == ".sources":
            lines = ["Types: deb-src" if line.startswith("Types:") else line for line in lines]
        else:
            lines = ["deb-src " + line[4:] for line in lines if line.startswith("deb ")]
        (parts / f"{number}{file.suffix}").write_text("\n".join(lines) + "\n")
    values = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts, "Dir::State::lists": place / "lists",
              "Dir::Cache": place / "cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none"}
    settings = place / "apt.conf"
    settings.write_text("".join(f"#clear {hook};\n" for hook in APT_HOOKS) +
                        "".join(f'{name} "{value}";\n' for name, value in values.items()))
    return settings


def _source(kit: Kit, package: str) -> pathlib.Path:
    """The unpacked source package, fetched once for a build directory."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-source"):
        raise Skipped("apt-get and dpkg-source are needed for source packages")
    place = kit.build / "tests" / "sources"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target = place / package
        if not target.exists():
            fetched = place / f"{package}.part"
            shutil.rmtree(fetched, ignore_errors=True)
            fetched.mkdir()
            apt_get = ["apt-get", "-qq", "-c", str(_apt_settings(place))]
            # An update fails when one of several sources has no source packages, and that may be one we do not need.
            subprocess.run([*apt_get, "update"], cwd=fetched, capture_output=True, timeout=BUILD_TIME_LIMIT_S)
            done = subprocess.run([*apt_get, "source", package], cwd=fetched, capture_output=True, text=True, timeout=BUILD_TIME_LIMIT_S)
            if done.returncode != 0:
                raise Skipped(f"the source package {package} cannot be had here: {done.stderr[-300:].strip()}")
            fetched.rename(target)
        return next(file for file in target.iterdir() if file.is_dir())


def _built(kit: Kit, package: str, make) -> dict[str, pathlib.Path]:
    """Two trees, `native` and the engine's, that `make` has built in; kept while the compiler is the same."""
    source = _source(kit, package)
    tools = [kit.build / "lib" / "spillway_pass.so", kit.build / "bin" / "spillway-clang"]
    trees = {}
    for kind in ("native", kit.engine):
        trees[kind] = tree = kit.build / "tests" / "sources" / f"{package}-{kind}"
        done = tree / "built"
        with open(f"{tree}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stale = kind != "native" and done.exists() and any(done.stat().st_mtime < tool.stat().st_mtime for tool in tools)
            if done.exists() and not stale:
                continue
            shutil.rmtree(tree, ignore_errors=True)
            shutil.copytree(source, tree, symlinks=True)
            make(tree, ["clang-19"] if kind == "native" else [str(tools[1]), f"-fspillway-engine={kind}"])
            done.touch()
    return trees


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
    _shell(["./configure", "--disable-tcl", "--disable-readline"], tree)
    _shell(["make", JOBS, "sqlite3.c", "shell.c"], tree)
    command = [*compiler, "-O2", "-w", "-I.", "-DSQLITE_THREADSAFE=1"]
    _shell([*command, "-c", "sqlite3.c"], tree)
    for program, source in (("speedtest1", "test/speedtest1.c"), ("shell", "shell.c")):
        _shell([*command, source, "sqlite3.o", "-o", program, "-lpthread", "-ldl", "-lm"], tree)


def _sqlite(kit: Kit) -> dict[str, pathlib.Path]:
    if not shutil.which("tclsh"):
        raise Skipped("tclsh makes SQLite's one file of its many")
    return _built(kit, "sqlite3", _make_sqlite)


def sqlite_passes_its_speed_test_beyond_the_cap(kit: Kit) -> None:
    """Its hash is of every row that its queries return."""
    _same_as_native(kit, "10M", _sqlite(kit), "speedtest1", "--memdb", "--size", "40", "--verify",
                    answer=lambda output: [line for line in output.splitlines() if "Hash" in line])
    _spilled(kit, 16 << 20)


def sqlite_in_memory_answers_beyond_the_cap(kit: Kit) -> None:
    _same_as_native(kit, "24M", _sqlite(kit), "shell", ":memory:", stdin=SQL.replace("400000", "150000"))
    _spilled(kit, 24 << 20)


# ---- Redis ----

def _make_redis(tree: pathlib.Path, compiler: list[str]) -> None:
    _shell(["make", JOBS, "MALLOC=libc", "BUILD_TLS=no", "USE_SYSTEMD=no", f"CC={' '.join(compiler)}", "OPTIMIZATION=-O2",
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


def redis_serves_more_than_the_cap(kit: Kit) -> None:
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
