"""What it costs that a run explains itself. `./dev bench explaining`, or see --help. A fast device shows the most: --store.

  line      the line at the end, with the sample of blocks behind its advice, beside --quiet --curve off
  metrics   --metrics on a socket, read every second, beside none
  report    --report, which records all blocks that come back, beside none

Random reads and updates of four times the cap, recompiled and not. Processor time of the program and, where it stays, of the
tool; turns of both sides by turns, in changing order; a ratio is the median of the turns' ratios. `spread`: half of the
turns lie within it.
"""
import contextlib
import dataclasses
import pathlib
import socket
import statistics
import sys
import threading

from harness import command, process
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
CAP = 128 * MIB
TURNS = 25
COST_MAX = 1.005
SCRAPE_EVERY_S = 1
PLAIN = ("--quiet", "--curve", "off")
# Kernels of examples/micro: name, operations a run.
KERNELS = (("random-read", 400_000), ("random-update", 200_000))


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    turns: int = TURNS


def _run(bench: Bench, variant: str, kernel: str, operations: int, options: tuple) -> process.Result:
    words = [bench.programs.spillway_command, "run", "--memory", CAP // bench.scale, "--store", bench.programs.store, *options, "--",
             bench.programs.build / "examples" / variant / "micro", kernel, "--bytes", 4 * CAP // bench.scale, "--ops",
             operations // bench.scale, "--rounds", 1, "--warmups", 1, "--threads", 1]
    return process.run(words, bench.programs.store, grouped=bench.programs.grouped)


def _compare(bench: Bench, section: str, options: tuple, plain: tuple, target: float, beside=contextlib.nullcontext) -> None:
    for variant, name in (("native", "as it is"), ("mapped", "recompiled")):
        for kernel, operations in KERNELS:
            ratios, ours, peers = [], [], []
            for turn in range(bench.turns):
                runs = {}
                for explains in (True, False) if turn % 2 else (False, True):
                    with beside() if explains else contextlib.nullcontext():
                        runs[explains] = _run(bench, variant, kernel, operations, options if explains else plain)
                    if not runs[explains].ok:
                        return bench.failure(section, f"{name}, {kernel}", runs[explains].why_failed())
                if runs[True].report["checksum"] != runs[False].report["checksum"]:
                    return bench.failure(section, f"{name}, {kernel}", "different results")
                ours.append(runs[True].processor_s)
                peers.append(runs[False].processor_s)
                ratios.append(ours[-1] / peers[-1])
            low, middle, high = statistics.quantiles(ratios, n=4)
            bench.add(Row(section, f"{name}, {kernel}", statistics.median(ours), statistics.median(peers), "s", middle, target=target,
                          note=f"spread {low:.3f} to {high:.3f}", details={"ratios": ratios}))


def line(bench: Bench) -> None:
    _compare(bench, "line", (), PLAIN, COST_MAX)


def metrics(bench: Bench) -> None:
    path = pathlib.Path(bench.programs.store) / "metrics.sock"

    @contextlib.contextmanager
    def scraped():
        done = threading.Event()

        def scrape() -> None:
            while not done.wait(SCRAPE_EVERY_S):
                with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(SCRAPE_EVERY_S)
                    client.connect(str(path))
                    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                    while client.recv(1 << 16):
                        pass

        thread = threading.Thread(target=scrape)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    _compare(bench, "metrics", ("--metrics", path), (), COST_MAX, scraped)


def report(bench: Bench) -> None:
    _compare(bench, "report", ("--report", pathlib.Path(bench.programs.store) / "page.html"), (), 0)


SECTIONS = {"line": line, "metrics": metrics, "report": report}


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
