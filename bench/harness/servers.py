"""Servers of memory for a benchmark, on machines of its network: NBD by nbdkit, and a Ceph cluster that keeps its objects in memory."""
import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from .network import Machine
from .process import end_with_parent

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "store"))
import ceph_cluster  # noqa: E402  # pylint: disable=wrong-import-position

START_LIMIT_S = 20
POOL = ceph_cluster.POOL


class Failed(Exception):
    pass


def why_no_nbd() -> str | None:
    return None if shutil.which("nbdkit") else "nbdkit is missing (./dev setup installs it)"


def why_no_ceph() -> str | None:
    return ceph_cluster.missing() or None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def nbd(machine: Machine, size_bytes: int, delay_ms: int) -> Iterator[str]:
    """The URI of an export in the server's memory. Each read takes delay_ms longer, any number of them at a time."""
    with tempfile.TemporaryDirectory() as place:
        listens, port = pathlib.Path(place, "pid"), _free_port()
        kept = ["--filter=delay", "memory", f"rdelay={delay_ms}ms"] if delay_ms else ["memory"]
        command = [*machine.words, "nbdkit", "-f", "-i", machine.address, "-p", str(port), "-P", str(listens), *kept, f"size={size_bytes}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent, start_new_session=True) as server:
            try:
                deadline = time.monotonic() + START_LIMIT_S
                while not listens.exists():
                    if server.poll() is not None or time.monotonic() > deadline:
                        raise Failed(f"nbdkit does not start: {' '.join(command)}")
                    time.sleep(0.01)
                yield f"nbd://{machine.address}:{port}"
            finally:
                server.kill()


@contextlib.contextmanager
def ceph(machines: Sequence[Machine], size_bytes: int) -> Iterator[ceph_cluster.CephCluster]:
    """An OSD on each machine, with as much room."""
    osds = [ceph_cluster.Machine(machine.address, machine.words) for machine in machines]
    # A socket's path is 107 bytes at most, which a build's may use up.
    with tempfile.TemporaryDirectory(prefix="spw_ceph.") as place:
        try:
            with ceph_cluster.CephCluster(pathlib.Path(place), size_bytes, osds, "memstore") as cluster:
                yield cluster
        except ceph_cluster.ClusterFailed as why:
            raise Failed(str(why)) from None
