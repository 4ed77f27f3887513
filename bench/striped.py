"""Random writes by 64 threads to buffered files on four devices of a limited rate each, beside one such device: two sections of `./dev bench files`.

  striped   a file striped over the four, and a file on each, beside one file and four on one of them. The target is that of ScaleCache's arrays of disks
  striped-flush  on one, striped, and a file on each, with a fifth of the memory dirty at most: --flush auto, once it has tried both,
            beside direct and beside background, and these two beside one another; and how long a sync of all files takes then, which is what --dirty is for

The file is four times the memory. Every figure is the median of some turns, the kinds in another order in each, and a ratio the median of the turns' ratios.
"""
import json
import random
import statistics
import subprocess

from harness import cgroup, devices, zram
from harness.report import Report, Row

MIB = 1 << 20
MEMORY, FILES = 64 * MIB, 256 * MIB
# A journal and tables beside the files; what a turn has deleted is given back at the end only.
DEVICE_BYTES = 2 * FILES
DEVICES, JOBS, RAMP_S, SECONDS, TURNS, LIMIT_S = 4, 64, 2, 3, 3, 120
DEVICES_MIN, AUTO_MIN = 3, 0.95
FLUSHES = ("auto", "direct", "background")
FLUSH_RAMP_S = 8  # auto takes 5 to choose, and what it gave up before has to be written


def _layouts(disks: list[zram.Disk]) -> dict[str, str]:
    """What file_writes is to open, by what it is."""
    places = [disk.mount / "files.dat" for disk in disks]
    return {"one device": str(places[0]), "striped": f"striped:{','.join(map(str, places))}", "a file each": "+".join(map(str, places)),
            "four files on one device": "+".join(f"{places[0]}{number}" for number in range(len(places)))}


def _run(bench: Report, disks: list[zram.Disk], layout: str, options: tuple[str, ...], ramp_s: int = RAMP_S) -> dict:
    """What file_writes says: writes_per_s and sync_s."""
    for disk in disks:
        for file in disk.mount.glob("files.dat*"):
            file.unlink()
    build = bench.programs.build / "bin"
    words = [build / "spillway", "run", *options, "--memory", str(MEMORY), "--store", bench.programs.store, "--", build / "file_writes",
             _layouts(disks)[layout], str(FILES), str(JOBS), str(ramp_s), str(SECONDS)]
    with cgroup.memory_group(None) as group:
        devices.limit(group, disks)
        run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S, preexec_fn=group.enter)
    if run.returncode != 0:
        raise RuntimeError(f"{layout} {' '.join(options)}: {run.stderr[-500:]}")
    return json.loads(run.stdout)


def _turns(bench: Report, disks: list[zram.Disk], kinds: dict[str, tuple]) -> dict[str, list[dict]]:
    found = {kind: [] for kind in kinds}
    for turn in range(TURNS):
        for kind in random.Random(turn).sample(list(kinds), len(kinds)):
            found[kind].append(_run(bench, disks, *kinds[kind]))
    return found


def _row(bench: Report, section: str, name: str, ours: list[dict], peer: list[dict], figure: str = "writes_per_s", target: float = 0) -> None:
    values = [[run[figure] for run in runs] for runs in (ours, peer)]
    is_rate = figure == "writes_per_s"
    shown = [statistics.median(each) / (1000 if is_rate else 1) for each in values]
    bench.add(Row(section, name, *shown, "k/s" if is_rate else "s", ratio=statistics.median(one / max(other, 1e-3) for one, other in zip(*values, strict=True)),
                  at_most=not is_rate, target=target, details={"ours": values[0], "peer": values[1]}))


def _several_beside_one(bench: Report, disks: list[zram.Disk]) -> None:
    found = _turns(bench, disks, {layout: (layout, ()) for layout in _layouts(disks)})
    for several, one in (("striped", "one device"), ("a file each", "four files on one device")):
        _row(bench, "striped", f"randwrite, {JOBS} jobs, {several} over {DEVICES} devices beside {one}", found[several], found[one], target=DEVICES_MIN)


def _flushes(bench: Report, disks: list[zram.Disk], layout: str) -> None:
    found = _turns(bench, disks, {flush: (layout, ("--dirty", "20", "--flush", flush), FLUSH_RAMP_S) for flush in FLUSHES})
    for ours, peer, least in (("auto", "direct", AUTO_MIN), ("auto", "background", AUTO_MIN), ("direct", "background", 0)):
        _row(bench, "striped-flush", f"--dirty 20, {layout}: --flush {ours} beside {peer}", found[ours], found[peer], target=least)
    _row(bench, "striped-flush", f"--dirty 20, {layout}: a sync after it, direct beside background", found["direct"], found["background"], figure="sync_s")


def _on_devices(bench: Report, section: str, measure) -> None:
    """measure(disks), unless there can be no such devices."""
    if reason := devices.why_not(1, FILES + DEVICE_BYTES):  # what is written in all, and once more
        bench.skip(section, reason)
        return
    directory = bench.programs.store
    try:
        disks = devices.make(directory, DEVICES, DEVICE_BYTES)
        bench.say(f"{section}: {DEVICES} devices of {DEVICE_BYTES // MIB} MiB ({', '.join(disk.device for disk in disks)}), each limited to "
                  f"{devices.REQUESTS_PER_S:,} requests and {devices.BYTES_PER_S // MIB} MiB a second; {FILES // MIB} MiB of files, {MEMORY // MIB} MiB of memory")
        measure(disks)
    except zram.Unavailable as why:
        bench.skip(section, str(why))
    except (RuntimeError, subprocess.TimeoutExpired) as why:
        bench.failure(section, "random writes", str(why))
    finally:
        devices.give_back(directory, DEVICES)


def striped(bench: Report) -> None:
    _on_devices(bench, "striped", lambda disks: _several_beside_one(bench, disks))


def striped_flush(bench: Report) -> None:
    def measure(disks: list[zram.Disk]) -> None:
        for layout in ("one device", "striped", "a file each"):
            _flushes(bench, disks, layout)
    _on_devices(bench, "striped-flush", measure)
