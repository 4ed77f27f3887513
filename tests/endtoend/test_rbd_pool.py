"""Programs that spill to an image that is made for them in a pool of a Ceph cluster: it is theirs, and gone when they are."""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest
from clusters import ceph_cluster, filling, goes_well, lines_of, one_line, refused, until_written
from kit import EXIT_FAILURE, Kit, MIB, SMALL, TIME_LIMIT_S, expect, start

pytestmark = pytest.mark.engines("mapped")

PREFIX = "spillway.spill."
# Where nobody runs, as far as this machine knows.
ELSEWHERE = f"{PREFIX}{17:016x}."


def _pool(cluster: ceph_cluster.CephCluster, parameters: str = "") -> str:
    return f"rbd:{ceph_cluster.POOL}?conf={cluster.conf}&timeout=5{parameters}"


def _spilled(cluster: ceph_cluster.CephCluster) -> list[str]:
    return [name for name in cluster.images() if name.startswith(PREFIX)]


def _removers(cluster: ceph_cluster.CephCluster, image: str = "") -> list[int]:
    """Those that wait for the end of a program that has an image in this cluster, or this one, or remove what others have left."""
    found = []
    for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = command.read_bytes().split(b"\0")
            if len(words) > 2 and words[1] == b"remove-at-end" and str(cluster.conf).encode() in words[2] and image.encode() in words[3]:
                found.append(int(command.parent.name))
    return found


def _until(what: str, is_so) -> None:
    deadline = time.monotonic() + TIME_LIMIT_S
    while not is_so():
        expect(time.monotonic() < deadline, what)
        time.sleep(0.01)


def _until_gone(cluster: ceph_cluster.CephCluster) -> None:
    _until("the image is still there", lambda: not _spilled(cluster))
    _until("who removes it is still there", lambda: not _removers(cluster))


def _check(kit: Kit, store: str) -> tuple[int, list[str]]:
    done = kit.run(kit.build / "bin" / "spillway", "check", store)
    expect(done.errors == "", done.last_words())
    return done.code, done.output.splitlines()


def _kill_with_remover(cluster: ceph_cluster.CephCluster, process: subprocess.Popen, image: str = "") -> None:
    """As when the machine is gone: nobody is left who would remove its image. Nor is anybody in the middle of removing one."""
    _until("what others have left is still being removed", lambda: len(_removers(cluster, image)) == 1)
    os.kill(_removers(cluster, image)[0], signal.SIGKILL)
    process.kill()
    process.wait()


@contextlib.contextmanager
def _image_elsewhere(cluster: ceph_cluster.CephCluster) -> Iterator[str]:
    """Of a client that lives on another machine, as far as this one can tell, and has its lock."""
    with cluster.another_client() as (client, pool):
        name = f"{ELSEWHERE}{client.get_instance_id()}"
        cluster.make_image(name, 64 * MIB)
        with ceph_cluster.image_of(pool, name) as image:
            image.metadata_set("spillway.spill", "process 1 (other) on elsewhere")
            image.lock_acquire(0)
            yield name


@pytest.mark.engines("translated", "mapped", "unmodified")
def test_an_image_is_made_and_locked_and_gone_at_the_end(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _pool(cluster, "&size=512M")) as process:
        until_written(cluster, process)
        (name,) = _spilled(cluster)
        with cluster.open_image(name) as image:
            expect(image.size() == 512 * MIB, f"it has {image.size()} bytes")
            expect(len(list(image.lock_get_owners())) == 1, "nobody has its lock")
            expect(image.metadata_get("spillway.spill").startswith(f"process {process.pid} ("), image.metadata_get("spillway.spill"))
        goes_well(process)
    _until_gone(cluster)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV])
def test_the_image_of_a_program_that_a_signal_ends_is_gone(kit: Kit, cluster: ceph_cluster.CephCluster, by: signal.Signals) -> None:
    with filling(kit, _pool(cluster)) as process:
        until_written(cluster, process, objects=1)
        process.send_signal(by)
        expect(process.wait(TIME_LIMIT_S) == -by, f"exit code {process.returncode}")
        _until_gone(cluster)


def test_the_image_of_a_program_that_leaves_at_once_is_gone(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with start(kit, kit.compile("spill.cc", *SMALL.flags), "fill_and_leave", 64,
               env=SMALL.environment() | {"SPILLWAY_STORE": _pool(cluster)}) as process:
        output, errors = process.communicate("go\n", timeout=TIME_LIMIT_S)
    expect((process.returncode, lines_of(errors)) == (7, []), f"exit code {process.returncode}: {output}{errors}")
    _until_gone(cluster)


def test_the_image_of_a_program_that_cannot_go_on_is_gone(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _pool(cluster)) as process:
        until_written(cluster, process)
        (name,) = _spilled(cluster)
        with cluster.open_image(name) as image:
            owner = next(iter(image.lock_get_owners()))
            image.lock_break(owner["mode"], owner["owner"])
        one_line(process, EXIT_FAILURE, "another client has broken its lock", f"rbd:rbd/{name}")
    _until_gone(cluster)


def test_nobody_who_waits_for_the_program_waits_for_who_removes_its_image(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    """It holds no pipe of the program's, is not in its session, and no child of it."""
    with filling(kit, _pool(cluster)) as process:
        _until("what others have left is still being removed", lambda: len(_removers(cluster)) == 1)
        (remover,) = _removers(cluster)
        facts = pathlib.Path(f"/proc/{remover}/stat").read_text().rpartition(")")[2].split()
        expect(int(facts[1]) != process.pid and int(facts[3]) == remover, f"parent {facts[1]}, session {facts[3]}")
        streams = [os.readlink(f"/proc/{remover}/fd/{number}") for number in range(3)]
        expect(streams == ["/dev/null"] * 3, str(streams))
        held = [os.readlink(each) for each in pathlib.Path(f"/proc/{remover}/fd").iterdir()]
        expect(not [each for each in held if each.startswith("pipe:") or each.startswith("socket:")], str(held))
        until_written(cluster, process, objects=1)
        goes_well(process)
    _until_gone(cluster)


def test_several_programs_spill_to_one_pool_at_a_time(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(filling(kit, _pool(cluster), mebibytes=48)) for _ in range(4)]
        expect(len(_spilled(cluster)) == 4, str(_spilled(cluster)))
        for process in processes:
            _go(process)
        for process in processes:
            goes_well(process)
    _until_gone(cluster)


def _go(process: subprocess.Popen) -> None:
    process.stdin.write("go\n")
    process.stdin.flush()


def _next_start_removes_all(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _pool(cluster), mebibytes=32) as process:
        _until("images are left behind", lambda: len(_spilled(cluster)) == 1)
        _go(process)
        goes_well(process)
    _until_gone(cluster)


def test_the_next_start_removes_what_is_left_when_nobody_was_there_to(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    for _ in range(3):
        with filling(kit, _pool(cluster)) as process:
            _go(process)
            time.sleep(0.1)
            _kill_with_remover(cluster, process)
    expect(len(_spilled(cluster)) == 1, f"the last one alone should be left: {_spilled(cluster)}")
    _next_start_removes_all(kit, cluster)


def _kill_at_random(kit: Kit, cluster: ceph_cluster.CephCluster, kills: int) -> None:
    """From the start of a program on."""
    chance = random.Random(kills)
    program = kit.compile("spill.cc", *SMALL.flags)
    left = 0
    for _ in range(kills):
        with start(kit, program, "fill", 64, env=SMALL.environment() | {"SPILLWAY_STORE": _pool(cluster)}) as process:
            time.sleep(chance.uniform(0, 0.5))
            process.kill()
            process.wait()
        left += len(_spilled(cluster)) > 0
    expect(left > 0, "none was killed while it had an image")


def test_kills_at_any_moment_leave_no_image_behind(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    _kill_at_random(kit, cluster, 6)
    _next_start_removes_all(kit, cluster)


def test_check_removes_what_is_left_behind_and_nothing_that_is_in_use(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _pool(cluster)) as killed:
        (dead,) = _spilled(cluster)
        with filling(kit, _pool(cluster), mebibytes=32) as process:
            (living,) = set(_spilled(cluster)) - {dead}
            code, lines = _check(kit, _pool(cluster))
            expect(code == 0 and lines[-1] == "rbd:rbd: 0 removed, 2 in use", str(lines))
            until_written(cluster, killed, objects=1)
            _kill_with_remover(cluster, killed, dead)
            code, lines = _check(kit, _pool(cluster))
            expect(code == 0 and lines[-1] == "rbd:rbd: 1 removed, 1 in use", str(lines))
            expect(any(line.startswith(f"removed {dead} of process {killed.pid} (") for line in lines), str(lines))
            expect(any(line.startswith(f"in use {living}: process {process.pid} (") for line in lines), str(lines))
            expect(_spilled(cluster) == [living], str(_spilled(cluster)))
            _go(process)
            goes_well(process)
        _until("an image is left", lambda: not _spilled(cluster))
    expect(_check(kit, _pool(cluster)) == (0, ["rbd:rbd: 0 removed, 0 in use"]), "there is something")


def test_images_of_others_stay_whatever_they_are_called(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    for name in ("precious", f"{PREFIX}notes", f"{ELSEWHERE}1"):
        cluster.write_image(name, b"precious" * 1000)
    code, lines = _check(kit, _pool(cluster))
    expect(code == 0 and lines == [f"kept {ELSEWHERE}1: it is not Spillway's, in spite of its name", "rbd:rbd: 0 removed, 0 in use"], str(lines))
    with filling(kit, _pool(cluster), mebibytes=32) as process:
        _go(process)
        goes_well(process)
    _until("an image is left", lambda: len(_spilled(cluster)) == 2)
    for name in ("precious", f"{PREFIX}notes", f"{ELSEWHERE}1"):
        with cluster.open_image(name) as image:
            expect(image.read(0, 8) == b"precious", "it was changed")
        cluster.remove_image(name)


def test_an_image_in_use_on_another_machine_stays_until_its_client_is_gone(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with _image_elsewhere(cluster) as name:
        code, lines = _check(kit, _pool(cluster))
        expect(code == 0 and lines == [f"in use {name}: the client of process 1 (other) on elsewhere is connected to the cluster",
                                       "rbd:rbd: 0 removed, 1 in use"], str(lines))
    code, lines = _check(kit, _pool(cluster))
    expect(code == 0 and lines == [f"removed {name} of process 1 (other) on elsewhere", "rbd:rbd: 1 removed, 0 in use"], str(lines))


def test_an_image_that_somebody_looks_at_stays_until_he_is_done(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    with filling(kit, _pool(cluster)) as process:
        (name,) = _spilled(cluster)
        with cluster.open_image(name):
            _kill_with_remover(cluster, process)
            code, lines = _check(kit, _pool(cluster))
            expect(code == 0 and lines[0] == f"in use {name}: a client of the cluster has it open", str(lines))
    code, lines = _check(kit, _pool(cluster))
    expect(code == 0 and lines[-1] == "rbd:rbd: 1 removed, 0 in use", str(lines))


def test_pools_that_cannot_be_used_are_refused_with_one_line(kit: Kit, cluster: ceph_cluster.CephCluster) -> None:
    refused(kit, f"rbd:none?conf={cluster.conf}", "the cluster has no pool none")
    refused(kit, _pool(cluster, "&mode=read"), "mode is for an image that there is")
    refused(kit, _pool(cluster, "&size=1K"), "at least 64.0 MiB are needed")
    refused(kit, _pool(cluster, "&size=many"), "size has to be a size such as 64M")
    refused(kit, _pool(cluster, "&id=nobody"), "cannot be connected to as client.nobody")
    for wrong, why in ((f"rbd:none?conf={cluster.conf}", "the cluster has no pool none"), (_pool(cluster).replace("?", "/image?"), "a pool is checked")):
        done = kit.run(kit.build / "bin" / "spillway", "check", wrong)
        expect(done.code == 2 and done.output == "" and done.errors.count("\n") == 1 and why in done.errors, done.last_words())
    _until_gone(cluster)
