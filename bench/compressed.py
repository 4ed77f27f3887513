"""Compressed memory beside zram as swap, and beside none of either. `./dev bench compressed`, or see --help.

  zram   random accesses to data that compresses, on the same memory in all: ours with --compress auto in a control group, the
         program recompiled (`mapped`) and as it is (`native`); the kernel's swap on a zram device, whose memory counts, in a group
         that is smaller by so much. Its size is what the device needs for the rest, found by a run before: of all ways to share
         the memory the best one for zram
  disk   the same data on the store's disk, with --compress auto and without, the program as it is. Where it does not compress
         the two should be equal

Turns of both sides by turns; a figure is the median of some, and a ratio the median of the turns' ratios.
"""
import contextlib
import dataclasses
import pathlib
import statistics
import sys
import tempfile

from harness import command, process, swap, workspace, zram
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
TOTAL = 256 * MIB
# Data of so many times the memory in all: as much as zram can hold in it.
SIZES = {"fourfold": 2.0, "twofold": 1.5, "noise": 1.5}
WAYS = ("reads", "updates")
THREADS = (1, 2)
BUILDS = {"mapped": "recompiled", "native": "unmodified"}
ACCESSES = {"zram": 1_000_000, "disk": 300_000}
TURNS = 3
ZRAM_TARGET, DISK_TARGET, NOISE_TARGET = 2.0, 2.0, 1.03
TIME_LIMIT_S = 300


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1

    @property
    def total_bytes(self) -> int:
        return TOTAL // self.scale


def _program(bench: Bench, case: tuple, accesses: int, build: str = "native") -> list:
    kind, way, threads = case
    data_mib = int(SIZES[kind] * bench.total_bytes) // MIB
    return [bench.programs.path(build, "pages"), data_mib, kind, way, accesses // bench.scale, threads]


def _run(bench: Bench, words: list, limit_bytes: int) -> process.Result:
    return process.run(words, bench.programs.store, limit_bytes=limit_bytes, time_limit_s=TIME_LIMIT_S)


def _ours(bench: Bench, case: tuple, accesses: int, compress: str, build: str = "native") -> process.Result:
    cap = bench.total_bytes - bench.programs.allowance_bytes
    words = [bench.programs.spillway_command, "run", "--memory", cap, "--compress", compress, "--store", bench.programs.store, "--",
             *_program(bench, case, accesses, build)]
    return _run(bench, words, bench.total_bytes)


def _seconds(run: process.Result) -> float:
    """Of the accesses; raises where there are none."""
    if not run.ok or not run.report.get("right"):
        raise RuntimeError(run.why_failed())
    return run.report["seconds"]


@contextlib.contextmanager
def _swap_on_zram(size_bytes: int):
    with workspace.workspace(pathlib.Path(tempfile.gettempdir())) as directory:
        with workspace.undisturbed():
            device = zram.make_swap(directory, size_bytes)
        with swap.setting(swap.PAGE_CLUSTER, "0"), swap.setting(swap.MULTIGEN_LRU, "y"):
            yield device


def _on_zram(bench: Bench, case: tuple, accesses: int, limit_bytes: int) -> tuple[process.Result, zram.Held]:
    with _swap_on_zram(2 * int(SIZES[case[0]] * bench.total_bytes)) as device:
        run = _run(bench, _program(bench, case, accesses), limit_bytes)
        return run, zram.held(device)


def _best_limit(bench: Bench, case: tuple) -> int:
    """For the group beside zram, so that both take the total: what is not in the group is on the device, at its ratio."""
    total, data = bench.total_bytes, SIZES[case[0]] * bench.total_bytes
    limit = total // 2
    run, held = _on_zram(bench, case, ACCESSES["zram"] // 20, limit)
    _seconds(run)
    ratio = (data - limit) / held.most_bytes
    return int((total - data / ratio) / (1 - 1 / ratio))


def beside_zram(bench: Bench) -> None:
    if reason := swap.why_not() or zram.why_not(2 * int(max(SIZES.values()) * bench.total_bytes)):
        return bench.skip("zram", reason)
    for case in ((kind, way, threads) for kind in ("fourfold", "twofold") for way in WAYS for threads in THREADS):
        name = _name(case)
        try:
            limit = _best_limit(bench, case)
            ours, peer, totals = {build: [] for build in BUILDS}, [], []
            for _ in range(TURNS):
                run, held = _on_zram(bench, case, ACCESSES["zram"], limit)
                peer.append(_seconds(run))
                totals.append((limit + held.most_bytes) / bench.total_bytes)
                for build in BUILDS:
                    ours[build].append(_seconds(_ours(bench, case, ACCESSES["zram"], "auto", build)))
        except (RuntimeError, zram.Unavailable) as error:
            bench.failure("zram", name, str(error))
            continue
        note = f"zram: {limit // MIB} MiB in the group, {max(totals) * bench.total_bytes / MIB:.0f} MiB with the device"
        for build, words in BUILDS.items():
            _add(bench, "zram", f"{words}, {name}", ours[build], peer, ZRAM_TARGET, note=note)
    return None


def beside_disk(bench: Bench) -> None:
    for case in ((kind, way, 1) for kind in SIZES for way in WAYS):
        try:
            ours, peer = [], []
            for _ in range(TURNS):
                peer.append(_seconds(_ours(bench, case, ACCESSES["disk"], "off")))
                ours.append(_seconds(_ours(bench, case, ACCESSES["disk"], "auto")))
        except RuntimeError as error:
            bench.failure("disk", _name(case), str(error))
            continue
        if case[0] == "noise":  # what is asked is how much longer it takes
            _add(bench, "disk", _name(case), ours, peer, NOISE_TARGET, at_most=True)
        else:
            _add(bench, "disk", _name(case), ours, peer, DISK_TARGET)


def _name(case: tuple) -> str:
    kind, way, threads = case
    return f"{kind}, {SIZES[kind]:g} times the memory: {way}, {threads} thread{'s' if threads > 1 else ''}"


def _add(bench: Bench, section: str, name: str, ours: list[float], peer: list[float], target: float, **more) -> None:
    at_most = more.setdefault("at_most", False)
    ratio = statistics.median(a / b if at_most else b / a for a, b in zip(ours, peer, strict=True))
    bench.add(Row(section, name, statistics.median(ours), statistics.median(peer), ratio=ratio, target=target, **more))


SECTIONS = {"zram": beside_zram, "disk": beside_disk}


def main(arguments: list[str]) -> int:
    made = command.parser("compressed", __doc__, SECTIONS, None)
    command.add_scale(made)
    options = made.parse_args(arguments)

    def make_bench(programs: Programs) -> Bench:
        programs.allowance_bytes = programs.allowance_bytes // 4
        return Bench("compressed", programs=programs, scale=options.scale)

    about = {"memory": f"{TOTAL // options.scale // MIB} MiB in all, {TURNS} turns"}
    return command.run(options, about, 4 * TOTAL // options.scale, make_bench, SECTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
