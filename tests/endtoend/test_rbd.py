"""Programs whose store is an image of a Ceph cluster: a real one, of this machine, as long as the test."""
import contextlib
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest
from kit import HERE, TIME_LIMIT_S, expect

sys.path.insert(0, str(HERE.parent / "store"))
import ceph_cluster  # noqa: E402  # pylint: disable=wrong-import-position

pytestmark = pytest.mark.engines("none")


@contextlib.contextmanager
def _place() -> Iterator[pathlib.Path]:
    """Where a cluster can be; a test is skipped where there can be none."""
    if why := ceph_cluster.missing():
        pytest.skip(why)
    # A socket's path is 107 bytes at most, which a build's may use up.
    with tempfile.TemporaryDirectory(prefix="spw_ceph.") as place:
        yield pathlib.Path(place)


def _daemons_at(place: pathlib.Path) -> list[str]:
    """The processes that have `place` in their command line."""
    found = []
    for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = command.read_bytes()
            if words.startswith(b"ceph-") and str(place).encode() in words:
                found.append(command.parent.name)
    return found


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_daemon_outlives_whoever_started_its_cluster(by: signal.Signals) -> None:
    with _place() as place, subprocess.Popen([sys.executable, ceph_cluster.__file__, place], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as owner:
        while len(_daemons_at(place)) < 2:
            expect(owner.poll() is None, "the cluster does not start")
            time.sleep(0.01)
        owner.send_signal(by)
        owner.wait()
        deadline = time.monotonic() + TIME_LIMIT_S
        while left := _daemons_at(place):
            expect(time.monotonic() < deadline, f"left behind: {left}")
            time.sleep(0.01)
