"""Small files that --buffer names: opened, written, closed and deleted with no more descriptors and writes than that takes."""
import fcntl
import os
import pathlib
import struct

import pytest
from kit import FITS, MIB, Kit, Run, expect

BUFFERED = {"SPILLWAY_BUFFER": "*.dat", "SPILLWAY_BUFFER_AFTER": "0"}
SMALL_BYTES = 16384


def _run(kit: Kit, *arguments) -> Run:
    return kit.run(kit.compile("small_files.cc", *FITS.flags), *arguments, env=FITS.environment() | BUFFERED | kit.wants_report)


def _begin(kit: Kit) -> None:
    for file in kit.place.glob("*.dat"):
        file.unlink()
    (kit.place / "old.dat").write_bytes(b"o" * SMALL_BYTES)


def _same_as_native(kit: Kit, *arguments) -> None:
    _begin(kit)
    native = kit.run(kit.compile("small_files.cc", "-O2", spillway=False), *arguments)
    _begin(kit)
    ours = _run(kit, *arguments)
    expect(native.code == 0 and (ours.code, ours.output) == (native.code, native.output),
           f"{arguments}: {ours.last_words()}\nnatively {native.last_words()}")


def _needs_direct_transfers(place: pathlib.Path) -> None:
    try:
        os.close(os.open(place / "old.dat", os.O_RDONLY | os.O_DIRECT))
    except OSError as why:
        pytest.skip(f"no direct transfers on this filesystem: {why}")


# Of the program's one each; ours comes with the first write or the first block from the disk, another one where much is written.
def test_a_file_has_no_descriptor_that_no_transfer_needs(kit: Kit) -> None:
    _begin(kit)
    _needs_direct_transfers(kit.place)
    run = _run(kit, "descriptors")
    counts = [line for line in run.output.splitlines() if "bytes" not in line]
    expect(counts == ["created 1", "written 2", "closed 0", "read from memory 1", "closed 0", "opened 1", "read from the disk 2", "much written 3", "closed 0"],
           run.last_words())


def test_contents_are_what_they_are_natively(kit: Kit) -> None:
    _same_as_native(kit, "renumbered")


def test_a_file_that_cannot_be_opened_again_is_the_kernels(kit: Kit) -> None:
    kit.place.chmod(0o777)
    for way in range(2):
        _same_as_native(kit, "refused", way)


def test_a_file_that_may_not_be_opened_again_is_written_whole(kit: Kit) -> None:
    _same_as_native(kit, "dropped")
    expect((kit.place / "old.dat").read_bytes() == b"d" * 4096 + b"o" * (8000 - 4096) + b"D" * 4096 + b"o" * (16384 - 12096) + b"\0" * (20000 - 16384) + b"e" * 4096,
           "the file has other contents")


def test_a_deleted_file_is_not_written(kit: Kit) -> None:
    written = []
    for way in range(4):
        _same_as_native(kit, "deleted", way)
        written.append(kit.report()["counters"]["store_write_bytes"])
    # What others have by then, they get: a child, who was sent the descriptor, who has a copy of it that we did not see made.
    expect(written[0] <= SMALL_BYTES, f"{written[0]} bytes were written of a file that nobody can read")
    expect(min(written[1:]) > 2 * MIB, f"not written for others: {written}")


def test_threads_append_to_files_that_they_open_and_close(kit: Kit) -> None:
    for _ in range(8):
        _same_as_native(kit, "reopened")


def test_a_descriptor_that_is_the_kernels_has_no_buffered_one_beside_it(kit: Kit) -> None:
    _same_as_native(kit, "beside")


# ext4 writes a file at once that was truncated before it is closed, as it does where a program replaces one.
def test_a_new_file_is_not_written_to_the_disk_as_it_is_closed(kit: Kit) -> None:
    for spillway in (False, True):
        run = _run(kit, "replaced") if spillway else kit.run(kit.compile("small_files.cc", "-O2", spillway=False), "replaced")
        expect(run.code == 0, run.last_words())
        waits = _awaits_its_place(kit.place / "replaced.dat")
        if not spillway and not waits:
            pytest.skip("this filesystem gives a file its place on the disk at once")
        expect(waits, "the file was given its place on the disk as it was closed")
        (kit.place / "replaced.dat").unlink()


def _awaits_its_place(path: pathlib.Path) -> bool:
    """Whether the kernel has the file's contents in memory and no place for them on the disk yet (FS_IOC_FIEMAP, FIEMAP_EXTENT_DELALLOC)."""
    header, extent = struct.Struct("=QQLLLL"), struct.Struct("=QQQQQLLLL")
    request = bytearray(header.pack(0, 1 << 40, 0, 0, 1, 0) + bytes(extent.size))
    with open(path, "rb") as file:
        try:
            fcntl.ioctl(file, 0xC020660B, request)
        except OSError:
            return False
    is_mapped = header.unpack_from(request)[3] > 0
    return is_mapped and extent.unpack_from(request, header.size)[5] & 4 != 0
