"""Programs that spill to stores other than a directory: several files, several stores at once, servers, and servers that die."""
import array
import contextlib
import pathlib
import re
import signal
import subprocess
import time

import pytest
from kit import Config, EXIT_FAILURE, EXIT_USAGE, HERE, Kit, MEDIUM, MIB, SMALL, TIME_LIMIT_S, UNOPTIMISED, Wrong, expect, program_of, start
from servers import nbd_server

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("translated", "mapped")

MIB_TO_FILL = 96
# A store that fails to be written is waited for, in case it recovers.
SHORT_WAIT = {"SPILLWAY_TEST_FRAME_WAIT_MS": "1000"}


def _expect_started(process: subprocess.Popen) -> None:
    if process.stdout.readline() != "look\n":
        raise Wrong(f"the program did not start: {process.communicate(timeout=TIME_LIMIT_S)[1]}")


def _fills(kit: Kit, store: str, *configs: Config) -> None:
    for config in configs:
        run = kit.run(kit.compile("spill.cc", *config.flags), "fill_by_threads", MIB_TO_FILL,
                      env=config.environment() | kit.wants_report | {"SPILLWAY_STORE": store})
        expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{store} with {config}: {run.last_words()}")
        expect(kit.report()["counters"]["store_writes"] > 0, "nothing was counted")


def test_a_sparse_store_holds_what_is_spilled_and_leaves_nothing(kit: Kit) -> None:
    _fills(kit, f"sparse:{kit.store}?size=1G&segment=8M", SMALL, UNOPTIMISED, MEDIUM)
    expect(not list(kit.store.iterdir()), f"left behind: {list(kit.store.iterdir())}")


def test_directories_and_sparse_stores_are_striped(kit: Kit) -> None:
    other = kit.place / "other"
    other.mkdir()
    _fills(kit, f"striped:chunk=64K,{kit.store},sparse:{other}?size=1G&segment=16M,{kit.place}", SMALL, MEDIUM)


def test_an_nbd_server_holds_what_is_spilled(kit: Kit) -> None:
    with nbd_server(kit, "memory", "512M") as (_, store):
        _fills(kit, store, SMALL, MEDIUM)


def test_a_striped_store_of_a_server_and_a_directory(kit: Kit) -> None:
    with nbd_server(kit, "memory", "256M") as (_, store):
        _fills(kit, f"striped:{store},{kit.store}", SMALL)


def _shares(kit: Kit) -> list[int]:
    """Of the latest run with a report, in per cent, in the order of the stores."""
    return [int(share) for share in re.findall(r" (\d+) %", kit.report()["facts"]["store"])]


def test_a_list_of_places_is_used_at_the_same_time(kit: Kit) -> None:
    other = kit.place / "a,b"
    other.mkdir()
    _fills(kit, f"{kit.store},{kit.place}/a%2Cb", SMALL, UNOPTIMISED, MEDIUM)
    first, second = _shares(kit)
    expect(20 <= first <= 80 and first + second in (99, 100, 101), f"{kit.report()['facts']['store']}")
    _fills(kit, str(other), SMALL)
    expect(kit.report()["facts"]["store"].startswith(f"spill:{other} ("), "a directory with a comma is one place")
    for guard in ("CHECKSUMS", "ENCRYPT"):
        run = kit.run(kit.compile("spill.cc", *SMALL.flags), "fill_by_threads", MIB_TO_FILL, env=SMALL.environment() | {
            "SPILLWAY_STORE": f"{kit.store},{kit.place}", f"SPILLWAY_{guard}": "on"})
        if "libIPSec_MB" in run.errors:
            pytest.skip(run.errors)
        expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{guard}: {run.last_words()}")


def test_a_slow_server_gets_little_and_a_small_one_no_more_than_it_has_room_for(kit: Kit) -> None:
    with nbd_server(kit, "--filter=delay", "memory", "512M", "rdelay=20ms", "wdelay=20ms") as (_, slow):
        _fills(kit, f"striped:{slow},{kit.store}", SMALL)
        slow_share, fast_share = _shares(kit)
        expect(slow_share < fast_share / 2, f"{kit.report()['facts']['store']}")
    with nbd_server(kit, "memory", "8M") as (_, small):
        _fills(kit, f"striped:{kit.store},{small}", SMALL)
        expect(_shares(kit)[1] < 15, f"{kit.report()['facts']['store']}")


@pytest.mark.engines("mapped", "unmodified", "threads")
def test_forked_children_go_on_with_several_directories(kit: Kit) -> None:
    other = kit.place / "other"
    other.mkdir()
    for part, argument in (("both_change", 3), ("generations", 5), ("allocates", 0), ("kills", 10)):
        kit.same_as_native("forks.cc", part, argument, configs=(SMALL,), env={"SPILLWAY_STORE": f"{kit.store},{other}"})


@pytest.mark.engines("none")
def test_sort_spills_to_two_directories(kit: Kit) -> None:
    other = kit.place / "other"
    other.mkdir()
    lines = kit.place / "lines"
    lines.write_text("".join(f"{(i * 7919) % 1000003:07}\n" for i in range(3_000_000)))
    command = (kit.build / "bin" / "spillway", "run", "--memory", "24M", "--threshold", "1M", "--store", f"{kit.store.relative_to(kit.place)},{other}",
               "--stats", kit.report_file, "--", program_of("sort"), "--parallel=2", "--buffer-size=128M", lines)
    ours = kit.run(*command)
    expect((ours.code, ours.output) == (0, kit.run(program_of("sort"), lines).output), ours.last_words())
    store = kit.report()["facts"]["store"]
    expect(f"spill:{kit.store} (" in store and f"spill:{other} (" in store, store)
    expect(min(_shares(kit)) > 15, store)


def _one_line(kit: Kit, process: subprocess.Popen, code: int, *parts: str) -> None:
    output, errors = process.communicate(timeout=TIME_LIMIT_S)
    expect(process.returncode == code and errors.count("\n") == 1 and errors.startswith("spillway: "),
           f"exit code {process.returncode}: {output}{errors}")
    for part in parts:
        expect(part in errors, f"{part!r} is not in {errors}")


def _dies_in_the_middle(process: subprocess.Popen, server: subprocess.Popen, export: pathlib.Path) -> None:
    """The program is told to go on, and the server of `export` is killed once something has been written there."""
    before = export.stat().st_mtime_ns
    process.stdin.write("go\n")
    process.stdin.flush()
    deadline = time.monotonic() + TIME_LIMIT_S
    while export.stat().st_mtime_ns == before:
        expect(process.poll() is None and time.monotonic() < deadline, f"nothing was written to the server; exit code {process.returncode}")
        time.sleep(0.01)
    server.send_signal(signal.SIGKILL)


def test_a_server_that_dies_ends_the_program_with_one_line(kit: Kit) -> None:
    export = kit.place / "export"
    for config in (SMALL, UNOPTIMISED):
        with open(export, "wb") as file:
            file.truncate(512 * MIB)
        with nbd_server(kit, "file", str(export)) as (server, store):
            with start(kit, kit.compile("spill.cc", *config.flags), "fill_when_told", 400,
                       env=config.environment() | SHORT_WAIT | {"SPILLWAY_STORE": store}) as process:
                _expect_started(process)
                _dies_in_the_middle(process, server, export)
                _one_line(kit, process, EXIT_FAILURE, "nbd+unix:///?socket=", "the connection broke",
                          "see that the server runs, then start the program again")


def test_two_servers_are_striped_and_the_death_of_one_harms_nothing_of_the_other(kit: Kit) -> None:
    # Two exports of files, so that what a server leaves behind can be looked at.
    exports = [kit.place / "first", kit.place / "second"]
    for export in exports:
        with open(export, "wb") as file:
            file.truncate(512 * MIB)
    with nbd_server(kit, "file", str(exports[0])) as (_, survivor), nbd_server(kit, "file", str(exports[1])) as (dying, other):
        _fills(kit, f"striped:chunk=64K,{survivor},{other}", SMALL)
        written = [export.stat().st_blocks for export in exports]
        with start(kit, kit.compile("spill.cc", *SMALL.flags), "fill_when_told", 600,
                   env=SMALL.environment() | SHORT_WAIT | {"SPILLWAY_STORE": f"striped:chunk=64K,{survivor},{other}"}) as process:
            _expect_started(process)
            _dies_in_the_middle(process, dying, exports[1])
            _one_line(kit, process, EXIT_FAILURE, "member 2 of 2 of a striped store", "the connection broke")
        expect(all(written), f"not both servers were written to: {written}")
        expect([export.stat().st_size for export in exports] == [512 * MIB] * 2, "an export changed its size")
        _fills(kit, survivor, SMALL)  # it serves the next program as if nothing had been


def test_many_processes_read_one_export_at_a_time(kit: Kit) -> None:
    words = 2 << 20
    export = kit.place / "export"
    export.write_bytes(array.array("Q", range(0, 3 * words, 3)).tobytes())
    program = kit.compile("api.cc", "-O2", f"-I{HERE.parents[1] / 'include'}")
    with nbd_server(kit, "-r", "file", str(export)) as (_, store), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(start(kit, program, "reads_a_store", words, env=SMALL.environment() | {
            "STORE_TO_READ": store, "SPILLWAY_STORE": str(kit.store)})) for _ in range(6)]
        for client in clients:
            output, errors = client.communicate(timeout=TIME_LIMIT_S)
            expect((client.returncode, output, errors) == (0, "wrong 0, unmap 0\n", ""), f"{client.returncode} {output}{errors}")


def _refused(kit: Kit, store: str, *parts: str) -> None:
    with start(kit, kit.compile("spill.cc", "-O2"), "fill", 1, env=SMALL.environment() | {"SPILLWAY_STORE": store}) as process:
        _one_line(kit, process, EXIT_USAGE, "--store", *parts)


def test_stores_that_cannot_be_used_are_refused_with_one_line(kit: Kit) -> None:
    file = kit.place / "file"
    file.write_bytes(b"precious")
    _refused(kit, f"file:{file}", "would overwrite this file")
    expect(file.read_bytes() == b"precious", "the file was touched")
    _refused(kit, "nbd+unix:///?socket=/nowhere", "cannot be connected to", "see that the server runs there")
    _refused(kit, "tape:/dev/st0", "tape:/dev/st0")
    _refused(kit, f"sparse:{kit.store}?size=1M", "it has 1.0 MiB, and at least 64.0 MiB are needed")
    _refused(kit, f"sparse:{kit.place}/none?size=1G", f"{kit.place}/none", "No such file or directory")
    _refused(kit, f"striped:{kit.store}", "has 2 to 16 members")
    _refused(kit, f"{kit.store},/nowhere/at/all", "the store directory /nowhere/at/all: it does not exist")
    _refused(kit, f"{kit.store},{file}", f"the store directory {file}: it is not a directory")
    _refused(kit, f"{kit.store},nbd+unix:///?socket=/nowhere", "cannot be connected to")
    for list_, why in ((f"{kit.store},,{kit.place}", "a comma with no name before or behind it"), (f"{kit.store},", "a comma with no name"),
                       (",".join([str(kit.store)] * 17), "17 places; accepted: up to 16")):
        with start(kit, kit.compile("spill.cc", "-O2"), "fill", 1, env=SMALL.environment() | {"SPILLWAY_STORE": list_}) as process:
            _one_line(kit, process, EXIT_USAGE, f"SPILLWAY_STORE={list_}: ", why)
    with nbd_server(kit, "-r", "memory", "128M") as (_, store):
        _refused(kit, store, "the export is read-only")
