"""A real Ceph cluster of this machine for the tests of a module, and programs whose store is an image of it."""
import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest
from kit import EXIT_USAGE, HERE, Kit, SMALL, TIME_LIMIT_S, expect, start

sys.path.insert(0, str(HERE.parent / "store"))
import ceph_cluster  # noqa: E402  # pylint: disable=wrong-import-position

# A store that fails to be written is waited for, in case it recovers.
SHORT_WAIT = {"SPILLWAY_TEST_FRAME_WAIT_MS": "1000"}
# What librados itself takes of memory is said of a cap as small as these.
CAP_WARNING = "spillway: warning: the program holds "


@contextlib.contextmanager
def place_for_cluster() -> Iterator[pathlib.Path]:
    """Where a cluster can be; a test is skipped where there can be none."""
    if why := ceph_cluster.missing():
        pytest.skip(why)
    # A socket's path is 107 bytes at most, which a build's may use up.
    with tempfile.TemporaryDirectory(prefix="spw_ceph.") as place:
        yield pathlib.Path(place)


@pytest.fixture(name="running_cluster", scope="module")
def _running_cluster() -> Iterator[ceph_cluster.CephCluster]:
    with place_for_cluster() as place, ceph_cluster.CephCluster(place) as cluster:
        yield cluster


@pytest.fixture(name="cluster")
def _cluster(running_cluster: ceph_cluster.CephCluster) -> Iterator[ceph_cluster.CephCluster]:
    yield running_cluster
    running_cluster.clear()


def lines_of(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if not line.startswith(CAP_WARNING)]


def one_line(process: subprocess.Popen, code: int, *parts: str) -> None:
    """It ends with this code and one line that has these parts."""
    output, errors = process.communicate(timeout=TIME_LIMIT_S)
    lines = lines_of(errors)
    expect(process.returncode == code and len(lines) == 1 and lines[0].startswith("spillway: "),
           f"exit code {process.returncode}: {output}{errors}")
    for part in parts:
        expect(part in errors, f"{part!r} is not in {errors}")


def refused(kit: Kit, store: str, *parts: str) -> None:
    with start(kit, kit.compile("spill.cc", "-O2"), "fill", 1, env=SMALL.environment() | {"SPILLWAY_STORE": store}) as process:
        one_line(process, EXIT_USAGE, "--store", *parts)


@contextlib.contextmanager
def filling(kit: Kit, store: str, mebibytes: int = 150, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen]:
    """A program that is about to fill memory, and waits to be told."""
    with start(kit, kit.compile("spill.cc", *SMALL.flags), "fill_when_told", mebibytes,
               env=SMALL.environment() | SHORT_WAIT | {"SPILLWAY_STORE": store} | (env or {})) as process:
        expect(process.stdout.readline() == "look\n", "the program does not start")
        yield process


def until_objects(cluster: ceph_cluster.CephCluster, process: subprocess.Popen, count: int) -> None:
    """The pool has so many, and the program still runs."""
    deadline = time.monotonic() + TIME_LIMIT_S
    while cluster.objects() < count:
        expect(process.poll() is None and time.monotonic() < deadline, f"nothing is written; exit code {process.returncode}")
        time.sleep(0.01)
    expect(process.poll() is None, f"it has ended already; exit code {process.returncode}")


def until_written(cluster: ceph_cluster.CephCluster, process: subprocess.Popen, objects: int = 10) -> None:
    """It is told, and has written so many objects more."""
    before = cluster.objects()
    process.stdin.write("go\n")
    process.stdin.flush()
    until_objects(cluster, process, before + objects)


def goes_well(process: subprocess.Popen) -> None:
    output, errors = process.communicate(timeout=TIME_LIMIT_S)
    expect((process.returncode, output, lines_of(errors)) == (0, "wrong 0\n", []), f"exit code {process.returncode}: {output}{errors}")
