"""What it costs that a run explains itself. `./dev bench explaining`, or see --help. A fast device shows the most: --store.

  line      the line at the end, with the sample of blocks behind its advice: the share of the processor's samples (perf)
            that are in its functions
  metrics   --metrics on a socket, read every second: the share of the processor time that is the tool's, which reads
            what the program counts in any case
  beside    both again, as whole runs: processor time beside --quiet --curve off and beside no --metrics
  report    --report, which records all blocks that come back, beside none

Random reads and updates of four times the cap, recompiled and not. Shares are of whole runs of some seconds; a few turns
agree within a tenth of them. `beside` and `report`: processor time of both sides by turns, in changing order; a ratio is
the median of the turns' ratios, and `spread`: half of the turns lie within it. On a virtual machine a turn may be off by
6 %, so that hundreds of them would be needed to tell half a percent: that is why the first two count shares.
"""
import contextlib
import dataclasses
import pathlib
import re
import socket
import sys
import threading

from harness import command, process, shares
from harness.programs import Programs
from harness.report import Report

MIB = 1 << 20
CAP = 128 * MIB
TURNS = 25
SHARE_MAX = 0.005
SCRAPE_EVERY_S = 1
PLAIN = ("--quiet", "--curve", "off")
# Kernels of examples/micro: name, operations a run.
KERNELS = (("random-read", 400_000), ("random-update", 200_000))
VARIANTS = (("native", "as it is"), ("mapped", "recompiled"))
# Where the line's work is done: what is called for each block, the account in the ledger, the line itself.
LINE = re.compile(r"\b(CurveObserver|GhostDistances|Closing|closing_line|advice_from|run_totals|account|FaultPlace|miss_place)\b")
SAID = re.compile(rb"spillway_process_evictions_total\{[^}]*\} [1-9]")
IS_CALLED = "CurveObserver"  # in every run


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    turns: int = TURNS

    def words(self, variant: str, kernel: str, operations: int, options: tuple) -> list:
        return [self.programs.spillway_command, "run", "--memory", CAP // self.scale, "--store", self.programs.store, *options, "--",
                self.programs.build / "examples" / variant / "micro", kernel, "--bytes", 4 * CAP // self.scale, "--ops",
                operations, "--rounds", 1, "--warmups", 1, "--threads", 1]

    def run(self, words: list) -> process.Result:
        return process.run(words, self.programs.store, grouped=self.programs.grouped)


def _each(bench: Bench, section: str, share) -> None:
    """`share` returns one of a run of the program and its kernel, or None and has said why."""
    for variant, name in VARIANTS:
        for kernel, operations in KERNELS:
            shares.add_median(bench, section, f"{name}, {kernel}",
                              lambda: share(f"{name}, {kernel}", variant, kernel, operations), SHARE_MAX)


def line(bench: Bench) -> None:
    if why_not := shares.why_not():
        return bench.skip("line", why_not)

    def share(name: str, variant: str, kernel: str, operations: int) -> float | None:
        run, by_function = shares.samples(bench.words(variant, kernel, operations, ()), bench.programs.store, bench.programs.grouped)
        if not run.ok:
            return bench.failure("line", name, run.why_failed())
        if not any(IS_CALLED in symbol for symbol in by_function):
            return bench.failure("line", name, f"no sample is in {IS_CALLED}: has it another name now?")
        return shares.share_of(LINE, by_function)

    _each(bench, "line", share)


@contextlib.contextmanager
def _scraped(path: pathlib.Path):
    done = threading.Event()
    answers: list[bytes] = []

    def scrape() -> None:
        while not done.wait(SCRAPE_EVERY_S):
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SCRAPE_EVERY_S)
                client.connect(str(path))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                while piece := client.recv(1 << 16):
                    answers.append(piece)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield answers
    finally:
        done.set()
        thread.join()


def metrics(bench: Bench) -> None:
    path = pathlib.Path(bench.programs.store) / "metrics.sock"

    def share(name: str, variant: str, kernel: str, operations: int) -> float | None:
        with _scraped(path) as answers:
            run = bench.run(bench.words(variant, kernel, operations, ("--metrics", path)))
        if not run.ok:
            return bench.failure("metrics", name, run.why_failed())
        if not SAID.search(b"".join(answers)):
            return bench.failure("metrics", name, "no answer had the evictions of a process")
        # As if it were one step more: less is not seen.
        return (run.own_processor_s + process.TICK_S) / (run.processor_s - run.own_processor_s)

    _each(bench, "metrics", share)


def _compare(bench: Bench, section: str, what: str, options: tuple, plain: tuple, target: float,
             beside=contextlib.nullcontext) -> None:
    for variant, name in VARIANTS:
        for kernel, operations in KERNELS:
            def run(explains: bool) -> process.Result:
                with beside() if explains else contextlib.nullcontext():
                    return bench.run(bench.words(variant, kernel, operations // bench.scale, options if explains else plain))

            shares.add_compared(bench, section, f"{what}: {name}, {kernel}", run, bench.turns, target)


def beside(bench: Bench) -> None:
    path = pathlib.Path(bench.programs.store) / "metrics.sock"
    _compare(bench, "beside", "line", (), PLAIN, 0)
    _compare(bench, "beside", "metrics", ("--metrics", path), (), 0, lambda: _scraped(path))


def report(bench: Bench) -> None:
    _compare(bench, "report", "report", ("--report", pathlib.Path(bench.programs.store) / "page.html"), (), 0)


SECTIONS = {"line": line, "metrics": metrics, "beside": beside, "report": report}


def main(arguments: list[str]) -> int:
    made = command.parser("explaining", __doc__, SECTIONS, None)
    command.add_scale(made)
    made.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"turns of both sides [{TURNS}]")
    options = made.parse_args(arguments)
    if options.turns < 2:
        made.error("--turns: at least 2, or there is no spread")
    return command.run(options, {"explaining": f"{options.turns} turns"}, 8 * CAP // options.scale,
                       lambda programs: Bench("explaining", programs=programs, scale=options.scale, turns=options.turns), SECTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
