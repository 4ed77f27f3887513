"""Runs a row natively, under Spillway and beside swap, and says what came of it."""
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess

from harness import cgroup, process, swap

import packages
from row import DATA_PER_CAP, Data, Row

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DATA = ROOT / "build" / "programs-data"
MIB = 1 << 20
OK, REMARK, REFUSED, FAILED, SKIPPED = "ok", "remark", "refused", "FAILED", "skipped"
# On top of a cap, for code, stacks and small allocations. The runtime says nothing below this, either
# (src/process/native_memory.h), and the control groups of both sides have it.
ALLOWANCE_BYTES = 32 * MIB
# The runtime says that a run holds more when it has done so for this long (kOverNs there), and by how much samples may
# be late. What is shorter, which happens after forks, is a remark.
OVER_S = 1.25
# What a run gets that was killed at its limit, to learn how much it would have had.
LOOSE_LIMITS = 8
# Native that is much slower on swap than Spillway is not waited for; the page says "more than".
SWAP_PER_SPILLWAY, SWAP_LIMIT_MIN_S = 2, 20
LAST_LINES, MESSAGE_CHARACTERS_MAX = 25, 300
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}


def allowed_bytes(cap_bytes: int) -> int:
    """What a run with such a cap may hold: the runtime's own rule of when to say that it is more."""
    return cap_bytes + max(cap_bytes // 10, ALLOWANCE_BYTES + cap_bytes // 20)


@dataclasses.dataclass
class Outcome:
    row: Row
    result: str
    why: str = ""  # remark, reason, or what is wrong
    version: str = ""
    native_s: float = 0
    native_peak_bytes: int = 0
    spillway_s: float = 0
    peak_bytes: int = 0
    swap_s: float = 0
    swap_note: str = ""
    details: str = ""  # for the log


@dataclasses.dataclass
class Run:
    result: process.Result
    printed: str  # checksums of what has to be the same
    place: pathlib.Path

    @property
    def messages(self) -> list[str]:
        """What the runtime said, each line once, without directories of this run and their like."""
        lines = [line for line in self.result.errors.splitlines() if line.startswith("spillway:")]
        told = (line.removeprefix("spillway:").strip() for line in lines)
        return list(dict.fromkeys(line.replace(f"{self.place}/work/", "").replace(str(self.place), "DIR") for line in told))


class Runner:
    """`place`: a directory on the disk that is used; `build`: of Spillway."""

    def __init__(self, build: pathlib.Path, place: pathlib.Path, with_swap: bool):
        self.build = build
        self.place = place
        self.grouped = cgroup.why_not() is None
        self.why_no_swap = "not asked for" if not with_swap else swap.why_not() or cgroup.why_not()

    def filled(self, words, row: Row | None = None, data: pathlib.Path | None = None, prefix: tuple = ()) -> list[str]:
        names = {"{data}": str(data or (DATA / row.data.directory if row and row.data else "")),
                 "{work}": str(self.place / "work"), "{python}": str(packages.VENV_PYTHON), "{rows}": str(HERE / "rows"),
                 "{cap}": str(row.cap_mib * MIB if row else 0)}
        made = []
        for word in words if "{spillway}" in words else ("{spillway}", *words):
            if word == "{spillway}":
                made += prefix
                continue
            for name, value in names.items():
                word = word.replace(name, value)
            made.append(word)
        return made

    def make_data(self, data: Data) -> None:
        if (DATA / data.directory).exists():
            return
        DATA.mkdir(parents=True, exist_ok=True)
        fresh = DATA / f".{data.directory}.{os.getpid()}"
        fresh.mkdir()
        print(f"programs: making the data {data.name}", flush=True)
        try:
            subprocess.run(self.filled(data.command, data=fresh), cwd=fresh, check=True, env={**os.environ, **ENVIRONMENT})
            with contextlib.suppress(OSError):  # another run made the same meanwhile
                fresh.rename(DATA / data.directory)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def version(self, row: Row) -> str:
        told = subprocess.run(self.filled(row.version, row), capture_output=True, text=True, errors="replace", check=False)
        lines = (told.stdout + told.stderr).strip().splitlines()
        return lines[0].strip() if lines else "unknown"

    def spillway_words(self, row: Row) -> tuple:
        store = self.place / "store"
        store.mkdir(exist_ok=True)
        return (str(self.build / "bin" / "spillway"), "run", "--memory", str(row.cap_mib * MIB), "--store", str(store),
                *row.options, "--")

    def run(self, row: Row, prefix: tuple = (), limit_bytes: int | None = None, limit_s: float | None = None) -> Run:
        work = self.place / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        result = process.run(self.filled(row.command, row, prefix=prefix), self.place, grouped=self.grouped,
                             limit_bytes=limit_bytes if self.grouped else None, time_limit_s=limit_s or row.limit_s,
                             environment=ENVIRONMENT | dict(row.environment), working_directory=work)
        printed = [f"{len(result.output)} characters {hashlib.sha256(result.output.encode()).hexdigest()}"]
        for name in row.compares:
            file = work / name
            printed.append(f"{name} {_checksum(file)}" if file.is_file() else f"{name} is missing")
        return Run(result, "\n".join(printed), self.place)

    def try_row(self, row: Row) -> Outcome:
        reason = packages.why_not(row, lambda words: self.filled(words, row))
        if reason:
            return Outcome(row, SKIPPED, reason)
        outcome = Outcome(row, OK, version=self.version(row))
        try:
            if row.data:
                self.make_data(row.data)
            self._try(row, outcome)
        except subprocess.CalledProcessError as error:
            outcome.result, outcome.why = FAILED, f"its data could not be made: {error}"
        finally:
            shutil.rmtree(self.place / "work", ignore_errors=True)
            shutil.rmtree(self.place / "store", ignore_errors=True)
        return outcome

    def _try(self, row: Row, outcome: Outcome) -> None:
        native = self.run(row)
        usage = native.result.usage
        outcome.native_s, outcome.native_peak_bytes = native.result.seconds, usage.peak_program_bytes
        outcome.details += _log("native", native)
        if not native.result.ok:
            outcome.result, outcome.why = FAILED, f"natively: {native.result.why_failed()}"
            return
        if usage.peak_total_bytes and usage.peak_total_bytes < DATA_PER_CAP * row.cap_mib * MIB:
            outcome.result = FAILED
            outcome.why = f"the row is too small: natively it has {usage.peak_total_bytes // MIB} MiB"
            return
        allowed = allowed_bytes(row.cap_mib * MIB)
        ours = self.run(row, self.spillway_words(row), allowed)
        outcome.details += _log("spillway", ours)
        killed = ours.result.usage.out_of_memory_kills > 0
        if killed:
            ours = self.run(row, self.spillway_words(row), LOOSE_LIMITS * allowed)
            outcome.details += _log("spillway, with a loose limit", ours)
        outcome.spillway_s, outcome.peak_bytes = ours.result.seconds, ours.result.usage.peak_program_bytes
        outcome.result, outcome.why = self.verdict(row, native, ours)
        if killed and outcome.result in (OK, REMARK):
            outcome.result = REMARK
            outcome.why = "; ".join(text for text in (outcome.why, f"killed in a control group of {allowed // MIB} MiB") if text)
        if outcome.result in (OK, REMARK):
            self._beside_swap(row, native, outcome, allowed)

    def verdict(self, row: Row, native: Run, ours: Run) -> tuple[str, str]:
        said = "; ".join(ours.messages)[:MESSAGE_CHARACTERS_MAX]
        if row.refused:
            if ours.result.exit_status == 0 or row.refused not in ours.result.errors:
                return FAILED, f"was to be refused with: {row.refused}; {ours.result.why_failed()}"
            return REFUSED, row.remark or said
        if ours.result.timed_out:
            return FAILED, f"no end within {row.limit_s:.0f} s{': ' if said else ''}{said}"
        if not ours.result.ok:
            return FAILED, ours.result.why_failed()
        if ours.printed != native.printed:
            return FAILED, "the result differs from native's"
        left = [path.name for path in (self.place / "store").iterdir()]
        if left:
            return FAILED, f"left in the store: {', '.join(left[:5])}"
        usage, allowed = ours.result.usage, allowed_bytes(row.cap_mib * MIB)
        over, above_s = usage.peak_program_bytes - allowed, usage.longest_above_s(allowed)
        moments = ""
        if self.grouped and over > 0 and "--memory is" not in said:
            moments = f"holds up to {over // MIB} MiB more than it may, {above_s:.1f} s at a time, and does not say so"
            if above_s > OVER_S:
                return FAILED, moments
        remarks = [text for text in (row.remark, said, moments) if text]
        return (REMARK if remarks else OK), "; ".join(remarks)

    def _beside_swap(self, row: Row, native: Run, outcome: Outcome, limit_bytes: int) -> None:
        if self.why_no_swap:
            outcome.swap_note = self.why_no_swap
            return
        limit_s = min(row.limit_s, max(SWAP_LIMIT_MIN_S, SWAP_PER_SPILLWAY * outcome.spillway_s))
        size_bytes = max(2 * row.data_mib * MIB, 2 * outcome.native_peak_bytes)
        with swap.swap_file(self.place, size_bytes):
            swapped = self.run(row, limit_bytes=limit_bytes, limit_s=limit_s)
        outcome.details += _log("native beside swap", swapped)
        outcome.swap_s = swapped.result.seconds
        if swapped.result.timed_out:
            outcome.swap_note = "more than"
        elif not swapped.result.ok or swapped.printed != native.printed:
            outcome.swap_s, outcome.swap_note = 0, "fails"


def _checksum(file: pathlib.Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _log(name: str, run: Run) -> str:
    result = run.result
    ended = "stopped at its time limit" if result.timed_out else f"exit status {result.exit_status}"
    tail = ["  " + line for text in (result.output, result.errors) for line in text.splitlines()[-LAST_LINES:]]
    return "\n".join([f"{name}: {ended} after {result.seconds:.2f} s, {result.usage.peak_program_bytes // MIB} MiB "
                      f"(with page cache {result.usage.peak_total_bytes // MIB}), "
                      f"{result.usage.out_of_memory_kills} kills for want of memory", *run.printed.splitlines(), *tail, ""])
