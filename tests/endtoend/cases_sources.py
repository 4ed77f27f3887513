"""Large programs from Debian's source packages, recompiled: they do what native builds of the same sources do."""
import fcntl
import os
import pathlib
import shutil
import subprocess
import time

from kit import ENGINES, Kit, SMALL, Skipped, expect, start

ENGINES = ENGINES[:2]
SLOW = ("sqlite_passes_its_speed_test_beyond_the_cap", "redis_serves_more_than_the_cap")
JOBS = "-j2"
REDIS_CAP = SMALL.environment() | {"SPILLWAY_MEMORY": "24M"}
REDIS_KEYS = 120_000
# Each changes the data, or answers with a sum of it.
REDIS_COMMANDS = [
    f"DEBUG POPULATE {REDIS_KEYS} key 300",
    "EVAL \"for i = 1, 30000 do redis.call('ZADD', 'sorted', (i * 7919) % 10007, 'member' .. i) end return redis.call('ZCARD', 'sorted')\" 0",
    "EVAL \"for i = 1, 30000 do redis.call('HSET', 'hash' .. i % 100, 'field' .. i, string.rep('v', i % 200)) end return redis.call('HLEN', 'hash7')\" 0",
    "EVAL \"for i = 1, 20000 do redis.call('RPUSH', 'list', 'element' .. i) end return redis.call('LLEN', 'list')\" 0",
    "ZRANGE sorted 10000 10020 WITHSCORES",
    "SORT list BY nothing-* LIMIT 100 5 ALPHA",
    "LRANGE list 9990 9999",
    "EVAL \"for i = 0, 119999, 3 do redis.call('DEL', 'key:' .. i) end return redis.call('DBSIZE')\" 0",
    "DEBUG DIGEST",
    "SAVE",
    "DEBUG RELOAD",
    "DEBUG DIGEST",
]


def _run(command: list, where: pathlib.Path, time_limit_s: float = 900, **options) -> str:
    done = subprocess.run([str(word) for word in command], cwd=where, capture_output=True, text=True, errors="replace",
                          timeout=time_limit_s, **options)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def _source_lists(place: pathlib.Path) -> list[str]:
    """apt's options for the machine's own package sources, as sources of source packages; nothing of the machine changes."""
    parts = place / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    own = pathlib.Path("/etc/apt")
    for number, file in enumerate([*own.glob("sources.list"), *own.glob("sources.list.d/*.list"), *own.glob("sources.list.d/*.sources")]):
        lines = file.read_text().splitlines()
        if file.suffix == ".sources":
            lines = ["Types: deb-src" if line.startswith("Types:") else line for line in lines]
        else:
            lines = ["deb-src " + line[4:] for line in lines if line.startswith("deb ")]
        (parts / f"{number}{file.suffix}").write_text("\n".join(lines) + "\n")
    for name in ("lists/partial", "cache/archives/partial"):
        (place / name).mkdir(parents=True, exist_ok=True)
    settings = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts, "Dir::State::lists": place / "lists",
                "Dir::Cache": place / "cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none"}
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


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
            settings = _source_lists(place)
            try:
                _run(["apt-get", *settings, "update", "-qq"], fetched)
                _run(["apt-get", *settings, "source", "-qq", package], fetched)
            except Exception as error:
                raise Skipped(f"the source package {package} cannot be had: {error}") from None
            fetched.rename(target)
        return next(file for file in target.iterdir() if file.is_dir())


def _built(kit: Kit, name: str, source: pathlib.Path, kinds: tuple[str, ...], make) -> dict[str, pathlib.Path]:
    """A tree for each kind, native or an engine, that `make` has built in; kept while the compiler is the same."""
    trees = {}
    for kind in kinds:
        tree = kit.build / "tests" / "sources" / f"{name}-{kind}"
        done = tree / "built"
        with open(f"{tree}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tools = [kit.build / "lib" / "spillway_pass.so"] if kind != "native" else []
            if not done.exists() or any(done.stat().st_mtime < tool.stat().st_mtime for tool in tools):
                shutil.rmtree(tree, ignore_errors=True)
                shutil.copytree(source, tree, symlinks=True)
                make(tree, ["clang-19"] if kind == "native" else
                     [str(kit.build / "bin" / "spillway-clang"), f"-fspillway-engine={kind}"])
                done.touch()
        trees[kind] = tree
    return trees


def _make_sqlite(tree: pathlib.Path, compiler: list[str]) -> None:
    _run(["./configure", "--disable-tcl", "--disable-readline"], tree)
    _run(["make", JOBS, "sqlite3.c"], tree)
    _run([*compiler, "-O2", "-w", "-I.", "-DSQLITE_THREADSAFE=1", "test/speedtest1.c", "sqlite3.c", "-o", "speedtest1",
          "-lpthread", "-ldl", "-lm"], tree)


def sqlite_passes_its_speed_test_beyond_the_cap(kit: Kit) -> None:
    if not shutil.which("tclsh"):
        raise Skipped("tclsh makes SQLite's one file of its many")
    trees = _built(kit, "sqlite", _source(kit, "sqlite3"), ("native", kit.engine), _make_sqlite)
    for arguments in (("--memdb", "--size", "12", "--verify", "--stats"), ("--size", "8", "--verify", "file.db")):
        def answers(kind: str, env: dict | None) -> list[str]:
            (kit.place / "file.db").unlink(missing_ok=True)
            run = kit.run(trees[kind] / "speedtest1", *arguments, env=env, time_limit_s=350)
            expect(run.code == 0, run.last_words())
            return [line for line in run.output.splitlines() if "hash" in line.lower()]
        native = answers("native", None)
        expect(len(native) > 0, "the speed test printed no hash")
        expect(answers(kit.engine, SMALL.environment()) == native, f"{arguments}: not {native}")


def _make_redis(tree: pathlib.Path, compiler: list[str]) -> None:
    _run(["make", JOBS, "MALLOC=libc", "BUILD_TLS=no", "USE_SYSTEMD=no", f"CC={' '.join(compiler)}", "OPTIMIZATION=-O2",
          "REDIS_CFLAGS=-w", "REDIS_LDFLAGS=", "redis-server", "redis-cli"], tree / "src")


def _ask(cli: pathlib.Path, socket: pathlib.Path, command: str) -> str:
    return _run([cli, "-s", socket, "--no-raw"], socket.parent, input=command + "\n")


def redis_serves_more_than_the_cap(kit: Kit) -> None:
    trees = _built(kit, "redis", _source(kit, "redis"), ("native", kit.engine), _make_redis)
    cli = trees["native"] / "src" / "redis-cli"

    def answers(kind: str, env: dict | None) -> list[str]:
        socket = kit.place / f"{kind}.sock"
        (kit.place / "dump.rdb").unlink(missing_ok=True)
        # A child that saves would touch managed memory (spillway-regions(7)).
        with start(kit, trees[kind] / "src" / "redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                   "--appendonly", "no", "--enable-debug-command", "yes", "--dir", kit.place, env=env) as server:
            until = time.monotonic() + 60
            while not socket.exists() and server.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            expect(server.poll() is None, f"the server ended: {server.stderr.read()[-800:] if server.poll() is not None else ''}")
            found = [_ask(cli, socket, command) for command in REDIS_COMMANDS]
            os.kill(server.pid, 15)
            server.wait(60)
            expect(server.returncode == 0, f"the server ended with {server.returncode}: {server.stderr.read()[-800:]}")
            return found

    native, ours = answers("native", None), answers(kit.engine, REDIS_CAP)
    for command, expected, got in zip(REDIS_COMMANDS, native, ours):
        expect(got == expected, f"{command}:\n{got[-500:]}\nnatively\n{expected[-500:]}")
