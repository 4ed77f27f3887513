#!/usr/bin/env python3
"""A Ceph cluster of one machine for tests: a monitor and three OSDs on sparse files, on loopback, with cephx.

    ceph_cluster.py DIRECTORY    one in DIRECTORY, until standard input ends, or a signal. Prints "ready", or "missing: WHY"
                                 where there is no Ceph, and takes a line with each command: the name of a method of
                                 CephCluster and its arguments. Answers "ok", or "error: WHY"

No daemon outlives the process that started it, however that ends (PR_SET_PDEATHSIG): it has to be started by a thread that
lives as long as the cluster. There is no manager: pools are active without one, only statistics are not there.
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import types
import uuid
from collections.abc import Iterator, Sequence

PROGRAMS = ("ceph-mon", "ceph-osd", "ceph-authtool", "monmaptool")
MODULES = ("rados", "rbd")
POOL = "rbd"
OSDS = 3
OSD_BYTES = 4 << 30  # of a sparse file
START_LIMIT_S = 60
PR_SET_PDEATHSIG = 1

# Few threads, and failures that are noticed in seconds.
CONFIGURATION = """[global]
fsid = {fsid}
mon host = v2:{address}:{port}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = {place}/keyring
run dir = {place}
crash dir = {place}
admin socket = {place}/$name.asok
log file = {place}/$name.log
mon data = {place}/mon
mon cluster log file = {place}/cluster.log
mon allow pool delete = true
mon osd min down reporters = 1
mon tick interval = 1
osd data = {place}/osd.$id
osd objectstore = {objects_in}
memstore device bytes = {osd_bytes}
bluestore block size = {osd_bytes}
bluestore cache autotune = false
bluestore cache size = 33554432
osd crush chooseleaf type = 0
osd heartbeat interval = 1
osd heartbeat grace = 4
osd op num shards = 2
osd op num threads per shard = 1
osd pool default size = 3
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off

{daemons}
[client]
admin socket =
log file =
"""
# Of one daemon; its section of CONFIGURATION.
ADDRESSES = """[{name}]
public addr = {address}
cluster addr = {address}
"""


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where a daemon runs: by its address, with these words before its command."""

    address: str = "127.0.0.1"
    words: tuple[str, ...] = ()


class ClusterFailed(Exception):
    pass


def missing() -> str:
    """Why there can be no cluster here; "" where there can."""
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    absent += [f"python3-{module}" for module in MODULES if importlib.util.find_spec(module) is None]
    return f"Ceph is not installed: {', '.join(absent)}" if absent else ""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _state(thread: pathlib.Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class CephCluster:
    """Use it by `with`: from the beginning of the block to its end the pool `rbd` can be written to. `machines`: one for each OSD,
    the first one for the monitor, too. `objects_in`: "bluestore", on sparse files, or "memstore"."""

    def __init__(self, place: pathlib.Path, osd_bytes: int = OSD_BYTES, machines: Sequence[Machine] = (Machine(),) * OSDS,
                 objects_in: str = "bluestore"):
        self.place = place
        self.conf = place / "ceph.conf"
        self._osd_bytes = osd_bytes
        self._objects_in = objects_in
        self._machines = {"mon.a": machines[0]} | {f"osd.{number}": machine for number, machine in enumerate(machines)}
        self._daemons: dict[str, subprocess.Popen] = {}
        self._client = None
        self._pool = None

    def __enter__(self) -> CephCluster:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def start(self, name: str) -> None:
        """A daemon: "mon.a", "osd.0" to "osd.2"."""
        kind, _, number = name.partition(".")
        with open(self.place / f"{name}.errors", "ab") as errors:
            # A session of its own: an interrupt from the terminal is for who started it.
            self._daemons[name] = subprocess.Popen([*self._machines[name].words, f"ceph-{kind}", "-f", "-i", number, "-c", self.conf],
                                                   stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, preexec_fn=_end_with_parent,
                                                   start_new_session=True)

    def kill(self, name: str) -> None:
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def stall(self, name: str) -> None:
        """It neither answers nor ends, until go_on()."""
        daemon = self._daemons[name]
        daemon.send_signal(signal.SIGSTOP)
        # A thread that runs on another processor goes on until that one hears of it.
        deadline = time.monotonic() + START_LIMIT_S
        while any(_state(thread) != "T" for thread in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()):
            if time.monotonic() > deadline:
                raise ClusterFailed(f"{name} does not stop")
            time.sleep(0.001)

    def go_on(self, name: str) -> None:
        self._daemons[name].send_signal(signal.SIGCONT)

    def ask(self, prefix: str, **arguments: object) -> object:
        """A command to the monitor, as `ceph PREFIX ...`."""
        code, answer, why = self._client.mon_command(json.dumps({"prefix": prefix, "format": "json", **arguments}), b"", timeout=START_LIMIT_S)
        if code != 0:
            raise ClusterFailed(f"{prefix}: {os.strerror(-code)}: {why}")
        return json.loads(answer) if answer.strip() else None

    def make_image(self, name: str, size_bytes: int | str) -> None:
        _module("rbd").RBD().create(self._pool, name, int(size_bytes))

    def remove_image(self, name: str) -> None:
        _module("rbd").RBD().remove(self._pool, name)

    def images(self) -> list[str]:
        return _module("rbd").RBD().list(self._pool)

    def write_image(self, name: str, data: bytes) -> None:
        """A new image of just these bytes."""
        self.make_image(name, len(data))
        with self.open_image(name) as image:
            image.write(data, 0)

    def open_image(self, name: str) -> object:
        """As rbd's own module has it; the caller's to close."""
        return image_of(self._pool, name)

    @contextlib.contextmanager
    def another_client(self) -> Iterator[tuple[object, object]]:
        """As from another machine: a client of its own, and what it has open of the pool."""
        client = _module("rados").Rados(conffile=str(self.conf), rados_id="admin")
        client.connect(timeout=START_LIMIT_S)
        try:
            pool = client.open_ioctx(POOL)
            yield client, pool
            pool.close()
        finally:
            client.shutdown()

    def add_client(self, name: str) -> pathlib.Path:
        """client.NAME, which may do with images what it likes. The configuration to use with it."""
        key = self.ask("auth get-or-create", entity=f"client.{name}", caps=["mon", "profile rbd", "osd", "profile rbd"])[0]["key"]
        keyring, conf = self.place / f"keyring.{name}", self.place / f"{name}.conf"
        keyring.write_text(f"[client.{name}]\nkey = {key}\n")
        conf.write_text(self.conf.read_text().replace(f"keyring = {self.place}/keyring\n", f"keyring = {keyring}\n"))
        return conf

    def set_full_ratio(self, share: float, is_full: bool) -> None:
        """Above which an OSD takes no more; returns when the pool is full, or not any more."""
        self.ask("osd set-nearfull-ratio", ratio=share * 0.8)
        self.ask("osd set-backfillfull-ratio", ratio=share * 0.9)
        self.ask("osd set-full-ratio", ratio=share)
        deadline = time.monotonic() + START_LIMIT_S
        while is_full != any("full" in pool["flags_names"].split(",") for pool in self.ask("osd dump")["pools"] if pool["pool_name"] == POOL):
            if time.monotonic() > deadline:
                raise ClusterFailed(f"the pool does not become full, or not empty: {self.ask('osd dump')['pools']}")
            time.sleep(0.05)

    def clear(self) -> None:
        """What images hold is gone. Clients that were killed may have them open still, so they cannot be removed themselves."""
        for each in self._pool.list_objects():
            if each.key.startswith("rbd_data."):
                self._pool.remove_object(each.key)

    def objects(self) -> int:
        """How many objects the pool has."""
        return sum(1 for _ in self._pool.list_objects())

    def _tool(self, *command: object) -> None:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              preexec_fn=_end_with_parent, check=False)
        if done.returncode != 0:
            raise ClusterFailed(f"{command[0]}: exit code {done.returncode}: {done.stdout}")

    def _begin(self) -> None:
        port, fsid = _free_port(), str(uuid.uuid4())
        address = self._machines["mon.a"].address
        daemons = "".join(ADDRESSES.format(name=name, address=machine.address) for name, machine in self._machines.items())
        self.conf.write_text(CONFIGURATION.format(fsid=fsid, address=address, port=port, place=self.place, osd_bytes=self._osd_bytes,
                                                  objects_in=self._objects_in, daemons=daemons))
        keyring, monmap = self.place / "keyring", self.place / "monmap"
        self._tool("ceph-authtool", "-C", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self._tool("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *", "--cap", "osd", "allow *")
        for number in range(OSDS):
            self._tool("ceph-authtool", keyring, "--gen-key", "-n", f"osd.{number}", "--cap", "mon", "allow profile osd", "--cap", "osd", "allow *")
        self._tool("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:{address}:{port}]", monmap)
        # The monitor takes over all keys that are in the keyring.
        self._tool("ceph-mon", "-c", self.conf, "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keyring)
        self.start("mon.a")
        client = _module("rados").Rados(conffile=str(self.conf), rados_id="admin")
        client.connect(timeout=START_LIMIT_S)
        self._client = client
        for number in range(OSDS):
            osd = str(uuid.uuid4())
            self.ask("osd new", uuid=osd, id=number)
            (self.place / f"osd.{number}").mkdir()
            self._tool("ceph-osd", "-c", self.conf, "-i", number, "--mkfs", "--osd-uuid", osd)
            self.start(f"osd.{number}")
        self.wait_until_up(OSDS)
        self.ask("osd pool create", pool=POOL, pg_num=8, pool_type="replicated")
        self.ask("osd pool application enable", pool=POOL, app="rbd")
        self._pool = client.open_ioctx(POOL)
        _module("rbd").RBD().pool_init(self._pool, True)

    def wait_until_up(self, osds: int | str) -> None:
        """Until so many OSDs are, no more and no less."""
        deadline = time.monotonic() + START_LIMIT_S
        while self.ask("osd stat")["num_up_osds"] != int(osds):
            if time.monotonic() > deadline:
                raise ClusterFailed(f"not {osds} OSDs are up: {self.ask('osd stat')}")
            time.sleep(0.05)

    def _end(self) -> None:
        for daemon in self._daemons.values():
            daemon.kill()
        for daemon in self._daemons.values():
            daemon.wait()
        self._daemons.clear()
        if self._pool:
            self._pool.close()
            self._pool = None
        if self._client:
            self._client.shutdown()
            self._client = None


def image_of(pool: object, name: str) -> object:
    """Open for a client that has the pool; the caller's to close."""
    return _module("rbd").Image(pool, name)


def _module(name: str) -> types.ModuleType:
    """Of Debian's packages; only where there is a cluster."""
    return importlib.import_module(name)


def _obey(cluster: CephCluster, line: str) -> str:
    command, *arguments = shlex.split(line)
    try:
        getattr(cluster, command)(*arguments)
    except Exception as error:  # pylint: disable=broad-except  # whatever it is, who asked is told
        return f"error: {type(error).__name__}: {error}"
    return "ok"


def main() -> None:
    why = missing()
    if why:
        print(f"missing: {why}", flush=True)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with CephCluster(pathlib.Path(sys.argv[1])) as cluster:
        print("ready", flush=True)
        for line in sys.stdin:
            print(_obey(cluster, line), flush=True)


if __name__ == "__main__":
    main()
