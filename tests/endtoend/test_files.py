"""Streams, stdio and descriptors with managed buffers."""
import pytest
from kit import Kit, LARGE, MEDIUM, SMALL, UNOPTIMISED

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")

CONFIGS = (SMALL, UNOPTIMISED, MEDIUM)


def test_managed_strings_are_printed_and_parsed(kit: Kit) -> None:
    kit.same_as_native("files.cc", "print", configs=(*CONFIGS, LARGE))


def test_streams_read_and_write_managed_buffers(kit: Kit) -> None:
    kit.same_as_native("files.cc", "streams", configs=CONFIGS)


def test_stdio_reads_and_writes_managed_buffers(kit: Kit) -> None:
    kit.same_as_native("files.cc", "stdio", configs=CONFIGS)


def test_descriptors_pipes_and_sockets_take_managed_buffers(kit: Kit) -> None:
    kit.same_as_native("files.cc", "descriptors", configs=CONFIGS)


def test_what_is_read_directly_is_there_though_its_blocks_left_meanwhile(kit: Kit) -> None:
    for way in ("pread", "read", "readv", "aio"):
        kit.same_as_native("direct_reads.cc", way, configs=(SMALL,))
