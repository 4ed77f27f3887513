"""Programs that know nothing of Spillway, run on a tiny cap and compared with native runs.

A test is a behaviour, and takes a `kit` to compile and run programs with. It is run once for each engine: those that its
`engines` marker names, or those of kit.ENGINES. What to run is chosen as pytest always does:

    pytest tests/endtoend -n 4 -m "not slow"                 four at a time
    pytest tests/endtoend -k "forks and [mapped]"            the tests of test_forks.py, with one engine
    pytest "tests/endtoend/test_forks.py::test_a_child_of_a_child_has_what_they_had[mapped]"
"""
from __future__ import annotations

import fcntl
import pathlib
import shutil
import signal
import tempfile
from collections.abc import Iterator

import pytest
from clusters import _cluster, _running_cluster  # noqa: F401  # pylint: disable=unused-import
from kit import ENGINES, HERE, THREADS, Kit

KNOWN_ENGINES = (*ENGINES, THREADS, "none")
BUILD = HERE.parents[1] / "build" / "release"
# What it takes of a build; one for a sanitizer has no compiler drivers.
NEEDED = ("bin/spillway", "bin/spillway-clang", "lib/libspillway.so")
# With these nothing is run.
SHOWING = ("help", "markers", "showfixtures", "collectonly")
# `timeout` in pyproject.toml is that of all others. Some of the slow ones first build large programs twice.
SLOW_TIME_LIMIT_S = 1500
TOOK = "endtoend/took_s"  # in pytest's cache: by test, how long it last took
_took_s: dict[str, float] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--build", metavar="DIR", default=str(BUILD), help="the build whose programs are run (build/release)")


def _build_of(config: pytest.Config) -> pathlib.Path:
    return pathlib.Path(config.getoption("--build")).resolve()


def _let_signals_end_programs() -> None:
    """A job in the background of a shell, and one under nohup, ignores some signals, and so would all that it starts."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_configure(config: pytest.Config) -> None:
    _let_signals_end_programs()
    build = _build_of(config)
    missing = next((name for name in NEEDED if not (build / name).exists()), None)
    if missing and not any(config.getoption(name) for name in SHOWING):
        raise pytest.UsageError(f"--build {build}: there is no {missing} in it; ./dev build makes build/release")


def pytest_report_header(config: pytest.Config) -> str:
    return f"build: {_build_of(config)}"


# ---- Which tests there are ----

def _engines_named(metafunc: pytest.Metafunc, marker: str) -> tuple[str, ...]:
    found = metafunc.definition.get_closest_marker(marker)
    engines = found.args if found else ()
    unknown = [engine for engine in engines if engine not in KNOWN_ENGINES]
    if unknown or (found and not engines):
        pytest.fail(f"{metafunc.definition.nodeid}: the marker {marker} names {unknown or 'no engine'}, of {KNOWN_ENGINES}", pytrace=False)
    return engines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The engine is a test's parameter, by which Kit knows how to make and run its programs."""
    if "kit" not in metafunc.fixturenames:
        return
    slow = _engines_named(metafunc, "slow_with")
    engines = _engines_named(metafunc, "engines") or ENGINES
    metafunc.parametrize("engine", [pytest.param(each, marks=[pytest.mark.slow] if each in slow else []) for each in engines])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(SLOW_TIME_LIMIT_S))
    if hasattr(config, "workerinput"):
        _longest_first(items, config.workerinput.get("took_s", {}), config.workerinput["workercount"])


# ---- Several at a time (-n), by xdist ----

def _longest_first(items: list[pytest.Item], took_s: dict[str, float], workers: int) -> None:
    """So that none is left running alone in the end. Those that run alone come last, when few have to wait for them.

    xdist begins with giving each worker the next of the list, a quarter of its share at once, and goes on with smaller parts. The
    longest tests are in the first of these, so they are dealt out evenly."""
    def key(item: pytest.Item) -> tuple[bool, float]:
        expected_s = took_s.get(item.nodeid, SLOW_TIME_LIMIT_S if item.get_closest_marker("slow") else 0)
        return item.get_closest_marker("quiet") is not None, -expected_s

    items.sort(key=key)
    first = len(items) // workers // 4 * workers
    items[:first] = [item for worker in range(workers) for item in items[worker:first:workers]]


def _took_before_s(config: pytest.Config) -> dict[str, float]:
    return config.cache.get(TOOK, {}) if hasattr(config, "cache") else {}  # -p no:cacheprovider


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """The workers have to agree on the order, and the cache may change while they start."""
    node.workerinput["took_s"] = _took_before_s(node.config)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call":
        _took_s[report.nodeid] = round(report.duration, 2)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _took_s and hasattr(session.config, "cache") and not hasattr(session.config, "workerinput"):
        session.config.cache.set(TOOK, _took_before_s(session.config) | _took_s)


# ---- What a test gets ----

@pytest.fixture(scope="session")
def build(pytestconfig: pytest.Config) -> pathlib.Path:
    return _build_of(pytestconfig)


@pytest.fixture(scope="session")
def folder(build: pathlib.Path) -> pathlib.Path:
    """Of all that tests make, on the disk that holds the build."""
    path = build / "tests" / "endtoend"
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def _turn(folder: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """A `quiet` test has this build to itself: it waits for all others, of other sessions too, and they wait for it. That is
    no part of its time (`timeout_func_only`). Who comes next holds the first lock while it waits for the second, so that a quiet
    test's turn comes though others follow each other without a gap."""
    is_quiet = request.node.get_closest_marker("quiet") is not None
    with open(folder / "next.lock", "w") as next_one, open(folder / "running.lock", "w") as running:
        fcntl.flock(next_one, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if is_quiet else fcntl.LOCK_SH)
        fcntl.flock(next_one, fcntl.LOCK_UN)
        yield


@pytest.fixture
def kit(_turn: None, build: pathlib.Path, folder: pathlib.Path, engine: str, request: pytest.FixtureRequest) -> Iterator[Kit]:
    """With a directory of the test's own."""
    # A path of a socket in it may not be long.
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"{request.function.__name__.removeprefix('test_')}.", dir=folder))
    try:
        yield Kit(build, place, engine)
    finally:
        shutil.rmtree(place, ignore_errors=True)
