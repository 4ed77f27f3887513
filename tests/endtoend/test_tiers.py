"""Programs that spill to places in order: a disk, and what comes after it."""
import re
import signal

import pytest
from clusters import filling
from kit import Kit, MIB, SMALL, TIME_LIMIT_S, expect
from servers import nbd_server
from small_filesystem import on_small_store

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("mapped")

MIB_TO_FILL = 96
SMALL_DISK_BYTES = 48 * MIB


def _on_small_disk(kit: Kit, then: str, part: str) -> str:
    """The program has a disk of SMALL_DISK_BYTES, and then another place: what its report says of its store."""
    with on_small_store(kit, "ext4", SMALL_DISK_BYTES, kit.compile("spill.cc", *SMALL.flags), part, MIB_TO_FILL,
                        env=SMALL.environment() | kit.wants_report | {"SPILLWAY_STORE": f"{kit.store},{then}"}) as process:
        output, errors = process.communicate(timeout=TIME_LIMIT_S)
        expect((process.returncode, output, errors) == (0, "wrong 0\n", ""), f"{process.returncode}: {output}{errors}")
    store = kit.report()["facts"]["store"]
    expect(", in order: spill:" in store and ", then nbd+unix:" in store, store)
    return store


def test_the_server_gets_what_the_disk_has_no_room_for(kit: Kit) -> None:
    with nbd_server(kit, "memory", "512M") as (_, store):
        said = _on_small_disk(kit, store, "fill_by_threads")
        on_disk, on_server = (int(share) for share in re.findall(r" (\d+) %", said))
        expect(20 <= on_disk <= 60 and 40 <= on_server <= 80, said)


def test_what_is_used_often_comes_back_to_the_disk(kit: Kit) -> None:
    with nbd_server(kit, "--filter=delay", "memory", "512M", "rdelay=2ms") as (_, store):
        said = _on_small_disk(kit, store, "use_the_end")
        moved = re.search(r"; (\d+) chunks moved up", said)
        expect(moved is not None and int(moved[1]) >= 10, said)


def _goes_on_without_the_server(kit: Kit, name_of_list: str) -> None:
    with nbd_server(kit, "memory", "512M") as (server, store):
        names = name_of_list.format(disk=kit.store, server=store)
        with filling(kit, names, MIB_TO_FILL, env={"SPILLWAY_TEST_FRAME_WAIT_MS": "30000"}) as process:
            server.send_signal(signal.SIGKILL)
            output, errors = process.communicate("go\n", timeout=TIME_LIMIT_S)
            expect((process.returncode, output, errors) == (0, "wrong 0\n", ""), f"{process.returncode}: {output}{errors}")


def test_a_server_that_dies_before_it_has_anything_harms_nothing(kit: Kit) -> None:
    _goes_on_without_the_server(kit, "{disk},{server}")


def test_what_the_first_place_fails_to_write_the_next_one_gets(kit: Kit) -> None:
    _goes_on_without_the_server(kit, "{server},{disk}")
