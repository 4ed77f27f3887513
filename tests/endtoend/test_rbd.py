"""Programs whose store is an image of a Ceph cluster: a real one, of this machine, as long as the test."""
import array
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from clusters import ceph_cluster, filling, goes_well, lines_of, one_line, place_for_cluster, refused, until_objects, until_written
from kit import Config, EXIT_FAILURE, HERE, Kit, MIB, MEDIUM, SMALL, TIME_LIMIT_S, expect, program_of, start

# What a store does is the same for every kind of program: most tests take one.
pytestmark = pytest.mark.engines("translated", "mapped", "unmodified")

MIB_TO_FILL = 96


def _daemons_at(place: pathlib.Path) -> list[str]:
    """The processes that have `place` in their command line."""
    found = []
    for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = command.read_bytes()
            if words.startswith(b"ceph-") and str(place).encode() in words:
                found.append(command.parent.name)
    return found


def _store(cluster: ceph_cluster.CephCluster, image: str, parameters: str = "") -> str:
    return f"rbd:rbd/{image}?conf={cluster.conf}&timeout=5{parameters}"


def _new_image(kit: Kit, cluster: ceph_cluster.CephCluster, name: str) -> str:
    """The store of an image of this test's own."""
    image = f"{name}.{kit.engine}"
    cluster.make_image(image, 512 * MIB)
    return _store(cluster, image)


def _fills(kit: Kit, store: str, *configs: Config) -> None:
    for config in configs:
        run = kit.run(kit.compile("spill.cc", *config.flags), "fill_by_threads", MIB_TO_FILL,
                      env=config.environment() | kit.wants_report | {"SPILLWAY_STORE": store})
        expect((run.code, run.output, lines_of(run.errors)) == (0, "wrong 0\n", []), f"{store} with {config}: {run.last_words()}")
        expect(kit.report()["counters"]["store_writes"] > 0, "nothing was counted")


def test_an_image_holds_what_is_spilled(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    _fills(kit, _new_image(kit, cluster, "spilled"), SMALL, MEDIUM)


@pytest.mark.engines("mapped", "unmodified")
def test_destructors_that_exit_calls_have_their_memory(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    store = _new_image(kit, cluster, "late")
    for _ in range(4):
        run = kit.run(kit.compile("late.cc", *SMALL.flags), 64, env=SMALL.environment() | {"SPILLWAY_STORE": store})
        expect((run.code, run.output, lines_of(run.errors)) == (0, "wrong 0\n", []), run.last_words())


@pytest.mark.engines("none")
def test_sort_spills_to_an_image(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    lines = kit.place / "lines"
    lines.write_text("".join(f"{(i * 7919) % 1000003:07}\n" for i in range(600_000)))
    ours = kit.run(kit.build / "bin" / "spillway", "run", "--memory", "24M", "--threshold", "1M", "--store", _new_image(kit, cluster, "sorted"),
                   "--stats", kit.report_file, "--", program_of("sort"), "--parallel=2", "--buffer-size=64M", lines)
    expect((ours.code, ours.output) == (0, kit.run(program_of("sort"), lines).output), ours.last_words())
    expect(kit.report()["counters"]["store_writes"] > 0, "nothing was spilled")


@pytest.mark.engines("translated", "mapped")
def test_many_processes_read_one_image_at_a_time(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    words = 2 << 20
    image = f"read.{kit.engine}"
    cluster.write_image(image, array.array("Q", range(0, 3 * words, 3)).tobytes())
    program = kit.compile("api.cc", "-O2", f"-I{HERE.parents[1] / 'include'}")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(start(kit, program, "reads_a_store", words, env=SMALL.environment() | {
            "STORE_TO_READ": _store(cluster, image, "&mode=read"), "SPILLWAY_STORE": str(kit.store)})) for _ in range(4)]
        for client in clients:
            output, errors = client.communicate(timeout=TIME_LIMIT_S)
            expect((client.returncode, output, lines_of(errors)) == (0, "wrong 0, unmap 0\n", []), f"{client.returncode} {output}{errors}")


@pytest.mark.engines("mapped")
def test_images_that_cannot_be_used_are_refused_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    refused(kit, "rbd:", "named rbd:POOL/IMAGE")
    refused(kit, "rbd:rbd/image?conf=/nowhere", "/nowhere cannot be read: No such file or directory", "conf=FILE")
    refused(kit, _store(cluster, "none"), "the pool has no such image", "rbd create rbd/none")
    refused(kit, f"rbd:none/none?conf={cluster.conf}", "the cluster has no pool none")
    refused(kit, _store(cluster, "none", "&id=nobody"), "cannot be connected to as client.nobody", "has a key in a keyring")
    cluster.write_image("foreign", b"precious" * (1 << 20))
    refused(kit, _store(cluster, "foreign"), "it holds data that is not Spillway's", "overwrite=yes")


@pytest.mark.engines("mapped")
def test_a_second_user_is_refused_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    store = _new_image(kit, cluster, "alone")
    with filling(kit, store) as process:
        refused(kit, store, f"process {process.pid} ", "has it as its store", "mode=read")
    store = _new_image(kit, cluster, "elsewhere")
    elsewhere = cluster.open_image(f"elsewhere.{kit.engine}")
    try:
        elsewhere.lock_acquire(0)  # as a client on another machine has it
        refused(kit, store, "the client at ", "has its lock")
    finally:
        elsewhere.close()


@pytest.mark.engines("mapped")
def test_the_image_of_a_killed_program_is_free_at_once(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    store = _new_image(kit, cluster, "killed")
    for _ in range(3):
        with filling(kit, store) as process:
            until_written(cluster, process, objects=1)
    begin = time.monotonic()
    _fills(kit, store, SMALL)
    expect(time.monotonic() - begin < 20, "the lock was waited for until the cluster noticed")


@pytest.mark.engines("mapped")
def test_an_osd_that_is_killed_in_the_middle_changes_nothing(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "osd")) as process:
        until_written(cluster, process)
        cluster.kill("osd.1")
        try:
            goes_well(process)
        finally:
            cluster.start("osd.1")
            cluster.wait_until_up(ceph_cluster.OSDS)


@pytest.mark.engines("mapped")
def test_terasort_is_right_though_an_osd_is_killed_in_the_middle(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    """It is killed when the first records have been spilled, of which all are read and written anew several times after that."""
    source, flags = "../../../examples/terasort/terasort.cc", ("-O2", "-fopenmp", "-Wno-deprecated-declarations", f"-I{HERE.parents[1] / 'examples'}")
    sort = ("--records", 600_000, "--mode", "shuffle", "--progress", "off")
    native = kit.run(kit.compile(source, *flags, spillway=False), *sort)
    expect(native.code == 0, native.last_words())
    before = cluster.objects()
    with start(kit, kit.compile(source, *flags), *sort, env=kit.wants_report | {
            "SPILLWAY_MEMORY": "24M", "SPILLWAY_STORE": f"rbd:{ceph_cluster.POOL}?conf={cluster.conf}"}) as process:
        until_objects(cluster, process, before + 6)
        cluster.kill("osd.1")
        try:
            output, errors = process.communicate(timeout=TIME_LIMIT_S)
        finally:
            cluster.start("osd.1")
            cluster.wait_until_up(ceph_cluster.OSDS)
    expect((process.returncode, lines_of(errors)) == (0, []), f"exit code {process.returncode}: {output}{errors}")
    ours, theirs = json.loads(output), json.loads(native.output)
    expect(ours["ok"] and ours["checksum"] == theirs["checksum"], f"{ours} is not {theirs}")
    expect(kit.report()["counters"]["store_reads"] > 0, "nothing was read back")


@pytest.mark.engines("mapped")
def test_a_monitor_that_is_started_again_changes_nothing(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "monitor")) as process:
        until_written(cluster, process)
        cluster.kill("mon.a")
        time.sleep(1)
        cluster.start("mon.a")
        goes_well(process)


@contextlib.contextmanager
def _stalled(cluster: ceph_cluster.CephCluster) -> Iterator[None]:
    daemons = [f"osd.{number}" for number in range(ceph_cluster.OSDS)]
    try:
        for daemon in daemons:
            cluster.stall(daemon)
        yield
    finally:
        for daemon in daemons:
            cluster.go_on(daemon)
        cluster.wait_until_up(ceph_cluster.OSDS)


@pytest.mark.engines("mapped")
def test_a_cluster_that_stalls_ends_the_program_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "stalled")) as process:
        until_written(cluster, process)
        with _stalled(cluster):
            begin = time.monotonic()
            one_line(process, EXIT_FAILURE, "Connection timed out", "the cluster has not answered for 5 s", "see that it is healthy")
            expect(4 < time.monotonic() - begin < 25, f"it took {time.monotonic() - begin} s")


@pytest.mark.engines("mapped")
def test_a_cluster_that_recovers_in_time_changes_nothing(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "recovers")) as process:
        until_written(cluster, process)
        with _stalled(cluster):
            time.sleep(1.5)
        goes_well(process)


@contextlib.contextmanager
def _full(cluster: ceph_cluster.CephCluster) -> Iterator[None]:
    try:
        cluster.set_full_ratio(0.0001, True)
        yield
    finally:
        cluster.set_full_ratio(0.95, False)


@pytest.mark.engines("mapped")
def test_a_pool_that_is_full_ends_the_program_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "full")) as process:
        with _full(cluster):
            process.stdin.write("go\n")
            process.stdin.flush()
            one_line(process, EXIT_FAILURE, "cannot write block ", "No space left on device", "rbd:rbd/full.")


@pytest.mark.engines("mapped")
def test_a_pool_that_has_room_again_is_gone_on_with(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "room"), env={"SPILLWAY_TEST_FRAME_WAIT_MS": "30000"}) as process:
        with _full(cluster):
            process.stdin.write("go\n")
            process.stdin.flush()
            time.sleep(3)
            expect(process.poll() is None, "it ended")
        goes_well(process)


@pytest.mark.engines("mapped")
def test_a_client_whose_key_is_revoked_is_refused_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    conf = cluster.add_client("lodger")
    cluster.make_image("lodgers", 512 * MIB)
    store = f"rbd:rbd/lodgers?conf={conf}&id=lodger&timeout=5"
    with filling(kit, store) as process:
        until_written(cluster, process, objects=1)
        goes_well(process)
    cluster.ask("auth rm", entity="client.lodger")
    refused(kit, store, "cannot be connected to as client.lodger")


@pytest.mark.engines("mapped")
def test_a_lock_that_another_client_breaks_ends_the_program_withone_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _new_image(kit, cluster, "broken")) as process:
        until_written(cluster, process)
        other = cluster.open_image(f"broken.{kit.engine}")
        try:
            owner = next(iter(other.lock_get_owners()))
            other.lock_break(owner["mode"], owner["owner"])
            one_line(process, EXIT_FAILURE, "another client has broken its lock")
        finally:
            other.close()


@contextlib.contextmanager
def _served_by_qemu(kit: Kit, cluster: ceph_cluster.CephCluster, image: str) -> Iterator[str]:
    """The store of an image that an NBD server has open."""
    socket, ready = cluster.place / f"{image}.socket", cluster.place / f"{image}.pid"
    with start(kit, program_of("qemu-nbd"), "-t", "-f", "raw", "-k", socket, "--pid-file", ready, f"rbd:{ceph_cluster.POOL}/{image}:conf={cluster.conf}") as server:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not ready.exists():
            if server.poll() is not None and "Unknown protocol" in (said := server.stderr.read()):
                pytest.skip(f"qemu-nbd has no rbd driver (qemu-block-extra): {said}")
            expect(server.poll() is None and time.monotonic() < deadline, f"qemu-nbd does not serve the image; exit code {server.returncode}")
            time.sleep(0.01)
        yield f"nbd+unix:///?socket={socket}"


@pytest.mark.engines("mapped")
def test_an_image_that_qemu_serves_holds_what_is_spilled(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    image = f"served.{kit.engine}"
    cluster.make_image(image, 512 * MIB)
    with _served_by_qemu(kit, cluster, image) as store:
        before = cluster.objects()
        _fills(kit, store, SMALL, MEDIUM)
        expect(cluster.objects() > before + 10, "nothing was written to the cluster")


@pytest.mark.engines("none")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_daemon_outlives_whoever_started_its_cluster(by: signal.Signals) -> None:
    with place_for_cluster() as place, subprocess.Popen([sys.executable, ceph_cluster.__file__, place], stdin=subprocess.PIPE,
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
