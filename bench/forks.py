"""What a fork costs, beside the same program natively. `./dev bench forks`, or see --help.

  latency    a process with 1 GiB in memory forks, and its child ends at once: under a cap that it fits into, and under one that
             it does not, where some of its memory is on the store as well
  reads      children that read all of their parent's memory, four times the cap, beside a swap file under the same limit

Turns of both sides by turns; a figure is the median of some, and a ratio the median of the turns' ratios.
"""
import dataclasses
import statistics
import sys

from harness import command, process, swap
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
TURNS, FORKS = 5, 7
LATENCY_MAX = 1.2
CAP = 256 * MIB


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1


def _ours(bench: Bench, cap: int, *arguments, **limits) -> process.Result:
    words = [bench.programs.spillway_command, "run", "--memory", cap, "--store", bench.programs.store, "--", _program(bench), *arguments]
    return process.run(words, bench.programs.store, grouped=bench.programs.grouped, **limits)


def _native(bench: Bench, *arguments, **limits) -> process.Result:
    return process.run([_program(bench), *arguments], bench.programs.store, grouped=bench.programs.grouped, **limits)


def _program(bench: Bench):
    return bench.programs.build / "bin" / "forks_bench"


def latency(bench: Bench) -> None:
    resident = 1024 // bench.scale
    for name, mebibytes, cap in (("all fits", resident, 2 * resident * MIB), ("a tenth is on the store", resident * 11 // 10, resident * MIB)):
        ours, peer = [], []
        for _ in range(TURNS):
            for run, to in ((_native(bench, resident, FORKS), peer), (_ours(bench, cap, mebibytes, FORKS), ours)):
                if not run.ok or not run.report.get("right"):
                    return bench.failure("latency", name, run.why_failed())
                to.append(run.report)
        for key, what in (("fork_ms", "until fork() returns"), ("child_ms", "until the child has ended")):
            ratio = statistics.median(a[key] / b[key] for a, b in zip(ours, peer, strict=True))
            bench.add(Row("latency", f"{name}: {what}", statistics.median(a[key] for a in ours),
                          statistics.median(b[key] for b in peer), "ms", ratio, target=LATENCY_MAX if key == "fork_ms" else 0))


def reads(bench: Bench) -> None:
    cap = CAP // bench.scale
    mebibytes = 4 * cap // MIB
    limit = bench.programs.limit(cap)
    if limit is None:
        return bench.skip("reads", "no control groups")
    ours = _ours(bench, cap, mebibytes, 3, "read", limit_bytes=2 * limit)  # two processes, with a cap each
    if not ours.ok:
        return bench.failure("reads", "children read everything", ours.why_failed())
    if reason := swap.why_not():
        return bench.skip("reads", reason)
    with swap.swap_file(bench.programs.store, 8 * mebibytes * MIB):
        peer = _native(bench, mebibytes, 3, "read", limit_bytes=2 * limit, time_limit_s=300)
    bench.add(Row("reads", "children read everything", ours.seconds, peer.seconds, ratio=peer.seconds / ours.seconds, at_most=False,
                  peer_is_lower_bound=peer.timed_out))


SECTIONS = {"latency": latency, "reads": reads}


def main(arguments: list[str]) -> int:
    made = command.parser("forks", __doc__, SECTIONS, None)
    command.add_scale(made)
    options = made.parse_args(arguments)
    about = {"forks": f"{FORKS} a run, {TURNS} turns"}
    return command.run(options, about, 8 * 4 * CAP // options.scale, lambda programs: Bench("forks", programs=programs, scale=options.scale),
                       SECTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
