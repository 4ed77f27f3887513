"""What something costs as a share of the processor time: where perf's samples of a run are. Whole runs differ by more than
a few percent on a virtual machine; the share of a run's samples does not."""
import pathlib
import re
import shutil
import statistics
import subprocess

from . import process
from .report import Report, Row

SAMPLES_A_SECOND = 5000
SHARE_TURNS = 3


def why_not() -> str:
    """Why there are no samples here, or ""."""
    return "" if shutil.which("perf") else "perf is not there; install linux-perf"


def samples(words: list, directory: pathlib.Path, grouped: bool) -> tuple[process.Result, dict[str, float]]:
    """Runs a command. Shares of its samples by function; all together 1."""
    data = directory / "perf.data"
    try:
        run = process.run(["perf", "record", "--quiet", "--freq", SAMPLES_A_SECOND, "--output", data, "--", *words], directory,
                          grouped=grouped)
        shown = subprocess.run(["perf", "report", "--stdio", "--input", data, "--fields", "overhead,symbol", "--field-separator", "|"],
                               capture_output=True, text=True)
    finally:
        data.unlink(missing_ok=True)
    shares = {}
    for line in shown.stdout.splitlines():
        share, bar, symbol = line.partition("|")
        if bar and not line.startswith("#"):
            shares[symbol.strip()] = float(share.strip().rstrip("%")) / 100
    whole = sum(shares.values()) or 1
    return run, {symbol: share / whole for symbol, share in shares.items()}


def share_of(pattern: re.Pattern, shares: dict[str, float]) -> float:
    return sum(share for symbol, share in shares.items() if pattern.search(symbol))


def add_median(report: Report, section: str, name: str, one_share, target: float) -> None:
    """A row of several turns. `one_share` does a turn; where it returns None, it has said why."""
    shares = [one_share() for _ in range(SHARE_TURNS)]
    if None in shares:
        return
    middle = statistics.median(shares)
    report.add(Row(section, name, 100 * middle, unit="%", ratio=middle, target=target,
                   note=f"{100 * min(shares):.2f} to {100 * max(shares):.2f} %", details={"shares": shares}))


def add_compared(report: Report, section: str, title: str, run, turns: int, target: float) -> None:
    """A row of the processor time of whole runs with something and without: run(True) and run(False) by turns, in changing order. The
    ratio is the median of the turns' ratios; half of the turns lie within the spread."""
    ours, peers = [], []
    for turn in range(turns):
        ended = {}
        for has_it in (True, False) if turn % 2 else (False, True):
            ended[has_it] = run(has_it)
            if not ended[has_it].ok:
                return report.failure(section, title, ended[has_it].why_failed())
        if ended[True].report["checksum"] != ended[False].report["checksum"]:
            return report.failure(section, title, "different results")
        ours.append(ended[True].processor_s)
        peers.append(ended[False].processor_s)
    ratios = [mine / other for mine, other in zip(ours, peers, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    report.add(Row(section, title, statistics.median(ours), statistics.median(peers), "s", middle, target=target,
                   note=f"spread {low:.3f} to {high:.3f}", details={"ratios": ratios}))
