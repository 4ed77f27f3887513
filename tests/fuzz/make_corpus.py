#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: make_corpus.py. Those that begin with `found-` are inputs of bugs that were found."""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"

REPORT = {
    "schema": 1,
    "facts": {"program": "./sort", "process": 7, "engine": "translated", "store": "file:/mnt", "block_bytes": 4096,
              "memory_cap_bytes": 1 << 30, "frames": 1000, "frames_peak": 900, "metadata_bytes": 4096, "watched": True,
              "resident_peak_bytes": 1 << 30, "wall_seconds": 2.5, "processor_seconds": 1.5, "faults_by": "signals",
              "misses": {"count": 9, "p50_ns": 8, "p99_ns": 9, "p999_ns": 9, "worst_ns": 10}},
    "curve": [{"memory_bytes": 4096, "reads": 10}, {"memory_bytes": 8192, "reads": 5}],
    "areas": [{"name": "a", "object": "/bin/sort", "offset": 16, "bytes": 4096, "curve": [{"memory_bytes": 4096, "reads": 3}]}],
    "foreign": [{"library": "libz.so", "function": "crc32", "faults": 700}],
    "warnings": ["something was slow"],
    "counters": {"private_hits": 3, "private_misses": 1, "store_write_bytes": 8192, "bytes_dirtied": 4096},
}

ENVIRONMENTS = {
    "usual": "SPILLWAY_MEMORY=4G\nSPILLWAY_STORE=/mnt/nvme\nSPILLWAY_BLOCK=64K\nSPILLWAY_STATS=run.%p.json\nTMPDIR=tmp",
    "auto": "SPILLWAY_MEMORY=auto\nSPILLWAY_BLOCK=auto\nSPILLWAY_ENGINE=mapped\nSPILLWAY_MAP_FILES=*.idx:*.npy\nSPILLWAY_QUOTA=1.5g",
    "marks": "SPILLWAY_LOW_WATERMARK=5\nSPILLWAY_HIGH_WATERMARK=4\nSPILLWAY_MEMROY=1\nSPILLWAY_POLICY=./mine.so",
    "umap": "UMAP_PAGESIZE=65536\nUMAP_BUFSIZE=4096\nUMAP_PAGE_FILLERS=3\nUMAP_EVICT_HIGH_WATER_THRESHOLD=95\n"
            "UMAP_EVICT_LOW_WATER_THRESHOLD=60\nUMAP_READ_AHEAD=8\nUMAP_PAGE_EVICTORS=2",
    "both": "UMAP_PAGESIZE=4096\nUMAP_BUFSIZE=7\nSPILLWAY_BLOCK=2M\nSPILLWAY_LOW_WATERMARK=5\nfixed:8\nsc:64\nbest",
    "metrics": "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\n[::1]:9464\n"
               "localhost:0\n/run/metrics.sock\n127.0.0.1",
}

NAMES = ["memory:1M", "memory:1.5MiB", "sparse:/mnt/a?segment=64M&size=1G&mode=open", "nbd://host:10809/export%20name?timeout=5&connections=2",
         "nbd+unix:///disk?socket=/tmp/%73", "//[::1]:9/x?timeout=30", "///x?socket=/tmp/s", "striped:chunk=256K,memory:1M,memory:2M",
         "striped:striped:memory:1M%2Cmemory:1M,memory:3M", "read:5:EIO,write:3+:ENOSPC,short:2,read:1+:delay:500", "sync:1:EIO:x3,write:2:torn"]


def header(index: int, value: int) -> bytes:
    return struct.pack("<BBQ", 0, index, value)


def chunk(index: int, kind: int, size_class: int = 0, chunks: int = 0) -> bytes:
    return struct.pack("<BBQ", 1, index, kind | size_class << 8 | chunks << 16)


def slot(number: int, section: int) -> bytes:
    return struct.pack("<BBH", 2, number, section)


def root(index: int, name: bytes, offset: int) -> bytes:
    return struct.pack("<BBB", 3, index, len(name)) + name + struct.pack("<Q", offset)


def record(number: int, kind: int, section: int, stamp: int, offset: int, payload: bytes) -> bytes:
    return struct.pack("<BBBHBQB", 4, number, kind, section, stamp, offset, len(payload)) + payload


def log_at(offset: int) -> bytes:
    return struct.pack("<BI", 5, offset)


def raw(offset: int, data: bytes) -> bytes:
    return struct.pack("<BIB", 6, offset, len(data)) + data


def length(file_bytes: int, whole_header: int = 0) -> bytes:
    return struct.pack("<BIB", 8, file_bytes, whole_header)


def states(index: int, allocated: int) -> bytes:
    return struct.pack("<BBH", 7, index, allocated)


# Where the parts of the target's file lie.
LOGS, HEAP, CHUNK = 24576, 65536, 65536
REGIONS = {
    "whole-memory": b"\0", "whole-blocks": b"\2", "crashed-memory": b"\1", "crashed-blocks": b"\3",
    "other-header": b"\0" + header(3, 18 << 40) + header(4, 1 << 19) + header(10, HEAP),
    "other-chunks": b"\2" + chunk(4, 4, 0, 2) + chunk(5, 3) + chunk(6, 2, 0, 1) + states(6, 0) + chunk(2, 1, 3, 1) + states(2, 5),
    "other-roots": b"\2" + root(0, b"another", HEAP + 64) + root(9, b"\x1b[2Jx", 5),
    "records": b"\0" + slot(0, 3) + log_at(LOGS) + record(0, 1, 4, 9, HEAP + 64, b"old bytes") + record(0, 2, 4, 9, 0, struct.pack("<QQ", 1, 2))
               + record(0, 3, 4, 9, 0, b"") + log_at(LOGS + 4096) + record(1, 1, 2, 3, HEAP, b"1"),
    "jump": b"\2" + chunk(6, 4, 0, 1) + slot(0, 0) + log_at(LOGS) + record(0, 4, 1, 1, HEAP + 6 * CHUNK, b"") + log_at(HEAP + 6 * CHUNK)
            + record(0, 1, 1, 2, HEAP + 64, b"12345678") + record(0, 3, 1, 2, 0, b""),
    "cut": b"\0" + length(HEAP + 3 * CHUNK),
    "cut-in-the-header": b"\0" + length(1000),
    "raw": b"\1" + raw(LOGS + 20, b"\xff") + raw(HEAP + CHUNK, b"\7"),
    "found-record-of-the-header": b"\2" + slot(0, 0) + log_at(LOGS) + record(0, 1, 1, 1, 40, struct.pack("<QQ", 1, 2)),
    "found-offsets-outside": b"\0" + header(7, 1 << 60) + header(8, 1 << 61),
    "found-unknown-kind": b"\2" + chunk(3, 9, 0, 1),
    "found-large-of-none": b"\2" + chunk(6, 2, 0, 0),
    "found-base-is-nowhere": b"\2" + header(3, 0),
    "found-name-without-end": b"\2" + root(0, b"x" * 48, HEAP) + raw(4096, b"y" * 64),
    "epoch-that-falls": b"\2" + slot(0, 0) + log_at(LOGS + 1024) + record(0, 1, 1, 1, HEAP + 64, b"") + header(12, 0),
    "found-jump-in-circles": b"\2" + chunk(6, 4, 0, 1) + slot(0, 0) + log_at(LOGS) + record(0, 4, 1, 1, HEAP + 6 * CHUNK, b"")
                             + log_at(HEAP + 6 * CHUNK) + record(0, 4, 1, 1, HEAP + 6 * CHUNK, b""),
}


def sparse(segment_bytes: int, size_bytes: int) -> str:
    return f"spillway-sparse 1\nsegment_bytes {segment_bytes}\nsize_bytes {size_bytes}\n"


DIRECTORIES = {
    "new": "\n" + sparse(1 << 20, 1 << 24), "with-segments": "0=1048576 3=0 15=1048576\n" + sparse(1 << 20, 1 << 24),
    "cut-segment": "1=4096\n" + sparse(1 << 20, 1 << 24), "damaged": "\nspillway-sparse 1\nsegment_bytes x\n",
    "other-version": "\nspillway-sparse 2\n", "empty": "\n", "pipe-of-segments": "0>1 2/1\n" + sparse(65536, 65536 * 3),
    "found-count-overflows": "\n" + sparse(1 << 63, (1 << 64) - 4096), "found-pipe": "\nfifo",
    "found-segment-of-all": "\n" + sparse(1 << 62, 1 << 40), "largest-segment": "\n" + sparse(1 << 50, 1 << 40),
}


def change(at: int, what: int, data: bytes) -> bytes:
    return struct.pack("<IBB", at, what, len(data)) + data


# LiveHeader: where its words are.
PAGES = {
    "quiet": b"\0", "named": b"\4" + change(56, 0, b"./sort\0") + change(312, 0, b"mapped\0") + change(568, 0, b"spill:/mnt\0") + change(16, 0, b"\x21"),
    "areas": b"\2" + change(0, 1, struct.pack("<QQQ", 1 << 20, 1 << 22, 0) + b"/data/x.bin\0") + change(128, 1, struct.pack("<QQQ", 1 << 30, 1 << 40, 0)),
    "counts": b"\1" + change(0, 2, struct.pack("<8Q", *range(1, 9))) + change(0, 2, struct.pack("<8Q", *range(100, 108))) + change(400, 2, b"\xff" * 200),
    "goes-down": b"\1" + change(0, 2, b"\xff" * 255) + change(0, 2, b"\1" * 255) + change(256, 2, b"\x7f" * 255),
    "words-of-terminals": b"\2" + change(56, 0, b"\x1b]0;x\x07\xe2\x80\xae" * 8) + change(824, 0, b"\2\0\0\0"),
}


def write(target: str, name: str, data: bytes | str) -> None:
    file = CORPUS / target / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)


def main() -> None:
    for target, seeds in (("durable_region", REGIONS), ("sparse_directory", DIRECTORIES), ("live_page", PAGES), ("options", ENVIRONMENTS)):
        for name, data in seeds.items():
            write(target, name, data)
    for i, text in enumerate(NAMES):
        write("store_names", f"name-{i:02}", text)
    write("store_names", "found-deep", "striped:" * 500)
    write("store_names", "found-zero-byte", "//h/a%00b")
    write("options", "found-block-of-none", "SPILLWAY_BLOCK=0\nUMAP_BUFSIZE=5000")
    write("report_file", "usual", json.dumps(REPORT))
    write("report_file", "least", json.dumps({"schema": 1, "facts": REPORT["facts"], "counters": {}}))
    hostile = REPORT | {"facts": REPORT["facts"] | {"program": "\x1b[2J", "engine": "a\nb\x7f"}}
    write("report_file", "found-words-of-terminals", json.dumps(hostile))
    huge = REPORT | {"facts": REPORT["facts"] | {"frames": 1e300, "block_bytes": -1, "wall_seconds": 1e308}}
    write("report_file", "found-numbers-out-of-range", json.dumps(huge))


if __name__ == "__main__":
    main()
