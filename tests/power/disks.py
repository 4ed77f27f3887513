"""Disks whose writes are recorded, and the same disks after a power cut at any moment of the recording."""
import bisect
import contextlib
import ctypes
import dataclasses
import fcntl
import mmap
import os
import pathlib
import random
import struct
import subprocess
import time
from collections.abc import Iterator

SECTOR_BYTES = 4096
JOURNAL_MIB = 4
WRITTEN, FLUSHED, SAID = 1, 2, 3
HEAD = struct.Struct("<QQQ")
BLKFLSBUF = 0x1261
MS_NOATIME, MNT_DETACH = 1024, 2
WAIT_S = 10
_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """What such a disk needs is not to be had here."""


@dataclasses.dataclass(frozen=True)
class Record:
    kind: int
    offset: int  # on the disk, bytes
    data: bytes


def read_log(path: pathlib.Path) -> list[Record]:
    """In the order in which it happened. A record that is cut off at the end did not."""
    content, at, records = path.read_bytes(), 0, []
    while at + HEAD.size <= len(content):
        kind, offset, size = HEAD.unpack_from(content, at)
        at += HEAD.size
        if at + size > len(content):
            break
        records.append(Record(kind, offset, content[at:at + size]))
        at += size
    return records


def mount(device: str, directory: pathlib.Path) -> None:
    if _libc.mount(device.encode(), bytes(directory), b"ext4", MS_NOATIME, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mounting {device}: {os.strerror(error)}")


def unmount(directory: pathlib.Path) -> None:
    """Nobody may have anything open there; who has just been killed may have for a moment."""
    end = time.monotonic() + WAIT_S
    while _libc.umount2(bytes(directory), 0) != 0:
        error = ctypes.get_errno()
        if time.monotonic() > end:
            _libc.umount2(bytes(directory), MNT_DETACH)
            raise OSError(error, f"unmounting {directory}: {os.strerror(error)}")
        time.sleep(0.005)


@contextlib.contextmanager
def loop_device(file: pathlib.Path) -> Iterator[str]:
    """A device of 4 KiB sectors. It is gone with its last user, also when this process is killed."""
    made = subprocess.run(["losetup", "--find", "--show", "--sector-size", str(SECTOR_BYTES), file], capture_output=True, text=True)
    if made.returncode != 0:
        raise Unavailable(f"no loop device: {made.stderr.strip()}")
    device = made.stdout.strip()
    held = os.open(device, os.O_RDONLY)
    subprocess.run(["losetup", "--detach", device], check=True)
    try:
        yield device
    finally:
        os.close(held)


@contextlib.contextmanager
def recording(program: pathlib.Path, log: pathlib.Path, scratch: pathlib.Path, size_bytes: int) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """(a directory of an ext4 on a disk whose writes are recorded, the file for what is said); the log is whole afterwards."""
    served, mounted = scratch / "served", scratch / "mounted"
    for directory in (served, mounted):
        directory.mkdir(exist_ok=True)
    disk = subprocess.Popen([program, log, served, str(size_bytes)], stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + WAIT_S
        while not (served / "disk").exists():
            if disk.poll() is not None or time.monotonic() > end:
                disk.kill()
                raise Unavailable(f"no disk by FUSE: {disk.stderr.read().strip()}")
            time.sleep(0.005)
        with loop_device(served / "disk") as device:
            subprocess.run(["mkfs.ext4", "-q", "-b", "4096", "-m", "0", "-J", f"size={JOURNAL_MIB}", "-E",
                            "lazy_itable_init=0,nodiscard", device], check=True)
            mount(device, mounted)
            try:
                yield mounted, served / "said"
            finally:
                unmount(mounted)
    finally:
        if disk.poll() is None:
            unmount(served)  # once the device has let go of its file
        disk.wait(WAIT_S)


class Replay:
    """The disk as a power cut leaves it. What was written before the last flush is there; of what came later any sector may be
    there, be as before, or be as a write between left it. `lag`: of a disk that lies, by how many flushes what is there for good is behind."""

    def __init__(self, records: list[Record], image: pathlib.Path, size_bytes: int, lag: int = 0) -> None:
        self.records = records
        self._flushes = [i for i, record in enumerate(records) if record.kind == FLUSHED]
        self._lag = lag
        self._base = bytearray(size_bytes)  # what is on the disk for good
        self._applied = 0                   # records that are in it
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        with open(image, "r+b") as file:
            self._image = mmap.mmap(file.fileno(), size_bytes)
        self._said = b""                    # by then
        self.said = b""                     # before the cut

    def cut(self, at: int, keeps: float, dice: random.Random) -> None:
        """Before record `at`, which is not before that of an earlier call. `keeps`: how many of the sectors are, of those that may be."""
        over = bisect.bisect_left(self._flushes, at) - 1 - self._lag
        flushed = max(self._applied, self._flushes[over] if over >= 0 else 0)
        for record in self.records[self._applied:flushed]:
            self._apply(record)
        self._applied = flushed
        self._image[:] = self._base
        pending = self.records[flushed:at]
        self.said = self._said + b"".join(record.data for record in pending if record.kind == SAID)
        for record in pending:
            if record.kind == WRITTEN:
                self._write_some(record, keeps, dice)

    def _apply(self, record: Record) -> None:
        if record.kind == WRITTEN:
            self._base[record.offset:record.offset + len(record.data)] = record.data
        elif record.kind == SAID:
            self._said += record.data

    def _write_some(self, record: Record, keeps: float, dice: random.Random) -> None:
        for at in range(0, len(record.data), SECTOR_BYTES):
            if dice.random() < keeps:
                sector = record.data[at:at + SECTOR_BYTES]
                self._image[record.offset + at:record.offset + at + len(sector)] = sector

    @contextlib.contextmanager
    def mounted(self, device: str, directory: pathlib.Path) -> Iterator[None]:
        """The filesystem that is on the image after the last cut(); `device` stands on the image."""
        with open(device, "rb") as opened:
            fcntl.ioctl(opened, BLKFLSBUF)  # what it remembers of the image before
        mount(device, directory)
        try:
            yield
        finally:
            unmount(directory)
