"""Whose a store is: devices and exports that something else uses or owns, and what becomes of a run whose files are not written whole."""
import contextlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from kit import Config, EXIT_FAILURE, EXIT_USAGE, Kit, MEDIUM, MIB, SMALL, Run, TIME_LIMIT_S, expect, start
from servers import nbd_server

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("translated", "mapped")

MIB_TO_FILL = 96
DEVICE_MIB = 256
MAGIC = b"SPILLWAY-SPILL 1\n"
ADMIN = {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}


def _tool(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | ADMIN)
    if done.returncode != 0:
        pytest.skip(f"{words[0]} does not do it here: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def _device(kit: Kit, mebibytes: int = DEVICE_MIB) -> Iterator[pathlib.Path]:
    """A block device of zeros, which is a file of this case's."""
    if os.geteuid() != 0:
        pytest.skip("making a loop device needs root")
    image = kit.place / "device.image"
    with open(image, "wb") as file:
        file.truncate(mebibytes * MIB)
    device = _tool("losetup", "--find", "--show", str(image))
    try:
        yield pathlib.Path(device)
    finally:
        subprocess.run(["losetup", "--detach", device], env=os.environ | ADMIN, check=False)


def _fill(kit: Kit, store: str, config: Config = SMALL) -> Run:
    return kit.run(kit.compile("spill.cc", *config.flags), "fill_by_threads", MIB_TO_FILL,
                   env=config.environment() | {"SPILLWAY_STORE": store})


def _expect_filled(run: Run, what: str) -> None:
    expect((run.code, run.output, run.errors) == (0, "wrong 0\n", ""), f"{what}: {run.last_words()}")


def _expect_refused(run: Run, *parts: str) -> None:
    expect(run.code == EXIT_USAGE and run.output == "" and run.errors.count("\n") == 1 and run.errors.startswith("spillway: "),
           f"not refused: {run.last_words()}")
    for part in ("--store can name another one", *parts):
        expect(part in run.errors, f"{part!r} is not in {run.errors}")


@contextlib.contextmanager
def _waiting_run(kit: Kit, store: str) -> Iterator[subprocess.Popen]:
    """A program that has the store, and fills it when it is told."""
    with start(kit, kit.compile("spill.cc", *SMALL.flags), "fill_when_told", MIB_TO_FILL,
               env=SMALL.environment() | {"SPILLWAY_STORE": store}) as process:
        line = process.stdout.readline()
        expect(line == "look\n", f"the first run did not start: {line}{process.stderr.read() if line == '' else ''}")
        yield process


def _goes_on_unharmed(process: subprocess.Popen) -> None:
    output, errors = process.communicate("go\n", timeout=TIME_LIMIT_S)
    expect((process.returncode, output, errors) == (0, "wrong 0\n", ""), f"the first run was harmed: {output}{errors}")


@pytest.mark.root
def test_a_device_is_taken_again_by_the_next_run(kit: Kit) -> None:
    with _device(kit) as device:
        for config in (SMALL, MEDIUM):
            _expect_filled(_fill(kit, f"file:{device}", config), f"{device} with {config}")
            with open(device, "rb") as file:
                begin = file.read(MIB)
            expect(begin.startswith(MAGIC) and not any(begin[4096:]), f"no header: {begin[:200]!r}")
            # Something of what was spilled is behind it.
            expect(any((kit.place / "device.image").read_bytes()[MIB:]), "nothing was spilled")


@pytest.mark.root
def test_two_runs_do_not_share_a_device(kit: Kit) -> None:
    with _device(kit) as device, _waiting_run(kit, f"file:{device}") as first:
        _expect_refused(_fill(kit, f"file:{device}"), f"file:{device}: process {first.pid} (", "has it as its store", "name a directory")
        _expect_refused(_fill(kit, f"file:{device}?overwrite=yes"), f"process {first.pid} (")
        _goes_on_unharmed(first)


@pytest.mark.root
def test_a_killed_run_gives_its_device_up(kit: Kit) -> None:
    with _device(kit) as device:
        with _waiting_run(kit, f"file:{device}") as first:
            first.kill()
            first.wait()
            _expect_filled(_fill(kit, f"file:{device}"), "when the first one is dead")


# No other program of this has as much memory as would need the device.
CHILDREN = """
mkfifo go
: >first
"$1" fill_when_told 96 <go >first 2>&1 &
first=$!
exec 3>go
until read -r line <first && [ "$line" = look ]; do sleep 0.05; done
"$1" fill 96
echo "second ended with $?"
echo go >&3
wait $first
echo "first ended with $?"
while read -r line; do last=$line; done <first
echo "$last"
"""


@pytest.mark.root
def test_a_child_of_the_run_does_not_share_its_device(kit: Kit) -> None:
    with _device(kit) as device:
        program = kit.compile("spill.cc", *SMALL.flags)
        command = kit.build / "bin" / "spillway"
        run = kit.run(command, "run", f"--store=file:{device}", "--memory=32M", "--", "sh", "-c", CHILDREN, "sh", program)
        expect(run.output == f"second ended with {EXIT_USAGE}\nfirst ended with 0\nwrong 0\n", run.last_words())
        expect(run.errors.count("\n") == 1 and "has it as its store" in run.errors and "name a directory" in run.errors, run.errors)


@pytest.mark.root
def test_a_mounted_device_is_refused(kit: Kit) -> None:
    with _device(kit) as device:
        _tool("mkfs.ext4", "-q", str(device))
        place = kit.place / "mounted here"
        place.mkdir()
        for name in (f"file:{device}", f"file:{device}?overwrite=yes"):
            run = kit.run(pathlib.Path("unshare"), "--mount", "--propagation", "private", "sh", "-c",
                          'mount "$1" "$2" && shift 2 && exec "$@"', "sh", device, place, kit.compile("spill.cc", *SMALL.flags), "fill", 96,
                          env=SMALL.environment() | ADMIN | {"SPILLWAY_STORE": name})
            if "mount:" in run.errors or "unshare:" in run.errors:
                pytest.skip(f"nothing can be mounted here: {run.errors.strip()}")
            _expect_refused(run, f"file:{device}: it is mounted at {place}")
        _tool("e2fsck", "-n", "-f", str(device))


def _unchanged(kit: Kit, device: pathlib.Path, what: str) -> None:
    image = kit.place / "device.image"
    with open(device, "r+b") as file:
        os.fsync(file.fileno())  # what the kernel has of it comes to the image whoever has it open beside us
    before = image.read_bytes()
    _expect_refused(_fill(kit, f"file:{device}"), f"file:{device}: it holds {what}", "put ?overwrite=yes behind its name")
    expect(image.read_bytes() == before, f"{what} was touched")


@pytest.mark.root
def test_a_device_that_holds_something_is_refused_unless_told(kit: Kit) -> None:
    with _device(kit) as device:
        _tool("mkfs.ext4", "-q", str(device))
        _unchanged(kit, device, "an ext2, ext3 or ext4 filesystem")
        _expect_filled(_fill(kit, f"file:{device}?overwrite=yes"), "told to overwrite")
        _expect_filled(_fill(kit, f"file:{device}"), "once more, on what is ours now")
        # Somebody else takes it over meanwhile.
        _tool("mkswap", str(device))
        _unchanged(kit, device, "swap space")
        with open(device, "r+b") as file:
            file.write(bytes(MIB))
            file.seek(700_000)
            file.write(b"diary")
        _unchanged(kit, device, "data that is not Spillway's")
        _expect_refused(_fill(kit, f"file:{device}?overwrite=perhaps"), "overwrite is yes or no")


@pytest.mark.root
def test_a_device_is_no_two_members_of_a_stripe(kit: Kit) -> None:
    with _device(kit) as device:
        _expect_refused(_fill(kit, f"striped:file:{device},file:{device}"), "this process has it as its store already")
        _expect_filled(_fill(kit, f"striped:chunk=64K,file:{device},{kit.store}"), "a device and a directory")


def test_two_runs_do_not_share_an_export(kit: Kit) -> None:
    with nbd_server(kit, "memory", "256M") as (_, store):
        with _waiting_run(kit, store) as first:
            _expect_refused(_fill(kit, store), f"process {first.pid} (", "has it as its store", "name a directory")
            _goes_on_unharmed(first)
        _expect_filled(_fill(kit, store), "when the first one is gone")


def test_an_export_that_holds_something_is_refused_unless_told(kit: Kit) -> None:
    if not shutil.which("mkfs.ext4", path=ADMIN["PATH"]):
        pytest.skip("mkfs.ext4 is not installed")
    export = kit.place / "export"
    with open(export, "wb") as file:
        file.truncate(256 * MIB)
    _tool("mkfs.ext4", "-q", str(export))
    before = export.read_bytes()
    with nbd_server(kit, "file", str(export)) as (_, store):
        _expect_refused(_fill(kit, store), "it holds an ext2, ext3 or ext4 filesystem", "put &overwrite=yes behind its name")
        expect(export.read_bytes() == before, "the export was touched")
        _expect_filled(_fill(kit, store + "&overwrite=yes"), "told to overwrite")
        _expect_filled(_fill(kit, store), "once more")


def _ends(kit: Kit, part: str, how: str) -> Run:
    files = {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"} if part == "buffered" else {"SPILLWAY_MAP_FILES": "*.dat"}
    path = kit.place / f"{part}-{how}.dat"
    return kit.run(kit.compile("ends.cc", "-O2"), part, path, how, env=SMALL.environment() | files)


def test_a_final_write_that_fails_changes_the_exit_status(kit: Kit) -> None:
    for part in ("buffered", "mapped"):
        for how, code in (*((how, EXIT_FAILURE) for how in ("return", "exit", "quick_exit", "at_once")), ("fails", 3)):
            run = _ends(kit, part, how)
            where = f"{part}, {how}: {run.last_words()}"
            expect(run.code == code, where)
            lines = run.errors.splitlines()
            expect(len(lines) == 1 and f"{part}-{how}.dat" in lines[0] and "File too large" in lines[0], where)
            # All that the program does at its end it does all the same.
            if how in ("return", "exit", "fails"):
                expect(run.output == "stored\nhandled\ndestroyed\n", where)


def test_a_store_in_memory_is_warned_of(kit: Kit) -> None:
    place = pathlib.Path("/dev/shm")
    if not place.is_mount():
        pytest.skip("there is no tmpfs at /dev/shm")
    run = kit.run(kit.compile("spill.cc", "-O2"), "fill", 1, env=SMALL.environment() | {"SPILLWAY_STORE": str(place)})
    expect(run.code == 0 and run.output == "wrong 0\n", run.last_words())
    expect(run.errors.count("\n") == 1 and run.errors.startswith(f"spillway: warning: the store directory {place} is on a tmpfs")
           and "--store" in run.errors, run.errors)
