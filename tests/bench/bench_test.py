#!/usr/bin/env python3
"""The benchmark scripts: bench_test.py BUILD CASE. A case is a function below, named after a behaviour."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from harness import cgroup, chart, devices, fio, kernels, network, process, servers, workspace, zram  # noqa: E402
from harness.report import Report, Row  # noqa: E402


class Wrong(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Wrong(what)


def finished(output: str, **more) -> process.Result:
    return process.Result(seconds=1, processor_s=1, timed_out=False, exit_status=0, output=output, errors="",
                          usage=cgroup.Usage(), disk_read_bytes=0, disk_write_bytes=0, **more)


def a_chart_is_the_same_each_time_and_names_its_lines(directory: pathlib.Path) -> None:
    if reason := chart.why_not():
        raise Skipped(reason)
    lines = [chart.Line("ours & <theirs>", {"1": 3, "2": 5.5, "4": 0}), chart.Line("swap", {"1": 90, "4": 200}, {"4"})]
    drawn = chart.Chart("random reads", "threads", "seconds", ["1", "2", "4"], lines)
    drawn.write(directory / "one.svg")
    text = (directory / "one.svg").read_text()
    expect(text == drawn.svg(), "drawn twice, it differs")
    root = xml.etree.ElementTree.fromstring(text)
    words = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
    wanted = {"random reads", "threads", "seconds", "ours & <theirs>", "swap", "1", "2", "4"}
    expect(wanted <= words, f"{wanted - words} are not in it")
    for line in range(2):
        expect(chart.COLOURS[line] in text, f"line {line} has not its colour")
    try:
        chart.Chart("nothing", "x", "y", ["1"], [chart.Line("none", {"1": 0})]).svg()
    except ValueError as error:
        expect("nothing to draw" in str(error), str(error))
    else:
        raise Wrong("an empty chart was drawn")


def docs_change_between_a_benchmarks_own_marks_only(directory: pathlib.Path) -> None:
    page = directory / "page.md"
    page.write_text("a\n<!-- one:begin -->\nold\n<!-- one:end -->\n<!-- two:begin -->\nkept\n<!-- two:end -->\nb\n")
    Report("one").update_docs(page, "new\n")
    expected = "a\n<!-- one:begin -->\nnew\n<!-- one:end -->\n<!-- two:begin -->\nkept\n<!-- two:end -->\nb\n"
    expect(page.read_text() == expected, page.read_text())


def rows_of_sections_that_did_not_run_stay_in_the_docs(directory: pathlib.Path) -> None:
    page = directory / "page.md"
    page.write_text("<!-- one:begin -->\n<!-- one:end -->\n")
    first, second = Report("one"), Report("one")
    first.rows = [Row("a", "x", ratio=1), Row("b", "y", ratio=2), Row("c", "z", ratio=3)]
    first.update_docs(page, first.markdown({"commit": "old", "scale": 1}))
    second.rows = [Row("b", "new", ratio=4), Row("d", "more", ratio=5)]
    second.update_docs(page, second.markdown({"commit": "new", "scale": 1}))
    text = page.read_text()
    expect("commit: new" in text and "earlier (a, c): commit: old" in text, text)
    names = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("|")][2:]
    expect(names == ["x", "new", "z", "more"], text)
    first.update_docs(page, first.markdown({"commit": "last"}))
    expect("earlier (d): commit: new; earlier (a, c)" in page.read_text(), page.read_text())


def lower_bound_below_its_target_is_neither_met_nor_missed(_: pathlib.Path) -> None:
    def met(ratio, bound):
        return Row("s", "n", ratio=ratio, at_most=False, target=3, peer_is_lower_bound=bound).met()

    expect([met(2, True), met(2, False), met(3, True), met(3, False)] == ["unknown", "no", "yes", "yes"], "verdicts")


def mean_of_a_lower_bound_is_one(_: pathlib.Path) -> None:
    report = Report("x")
    report.add_mean("s", "mean", [Row("s", "a", ratio=2, at_most=False),
                                  Row("s", "b", ratio=8, at_most=False, peer_is_lower_bound=True)], 3)
    mean = report.rows[0]
    expect(abs(mean.ratio - 4) < 1e-9 and mean.peer_is_lower_bound and not mean.at_most, str(mean))


def programs_with_different_results_are_not_compared(_: pathlib.Path) -> None:
    def printing(checksum):
        return lambda case: finished(json.dumps({"seconds": 1, "processor_s": 1, "rounds": 1, "checksum": checksum}))

    case = kernels.Case("x", "micro", (), 0)
    kernels.compare(case, {"a": printing("1"), "b": printing("1")}, 2)
    try:
        kernels.compare(case, {"a": printing("1"), "b": printing("2")}, 1)
    except kernels.Failed:
        return
    raise Wrong("different checksums were compared")


def disk_bytes_are_those_of_the_measured_part(_: pathlib.Path) -> None:
    result = finished('{"timed_from_s": 1.5}\n{"total_s": 1}\n', disk_samples=[(0, 0), (1, 10), (2, 30), (3, 60)])
    expect(result.timed_from_s == 1.5, "when the measured part began")
    expect(result.report == {"total_s": 1}, "the last line is the report")
    expect(result.disk_bytes_between(1.5, 2.5) == 20, str(result.disk_bytes_between(1.5, 2.5)))


def run_mapped(directory: pathlib.Path, *arguments) -> list[dict]:
    """The rows of a run on a sixty-fourth of the data."""
    run = subprocess.run([ROOT / "bench" / "run", "mapped", "--build", BUILD, "--results", directory, "--store",
                          BUILD / "bench", "--scale", "64", *arguments], capture_output=True, text=True, check=False)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return json.loads((directory / "mapped.json").read_text())["rows"]


def mapped_benchmark_measures_every_kernel_in_memory(directory: pathlib.Path) -> None:
    rows = run_mapped(directory, "--only", "in-memory", "--repetitions", "1")
    names = {row["name"] for row in rows}
    for kernel in ("sequential sum", "stencil", "hash join", "TeraSort by shuffle", "pagerank", "bfs", "geometric mean"):
        for variant in ("recompiled", "unmodified"):
            expect(f"{kernel}, {variant}" in names, f"no row {kernel}, {variant} in {names}")
    expect(all(row["ratio"] > 0 for row in rows), "a ratio is missing")


def mapped_benchmark_counts_faults_beyond_memory(directory: pathlib.Path) -> None:
    rows = run_mapped(directory, "--only", "hints", "--scale", "16")  # the smallest at which nothing fits
    expect(len(rows) >= 8, f"{len(rows)} rows")
    expect(any(row["name"].startswith("PageRank") for row in rows), "no PageRank")
    expect(all(row["peer"] > 0 for row in rows), f"nothing came in: {rows}")


def run_durable(directory: pathlib.Path, *arguments) -> list[dict]:
    run = subprocess.run([ROOT / "bench" / "run", "durable", "--build", BUILD, "--results", directory, "--store", BUILD / "bench", *arguments],
                         capture_output=True, text=True, check=False)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return json.loads((directory / "durable.json").read_text())["rows"]


def durable_benchmark_flushes_as_the_paper_does(directory: pathlib.Path) -> None:
    rows = run_durable(directory, "--only", "ratios")
    held = [row for row in rows if row["name"].endswith("off the paper's ratio by")]
    expect(len(held) == 16, f"{len(held)} ratios of four programs and four techniques")
    expect(all(row["met"] == "yes" for row in held), f"{[(row['name'], row['note']) for row in held if row['met'] != 'yes']}")


def durable_benchmark_times_every_workload(directory: pathlib.Path) -> None:
    rows = run_durable(directory, "--only", "time", "--only", "crashes", "--scale", "128")
    names = {row["name"] for row in rows}
    for workload in ("persistent-array", "queue", "linked-list", "hash", "matrix", "molecules", "tree"):
        expect(f"{workload}: SC beside AT" in names, f"no row {workload}: SC beside AT in {names}")
    expect(rows[-1]["section"] == "crashes" and rows[-1]["ratio"] >= 1, f"{rows[-1]}")


def durable_benchmark_runs_lmdb(directory: pathlib.Path) -> None:
    rows = run_durable(directory, "--only", "mdb", "--scale", "32")
    if not rows:
        raise Skipped(json.loads((directory / "durable.json").read_text())["skipped"][-1]["why"])
    runs = next(row["details"] for row in rows if row["name"] == "mdb, AT's flushes beside SC's")
    expect(len({run["stores"] for run in runs.values()}) == 1, f"techniques did not do the same: {runs}")
    expect(runs["LA"]["lines_flushed"] <= runs["SC"]["lines_flushed"] <= runs["ER"]["lines_flushed"], f"{runs}")


def run_remote(directory: pathlib.Path, *sections: str) -> list[dict]:
    """The rows of a short run with every fio engine there is."""
    only = [word for section in sections for word in ("--only", section)]
    run = subprocess.run([sys.executable, ROOT / "bench" / "run", "remote", "--build", BUILD, "--results", directory, "--store", BUILD / "bench",
                          "--scale", "16", *only], capture_output=True, text=True, check=False)
    expect(run.returncode == 0, run.stdout + run.stderr)
    found = json.loads((directory / "remote.json").read_text())
    expect(all(row["ratio"] > 0 for row in found["rows"]), f"{found}")
    return found["rows"]


def remote_benchmark_reads_from_nbd_servers(directory: pathlib.Path) -> None:
    if reason := servers.why_no_nbd():
        raise Skipped(reason)
    names = {row["name"] for row in run_remote(directory, "nbd")}
    expect({"2 ms: 4 clients beside one", "no delay: 4 clients beside one"} <= names, f"{names}")


def remote_benchmark_reads_from_a_cluster(directory: pathlib.Path) -> None:
    if reason := servers.why_no_ceph():
        raise Skipped(reason)
    names = {row["name"] for row in run_remote(directory, "rbd", "store")}
    expect("no delay: 4 clients beside one" in names, f"{names}")
    if not fio.why_no_engine("rbd"):
        expect("sequential reads of 256 KiB, 8 under way: fio's rbd engine" in names, f"{names}")


def machines_of_a_network_are_as_far_as_they_are_said_to_be(_: pathlib.Path) -> None:
    delay_ms = 40
    own = os.readlink("/proc/thread-self/ns/net")
    with network.network((1, 1), delay_ms * 1000, BUILD) as net:
        if not net.has_delay:
            raise Skipped(net.text)
        server, client = net.servers[0], net.clients[0]
        listening = f"import socket; s = socket.create_server(('{server.address}', 7)); print('ready', flush=True); s.accept()"
        connecting = (f"import socket, time; begin = time.monotonic(); socket.create_connection(('{server.address}', 7), 10); "
                      "print(time.monotonic() - begin)")
        with subprocess.Popen([*server.words, sys.executable, "-c", listening], stdout=subprocess.PIPE, text=True) as run:
            try:
                expect(run.stdout.readline() == "ready\n", "no server")
                took = subprocess.run([*client.words, sys.executable, "-c", connecting], check=True, capture_output=True, text=True).stdout
            finally:
                run.kill()
        # The handshake, there and back; and before it the server's link address is asked for.
        expect(float(took) >= delay_ms / 1000, f"a connection took {took} s")
    expect(os.readlink("/proc/thread-self/ns/net") == own, "this thread is in another namespace than before")


def zram_algorithms_are_told_from_the_chosen_one(_: pathlib.Path) -> None:
    expect(zram.parse_algorithms("[lzo-rle] lzo lz4\n") == ("lzo-rle", ["lzo-rle", "lzo", "lz4"]), "three")
    expect(zram.parse_algorithms("lzo [lz4]") == ("lz4", ["lzo", "lz4"]), "the last one")
    expect(zram.parse_available_bytes("MemTotal: 9 kB\nMemAvailable:    512 kB\n") == 512 << 10, "memory")


def zram_disk_is_skipped_for_a_reason(directory: pathlib.Path) -> None:
    """In a tree that looks like the kernel's; what needs root to get that far is tried as root only."""
    (directory / "proc").mkdir()
    (directory / "proc/meminfo").write_text("MemAvailable: 2048 kB\n")
    (directory / "sys/block").mkdir(parents=True)
    if os.geteuid() != 0:
        expect("root" in zram.why_not(1, directory), zram.why_not(1, directory))
        return
    expect("no zram" in zram.why_not(1, directory), "without zram")
    (directory / "sys/block/zram0").mkdir()
    expect("memory" in zram.why_not(4 << 20, directory), "with less memory than the device may take")
    before, os.environ["PATH"] = os.environ["PATH"], str(directory)
    expect("is missing" in zram.why_not(1, directory), "without tools")
    os.environ["PATH"] = before


def nothing_is_released_of_a_device_from_before_a_restart(directory: pathlib.Path) -> None:
    zram_free = zram.Taken("zram0", False, "lzo", "another boot")
    (directory / zram.RECORD).write_text(json.dumps(vars(zram_free)))
    before = zram.BLOCK_DEVICES
    zram.BLOCK_DEVICES = directory  # a device that would be reset has its file there
    try:
        (directory / "zram0").mkdir()
        (directory / "zram0/disksize").write_text("4096")
        expect(zram.release(directory), "there is nothing to release")
        expect(not (directory / "zram0/reset").exists(), "somebody's device was reset")
    finally:
        zram.BLOCK_DEVICES = before


def mounts_below(directory: pathlib.Path) -> list[str]:
    lines = pathlib.Path("/proc/mounts").read_text().splitlines()
    return [line.split()[0] for line in lines if line.split()[1].startswith(f"{directory}/")]


def device_sizes() -> dict[str, int]:
    return {path.name: int((path / "disksize").read_text()) for path in zram.BLOCK_DEVICES.glob("zram*")}


def fast_disk_in_its_middle(directory: pathlib.Path) -> tuple[subprocess.Popen, str]:
    """A run that has begun to read and write its disk, and the device below that. Both are found below `directory`."""
    command = [ROOT / "bench" / "run", "fast-disk", "--build", BUILD, "--results", directory, "--scale", "64", "--only", "fills"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                           env=os.environ | {"TMPDIR": str(directory)})
    while run.poll() is None:
        if list(directory.glob(f"{workspace.PREFIX}*/{zram.MOUNT}/{workspace.PREFIX}*/words")):
            return run, mounts_below(directory)[0]
        time.sleep(0.01)
    complaint = run.stderr.read().strip()
    if run.returncode == 77:
        raise Skipped(complaint.removeprefix("skipped: "))
    raise Wrong(complaint)


def expect_nothing_left(directory: pathlib.Path, device: str) -> None:
    expect(not mounts_below(directory), f"mounted: {mounts_below(directory)}")
    expect(device_sizes().get(pathlib.Path(device).name, 0) == 0, f"{device} has a size: {device_sizes()}")
    expect(not list(directory.glob(f"{workspace.PREFIX}*")), f"left: {list(directory.iterdir())}")


def stopped_fast_disk_leaves_nothing(directory: pathlib.Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        run, device = fast_disk_in_its_middle(directory)
        run.send_signal(number)
        run.wait()
        expect(run.returncode != 0, "a run that was stopped says that all went well")
        expect_nothing_left(directory, device)


def killed_fast_disk_is_swept_by_the_next_run(directory: pathlib.Path) -> None:
    run, device = fast_disk_in_its_middle(directory)
    run.kill()
    run.wait()
    expect(mounts_below(directory) == [device], "the kill came too late: nothing is left to sweep")
    workspace.sweep(directory)
    expect_nothing_left(directory, device)


def several_disks_are_limited_and_given_back(directory: pathlib.Path) -> None:
    size_bytes = 32 << 20
    if reason := devices.why_not(2, size_bytes):
        raise Skipped(reason)
    before = device_sizes()
    with workspace.workspace(directory) as below:
        try:
            disks = devices.make(below, 2, size_bytes)
            with cgroup.memory_group(None) as group:
                devices.limit(group, disks)
                limits = group.io_directory / "blkio.throttle.write_iops_device" if group.version == 1 else group.directory / "io.max"
                text = limits.read_text()
                expect(text.count(str(devices.REQUESTS_PER_S)) >= 2, f"limited so: {text}")
        except zram.Unavailable as reason:
            raise Skipped(str(reason)) from None
        expect(sorted(mounts_below(directory)) == sorted(f"/dev/{disk.device}" for disk in disks), f"mounted: {mounts_below(directory)}")
        devices.give_back(below, 1)
        expect(mounts_below(directory) == [f"/dev/{disks[1].device}"], "one was given back, the other one not")
    expect(not mounts_below(directory) and device_sizes() == before, f"left: {mounts_below(directory)}, {device_sizes()}")


def killed_run_with_several_disks_is_swept_by_the_next_one(directory: pathlib.Path) -> None:
    if reason := devices.why_not(2, 32 << 20):
        raise Skipped(reason)
    before = device_sizes()
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = directory / f"{workspace.PREFIX}{dead.pid}"
    left.mkdir()
    try:
        devices.make(left, 2, 32 << 20)
    except zram.Unavailable as reason:
        workspace.remove(left)
        raise Skipped(str(reason)) from None
    expect(len(mounts_below(directory)) == 2, f"mounted: {mounts_below(directory)}")
    workspace.sweep(directory)
    expect(not left.exists() and not mounts_below(directory) and device_sizes() == before, f"left: {device_sizes()}")


def latencies_are_of_the_slowest_reads(directory: pathlib.Path) -> None:
    micro, file = BUILD / "examples" / "native" / "micro", directory / "words"
    subprocess.run([micro, "file-make", "--file", file, "--bytes", "4M"], check=True)

    def latencies(percent: int) -> dict:
        run = subprocess.run([micro, "file-read", "--file", file, "--ops", "20000", "--threads", "2", "--latencies", str(percent)],
                             check=True, capture_output=True, text=True)
        return json.loads(run.stdout.splitlines()[-1]).get("latency_ns")

    found = latencies(100)
    expect(0 < found["p50"] <= found["p99"] <= found["p99.9"] <= found["worst"], f"{found}")
    expect(latencies(1)["p50"] > found["p50"], "half of all reads are as slow as half of the slowest")
    expect(latencies(0) is None, "nothing was to be timed")


def main() -> int:
    case = globals()[sys.argv[2]]
    with tempfile.TemporaryDirectory() as directory:
        try:
            case(pathlib.Path(directory))
        except Wrong as wrong:
            print(f"FAILED: {wrong}")
            return 1
        except Skipped as reason:
            print(f"skipped: {reason}")
            return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
