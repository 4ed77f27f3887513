#!/usr/bin/env python3
"""Made-up runs for the page of --report: report_data.py NAME prints one as JSON. The names are in RUNS.

The format is told in tools/spillway/report/README.md. Runs are the same each time: the numbers come from a seed.
"""

import bisect
import json
import math
import random
import sys

GIB = 1 << 30
BLOCK_BYTES = 16384


def class_ends():
    """Ends of the classes of src/telemetry/latencies.h, in ns: eight to a doubling."""
    return [256] + [(8 + part) << (octave - 3) for octave in range(8, 36) for part in range(1, 9)]


def latencies(rng, count, modes):
    """A histogram of `count` misses, of modes (weight, middle in ns, width in doublings), with its quantiles."""
    ends, drawn = class_ends(), min(20000, count)
    times = sorted(
        middle * 2 ** rng.gauss(0, width) for weight, middle, width in modes for _ in range(int(weight * drawn))
    )
    counts = [0] * len(ends)
    for time in times:
        counts[min(bisect.bisect_right(ends, time), len(ends) - 1)] += count // len(times)

    def quantile(share):
        return int(times[min(len(times) - 1, int(share * len(times)))])

    return {
        "count": sum(counts),
        "p50_ns": quantile(0.5),
        "p99_ns": quantile(0.99),
        "p999_ns": quantile(0.999),
        "worst_ns": int(times[-1]),
        "classes": [{"below_ns": end, "count": number} for end, number in zip(ends, counts)],
    }


def samples(rng, count, seconds, cap, threads):
    """Columns of a run that fills its memory, works in phases, and ends by writing back."""
    columns = {
        name: []
        for name in (
            "seconds",
            "memory_bytes",
            "misses_per_s",
            "hits_per_s",
            "read_bytes_per_s",
            "write_bytes_per_s",
            "waiting_threads",
            "running_threads",
            "processes",
        )
    }
    for index in range(count):
        part = (index + 1) / count
        filling = part < 0.18
        phase = 0.55 + 0.45 * math.sin(part * 21) * math.sin(part * 5) + rng.gauss(0, 0.05)
        misses = 0 if filling else max(0.0, 52000 * phase)
        waiting = 0.02 if filling else min(threads * 0.95, max(0.0, threads * 0.62 * phase + rng.gauss(0, 0.06)))
        columns["seconds"].append(round(seconds * part, 4))
        columns["memory_bytes"].append(int(cap * min(1, part / 0.18) * (1 - 0.004 * rng.random())))
        columns["misses_per_s"].append(round(misses, 1))
        columns["hits_per_s"].append(round(rng.uniform(2, 3) * 1e6, 1))
        columns["read_bytes_per_s"].append(round(misses * BLOCK_BYTES))
        columns["write_bytes_per_s"].append(
            round((0.3 * GIB if part > 0.95 else 0 if filling else 0.16 * GIB) * rng.uniform(0.8, 1.2))
        )
        columns["waiting_threads"].append(round(waiting, 3))
        columns["running_threads"].append(round(max(0.05, threads - waiting - 0.1), 3))
        columns["processes"].append(1 if filling else 3)
    return columns


def curve(cap, enough, seconds, reads):
    """A curve that falls until `enough` and is flat from there; at the cap it takes as long as the run did."""

    def shape(memory):
        return 0.4 + 2.8 * (1 - min(1.0, memory / enough)) ** 1.4

    points = []
    for step in range(2, 25):
        memory = cap * step // 8
        points.append(
            {
                "memory_bytes": memory,
                "reads": int(reads * (shape(memory) - 0.35) / (shape(cap) - 0.35)),
                "seconds": round(seconds * shape(memory) / shape(cap), 2),
            }
        )
    return {"here_bytes": cap, "enough_bytes": enough, "points": points}


def usual():
    """Of a minute and a half, three processes, everything recorded."""
    rng = random.Random(7)
    cap = 4 * GIB
    names = [
        ("build_index (knn.cc:120)", 8.0e9, 0.58, "allocation"),
        ("vectors.f32", 9.6e9, 0.21, "file"),
        ("std::vector<float, spw::Allocator<float>>::_M_default_append (stl_vector.h:668)", 1.1e9, 0.11, "allocation"),
        ("small allocations", 0.21e9, 0.04, "small"),
        ("load_labels (labels.cc:41)", 0.4e9, 0.03, "allocation"),
    ]
    functions = [
        ("distance(float const*, float const*, unsigned long)", "knn.cc:88", "knn", 0.41),
        ("Heap::push(Candidate)", "heap.h:52", "knn", 0.17),
        ("build_index(Vectors const&)", "knn.cc:131", "knn", 0.14),
        ("__memmove_avx_unaligned_erms", None, "libc.so.6", 0.09),
        ("PyArray_Sum", None, "_multiarray_umath.cpython-311-x86_64-linux-gnu.so", 0.05),
    ]
    functions += [(f"worker_{index}(Task&)", f"tasks.cc:{40 + 9 * index}", "knn", 0.12 / 20) for index in range(20)]
    return {
        "schema": 1,
        "version": "0.2.0",
        "command": ["python3", "knn.py", "--k", "10", "--vectors", "/data/my vectors.f32"],
        "started": "2026-11-27T09:00:00Z",
        "wall_seconds": 83.1,
        "ended": {"code": 0, "signal": 0},
        "machine": {"name": "atlas", "kernel": "6.18.5", "processors": 4, "memory_bytes": 8 * GIB},
        "summary": {
            "cap_bytes": cap,
            "peak_bytes": 4290000000,
            "spilled_bytes": 13316000000,
            "read_bytes": 41000000000,
            "misses": 3100000,
            "waiting_share": 0.41,
            "without": "Without Spillway it would have needed 17.1 GiB; this machine has 8.0 GiB.",
            "closing_line": "spilled 12.4 GiB; peak 4.0 of 4.0 GiB; 3.1 M misses, 41 % of the time waiting; "
            "try --memory 6G: -60 %",
        },
        "samples": samples(rng, 420, 83.1, cap, 4),
        "latencies": latencies(
            rng, 3100000, [(0.3, 7900, 0.12), (0.62, 11500, 0.3), (0.07, 42000, 0.5), (0.01, 400000, 0.9)]
        ),
        "curve": curve(cap, 6 * GIB, 83.1, 3.0e6),
        "allocations": [
            {"name": name, "bytes": int(size), "misses": int(3.1e6 * part), "share": part, "kind": kind}
            for name, size, part, kind in names
        ],
        "functions": [
            {"name": name, "source": source, "library": library, "misses": int(3.1e6 * part), "share": part}
            for name, source, library, part in functions
        ],
        "chosen": [
            {"what": "engine", "value": "mapped", "why": "the program was not recompiled"},
            {"what": "faults", "value": "userfaultfd", "why": "the kernel allows it to this user"},
            {
                "what": "block size",
                "value": "16 KiB",
                "why": "neighbours of a missed page were used soon after it in most cases",
            },
            {"what": "store", "value": "/mnt/nvme", "why": "--store"},
            {"what": "I/O", "value": "libaio", "why": "the kernel has it, and nothing forbids it"},
        ],
        "processes": [
            {"process": 4711, "program": "python3", "peak_bytes": 3 * GIB, "misses": 2400000, "seconds": 83.0},
            {"process": 4715, "program": "python3", "peak_bytes": 640 << 20, "misses": 410000, "seconds": 66.4},
            {"process": 4716, "program": "sort", "peak_bytes": 350 << 20, "misses": 290000, "seconds": 12.9},
        ],
        "notices": [
            "the store is on a device that also holds the swap",
            "2 files were mapped by the kernel as they are only read",
        ],
    }


def small():
    """Of a second: ten samples, a program that has enough memory nearly, and ends with a signal."""
    rng = random.Random(1)
    run = usual() | {
        "command": ["./sort"],
        "wall_seconds": 0.94,
        "ended": {"code": 0, "signal": 9},
        "samples": samples(rng, 10, 0.94, 64 << 20, 1),
        "latencies": latencies(rng, 900, [(1, 9000, 0.2)]),
        "curve": {
            "here_bytes": 64 << 20,
            "enough_bytes": 70 << 20,
            "points": [
                {"memory_bytes": 64 << 20, "reads": 900, "seconds": 0.94},
                {"memory_bytes": 70 << 20, "reads": 850, "seconds": 0.92},
            ],
        },
        "processes": [{"process": 12, "program": "sort", "peak_bytes": 60 << 20, "misses": 900, "seconds": 0.94}],
        "notices": [],
    }
    run["summary"] = {
        "cap_bytes": 64 << 20,
        "peak_bytes": 63 << 20,
        "spilled_bytes": 12 << 20,
        "read_bytes": 14 << 20,
        "misses": 900,
        "waiting_share": 0.012,
        "without": None,
        "closing_line": "spilled 12.0 MiB; peak 63.0 of 64.0 MiB; 900 misses, 1 % of the time waiting",
    }
    run["samples"]["hits_per_s"] = []
    for row in run["allocations"] + run["functions"]:
        row["misses"] = round(900 * row["share"])
        if "bytes" in row:
            row["bytes"] //= 100
    return run


def long():
    """Of five hours: as many samples as there can be, and more memory wanted than the machine has."""
    rng = random.Random(3)
    run = usual() | {
        "command": [
            "./simulate",
            *(f"--layer={index}:/data/layers/with/a/long/path/{index}.bin" for index in range(40)),
        ],
        "wall_seconds": 18342.0,
        "samples": samples(rng, 2000, 18342.0, 4 * GIB, 64),
        "curve": curve(4 * GIB, 11 * GIB, 18342.0, 9.0e8),
    }
    run["summary"] = run["summary"] | {"misses": 912345678, "spilled_bytes": 3 << 40, "read_bytes": 14 << 40}
    return run


def nothing():
    """A run that was over at once and recorded nothing: nulls and empty lists everywhere."""
    return {
        "schema": 1,
        "version": "0.2.0",
        "command": ["true"],
        "started": "2026-11-27T09:00:00Z",
        "wall_seconds": 0.004,
        "ended": {"code": 0, "signal": 0},
        "machine": {"name": None, "kernel": None, "processors": None, "memory_bytes": None},
        "summary": {
            "cap_bytes": None,
            "peak_bytes": None,
            "spilled_bytes": None,
            "read_bytes": None,
            "misses": None,
            "waiting_share": None,
            "closing_line": None,
            "without": None,
        },
        "samples": {name: [] for name in samples(random.Random(0), 0, 1, 1, 1)},
        "latencies": {"count": 0, "p50_ns": None, "p99_ns": None, "p999_ns": None, "worst_ns": None, "classes": []},
        "curve": {"here_bytes": None, "enough_bytes": None, "points": []},
        "allocations": [],
        "functions": [],
        "chosen": [],
        "processes": [],
        "notices": [],
    }


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "<!-- <script>",
    "a & b &lt; c",
    "\u2028\u2029\u202etxt.exe",
    "\x1b[31mred\x07\nline",
    "@DATA@",
    "$&\\`${'x'}",
    "'; rm -rf ~; '",
    "javascript:alert(3)",
    "é 漢字 🦊",
    "n" * 3000,
    "https://example.invalid/x.png",
    '" onmouseover="alert(4)',
]


def hostile():
    """Names that would do harm where they are not put in as text."""
    run = usual()
    run["command"] = HOSTILE
    run["machine"] |= {"name": HOSTILE[0], "kernel": HOSTILE[1]}
    run["summary"] |= {"closing_line": HOSTILE[0] + HOSTILE[1], "without": HOSTILE[2] + HOSTILE[4]}
    run["version"] = HOSTILE[1]
    run["notices"] = HOSTILE
    for rows, fields in (
        ("allocations", ("name",)),
        ("functions", ("name", "source", "library")),
        ("processes", ("program",)),
        ("chosen", ("what", "value", "why")),
    ):
        run[rows] = [dict(run[rows][0], **{field: name for field in fields}) for name in HOSTILE]
    run["allocations"][1]["kind"] = HOSTILE[0]
    return run


def fits():
    """Nothing had to be spilled."""
    run = usual()
    run["summary"] |= {
        "spilled_bytes": 0,
        "read_bytes": 0,
        "misses": 0,
        "waiting_share": 0.0,
        "closing_line": None,
        "without": None,
        "peak_bytes": 3 * GIB,
    }
    for column in ("misses_per_s", "read_bytes_per_s", "write_bytes_per_s", "waiting_threads"):
        run["samples"][column] = [0] * len(run["samples"]["seconds"])
    return run | nothing_of("latencies", "curve", "allocations", "functions", "processes", "notices")


def holes():
    """Columns that are missing, and values that are."""
    run = usual()
    run["samples"]["misses_per_s"] = []
    run["samples"]["memory_bytes"][100:180] = [None] * 80
    run["curve"]["enough_bytes"] = None
    for point in run["curve"]["points"]:
        point["seconds"] = None
    run["functions"][0] |= {"source": None, "share": None, "misses": None}
    run["ended"] = None
    return run


def nothing_of(*parts):
    return {part: nothing()[part] for part in parts}


RUNS = {run.__name__: run for run in (usual, small, long, nothing, hostile, fits, holes)}

if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in RUNS]:
        sys.exit(f"report_data.py NAME: one of {' '.join(RUNS)}")
    json.dump(RUNS[sys.argv[1]](), sys.stdout, ensure_ascii=False)
