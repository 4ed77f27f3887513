#!/usr/bin/env python3
"""Whole programs on more data than memory: examples_test.py BUILD CASE [PROGRAMS].

PROGRAMS: `spillway` (for the translated engine, what is meant if nothing is said), `mapped` or `native`, which is unmodified.

A case is a function below, named after a behaviour. Exit status 77 with a reason: skipped, as something is missing.
"""
import pathlib
import subprocess
import sys
import threading

BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from harness import cgroup, workspace  # noqa: E402
from harness.programs import Programs  # noqa: E402

MIB = 1 << 20
ALLOWANCE_BYTES = 64 * MIB
PROGRAM_BUILD = sys.argv[3] if len(sys.argv) > 3 else "spillway"
SORT_CAP_BYTES = 16 * MIB
SORT_RECORDS = 671_088  # 64 MiB
TIME_LIMIT_S = 100


class Wrong(Exception):
    pass


class Skipped(Exception):
    """The machine lacks what the case needs; the text says what."""


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Wrong(what)


def run_capped(programs: Programs, cap_bytes: int, name: str, *arguments) -> tuple[dict, dict]:
    """The program's report and the runtime's counters, of a run that has to end well."""
    result, counters = programs.spillway(cap_bytes, name, *arguments, build=PROGRAM_BUILD,
                                         time_limit_s=TIME_LIMIT_S)
    expect(not result.timed_out, f"{name} took longer than {TIME_LIMIT_S} s")
    expect(result.ok, f"{name}: {result.why_failed()}")
    expect("counters" not in counters and len(counters) > 0, f"{name}: no statistics were written")
    return result.report, counters


def expect_spilled(counters: dict) -> None:
    expect(counters["store_write_bytes"] > 0, "nothing was written to the store: the data fitted in memory")
    expect(counters["store_read_bytes"] > 0, "nothing was read back from the store")


def sort_in_memory(programs: Programs, mode: str) -> None:
    report, counters = run_capped(programs, SORT_CAP_BYTES, "terasort", "--records", SORT_RECORDS, "--mode", mode)
    expect(report["ok"] and report["records"] == SORT_RECORDS, f"wrong result: {report}")
    expect_spilled(counters)


def one_call_sort_finishes_on_four_times_its_memory(programs: Programs) -> None:
    sort_in_memory(programs, "one-call")


def shuffle_sort_finishes_on_four_times_its_memory(programs: Programs) -> None:
    sort_in_memory(programs, "shuffle")


def sort_reads_and_writes_files_through_managed_memory(programs: Programs) -> None:
    data, sorted_data = programs.store / "records", programs.store / "sorted"
    made = programs.native("teragen", "--records", SORT_RECORDS, "--output", data)
    expect(made.ok, made.why_failed())
    run_capped(programs, SORT_CAP_BYTES, "terasort", "--input", data, "--output", sorted_data, "--mode", "shuffle")
    check = programs.native("teravalidate", sorted_data, "--records", SORT_RECORDS, "--checksum",
                            made.report["checksum"])
    expect(check.ok, f"wrong result: {check.output}{check.errors}")


def sort_stays_below_cap_and_allowance(programs: Programs) -> None:
    if not programs.grouped:
        raise Skipped(cgroup.why_not())
    cap_bytes = 32 * MIB
    result, _ = programs.spillway(cap_bytes, "terasort", "--records", 2 * SORT_RECORDS, "--mode", "shuffle",
                                  build=PROGRAM_BUILD, limit_bytes=cap_bytes + ALLOWANCE_BYTES, time_limit_s=TIME_LIMIT_S)
    expect(result.ok, result.why_failed())
    peak = result.usage.peak_program_bytes
    expect(peak <= cap_bytes + ALLOWANCE_BYTES, f"{peak / MIB:.0f} MiB resident with a cap of {cap_bytes / MIB:.0f}")


def graph_results_are_right_beyond_memory(programs: Programs) -> None:
    report, counters = run_capped(programs, 16 * MIB, "graph", "--scale", 18, "--sweeps", 3)
    expect(report["ok"] and all(report["checks"].values()), f"wrong result: {report}")
    expect_spilled(counters)


def kernels_agree_with_native_ones(programs: Programs, cap_bytes: int, kernels: tuple) -> None:
    for kernel in kernels:
        arguments = (kernel, "--bytes", 16 * MIB, "--ops", 20_000, "--rounds", 1, "--threads", 2)
        native = programs.native("micro", *arguments)
        expect(native.ok, f"native {kernel}: {native.why_failed()}")
        report, _ = run_capped(programs, cap_bytes, "micro", *arguments)
        expect(report["checksum"] == native.report["checksum"], f"{kernel}: {report} is not {native.report}")


def micro_kernels_agree_with_native_ones_beyond_memory(programs: Programs) -> None:
    kernels = ("sum", "random-read", "random-update", "scan-and-update", "sort-words", "sort-records")
    kernels_agree_with_native_ones(programs, 8 * MIB, kernels)


def micro_kernels_agree_with_native_ones_in_memory(programs: Programs) -> None:
    # These prepare their data by millions of random steps, which would take minutes beyond memory.
    kernels_agree_with_native_ones(programs, 64 * MIB, ("chase", "join-probe", "map-find"))


def mapped_file_is_read_right_beyond_memory(programs: Programs) -> None:
    file = programs.store / "words"
    made = programs.native("micro", "file-make", "--file", file, "--bytes", 64 * MIB)
    expect(made.ok, made.why_failed())
    _, counters = run_capped(programs, 8 * MIB, "micro", "file-read", "--file", file, "--ops", 20_000, "--rounds", 1,
                             "--threads", 4)
    expect(counters["store_read_bytes"] > 0, "the mapped file was not read by Spillway")


def reads_of_a_mapped_file_with_chosen_hits_agree_with_native_ones(programs: Programs) -> None:
    file = programs.store / "words"
    made = programs.native("micro", "file-make", "--file", file, "--bytes", 64 * MIB)
    expect(made.ok, made.why_failed())
    for read_bytes in (8, 4096):
        arguments = ("file-hits", "--file", file, "--hot", 2 * MIB, "--hits", 60, "--read", read_bytes, "--ops", 10_000, "--rounds",
                     1, "--threads", 4)
        native = programs.native("micro", *arguments)
        expect(native.ok, native.why_failed())
        report, counters = run_capped(programs, 8 * MIB, "micro", *arguments)
        expect(report["checksum"] == native.report["checksum"], f"{report} is not {native.report}")
        expect(counters["store_read_bytes"] > 0, "the mapped file was not read by Spillway")


def graph_grows_in_a_mapped_file_beyond_memory(programs: Programs) -> None:
    arguments = ("file-graph", "--file", programs.store / "graph", "--bytes", 128 * MIB, "--ops", 150_000, "--threads", 2)
    native = programs.native("micro", *arguments)
    expect(native.ok, native.why_failed())
    report, counters = run_capped(programs, 8 * MIB, "micro", *arguments)
    expect(report["checksum"] == native.report["checksum"], f"{report} is not {native.report}")
    expect(counters["store_write_bytes"] > 8 * MIB, "the file was not written by Spillway")


def key_value_operations_agree_with_native_ones_beyond_memory(programs: Programs) -> None:
    file = programs.store / "table"
    made = programs.native("kv", "make", "--file", file, "--pairs", 300_000)
    expect(made.ok, made.why_failed())
    arguments = ("run", "--file", file, "--ops", 20_000, "--threads", 4)
    native = programs.native("kv", *arguments)
    expect(native.ok, native.why_failed())
    report, counters = run_capped(programs, 8 * MIB, "kv", *arguments)
    expect(report["checksum"] == native.report["checksum"], f"{report} is not {native.report}")
    expect(counters["evictions"] > 0, "the table fitted in memory")


def durable_map_killed_at_any_moment_has_all_that_was_put(programs: Programs) -> None:
    program, file = programs.path("native", "durable_map"), programs.store / "map"

    def call(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([program, file, *words], capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)

    for puts, pause_s in ((1, 0.05), (1, 0.15), (200, 0.1)):
        file.unlink(missing_ok=True)
        with subprocess.Popen([program, file, "fill", "10000000"], stdout=subprocess.PIPE, text=True) as process:
            for number in range(puts):  # a disk that makes them durable slowly gets its time
                expect(process.stdout.readline() == f"{number}\n", f"put {number} did not succeed")
            threading.Timer(pause_s, process.kill).start()
            written = process.stdout.read()
        put = [*range(puts - 1), *written[:written.rfind("\n") + 1].splitlines()]
        found = call("verify")
        expect(found.returncode == 0, found.stderr)
        expect(len(put) + 1 <= int(found.stdout) <= len(put) + 2, f"{len(put) + 1} were durable, {found.stdout} are there")
    expect(call("put", "key 1", "another").returncode == 0 and call("get", "key 1").stdout == "another\n", "a value was not replaced")
    before = int(call("count").stdout)
    expect(call("erase", "key 1").returncode == 0 and call("get", "key 1").returncode == 1, "a key was not erased")
    expect(int(call("count").stdout) == before - 1, "miscounted")


def main() -> int:
    case = globals()[sys.argv[2]]
    workspace.stop_on_signals()
    with workspace.workspace(BUILD / "tests" / "examples_data" / f"{case.__name__}.{PROGRAM_BUILD}") as store:
        programs = Programs(BUILD, store, grouped=cgroup.why_not() is None)
        reason = programs.why_not_spillway()
        if reason:
            print(f"skipped: {reason}")
            return 77
        try:
            case(programs)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return 77
        except Wrong as wrong:
            print(f"FAILED: {wrong}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
