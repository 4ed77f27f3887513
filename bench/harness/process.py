"""Runs a program and says what it took: time, processor time, memory of its control group, bytes through the disk."""
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from . import cgroup
from .workspace import undisturbed

SAMPLE_EVERY_S = 0.05
SECTOR_BYTES = 512  # the unit of block device statistics, whatever the device's own
PR_SET_PDEATHSIG = 1
ERROR_TAIL_LINES = 12
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Result:
    seconds: float
    processor_s: float
    timed_out: bool
    exit_status: int  # negative: the signal that ended it
    output: str
    errors: str
    usage: cgroup.Usage
    disk_read_bytes: int  # by anyone on the machine, during the run
    disk_write_bytes: int
    own_processor_s: float = 0  # of `processor_s`, without the processes that it waited for; in steps of TICK_S
    disk_samples: list[tuple[float, int]] = dataclasses.field(default_factory=list)  # (seconds, bytes both ways so far)

    @property
    def ok(self) -> bool:
        return self.exit_status == 0 and not self.timed_out

    @property
    def report(self) -> dict:
        """The program's own JSON: the last line it printed."""
        lines = self.output.strip().splitlines()
        try:
            return json.loads(lines[-1]) if lines else {}
        except json.JSONDecodeError:
            return {}

    @property
    def timed_from_s(self) -> float:
        """When the measured part began, if the program said so on its first line; otherwise all of it is measured."""
        lines = self.output.strip().splitlines()
        try:
            return json.loads(lines[0])["timed_from_s"]
        except (IndexError, KeyError, TypeError, json.JSONDecodeError):
            return 0

    def disk_bytes_between(self, begin_s: float, end_s: float) -> int:
        """Bytes read and written meanwhile, as exactly as the samples are dense."""
        before = max((total for at, total in self.disk_samples if at <= begin_s), default=0)
        until = max((total for at, total in self.disk_samples if at <= end_s), default=0)
        return until - before

    def why_failed(self) -> str:
        if self.timed_out:
            return f"stopped after {self.seconds:.0f} s"
        if self.usage.out_of_memory_kills:
            return "killed: out of memory"
        tail = " / ".join(self.errors.strip().splitlines()[-ERROR_TAIL_LINES:])
        how = f"signal {-self.exit_status}" if self.exit_status < 0 else f"exit status {self.exit_status}"
        return f"{how}: {tail}" if tail else how


class Disk:
    """Counts the bytes that pass through the device below a directory."""

    def __init__(self, directory: pathlib.Path):
        device = os.stat(directory).st_dev
        self.statistics = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")

    def read_write_bytes(self) -> tuple[int, int]:
        if not self.statistics.exists():
            return 0, 0
        fields = self.statistics.read_text().split()
        return int(fields[2]) * SECTOR_BYTES, int(fields[6]) * SECTOR_BYTES


def end_with_parent() -> None:
    """In a new process: should this program be killed outright, its child must not live on with gigabytes of data."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _before_exec(group: cgroup.MemoryGroup | None) -> None:
    end_with_parent()
    if group is not None:
        group.enter()


def _own_processor_s(process_id: int) -> float:
    """Of a process that has ended and has not been waited for."""
    fields = pathlib.Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def _wait(child: subprocess.Popen, group: cgroup.MemoryGroup | None, disk: Disk, time_limit_s: float | None):
    """(rusage, processor seconds without its children's, timed out, disk samples). Samples memory and disk meanwhile."""
    start = time.monotonic()
    disk_before = sum(disk.read_write_bytes())
    samples = []
    timed_out = False
    while True:
        has_ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        samples.append((time.monotonic() - start, sum(disk.read_write_bytes()) - disk_before))
        if has_ended:
            own_s = _own_processor_s(child.pid)
            _, status, rusage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            return rusage, own_s, timed_out, samples
        if group is not None:
            group.sample()
        if time_limit_s is not None and not timed_out and time.monotonic() - start > time_limit_s:
            timed_out = True
            os.killpg(child.pid, signal.SIGKILL)
        time.sleep(SAMPLE_EVERY_S)


def _end(child: subprocess.Popen) -> None:
    if child.returncode is None:
        with undisturbed():
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def run(command: list, directory: pathlib.Path, *, limit_bytes: int | None = None, grouped: bool = True,
        time_limit_s: float | None = None, environment: dict | None = None, show_progress: bool = False,
        working_directory: pathlib.Path | None = None) -> Result:
    """Runs `command` in a control group of its own (if `grouped`), with temporary files and disk statistics of
    `directory`. show_progress: the program's standard error goes to ours instead of into the result. What the program
    leaves running in the group is ended."""
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(cgroup.memory_group(limit_bytes)) if grouped else None
        output = stack.enter_context(tempfile.TemporaryFile("w+", dir=directory, errors="replace"))
        errors = stack.enter_context(tempfile.TemporaryFile("w+", dir=directory, errors="replace"))
        disk = Disk(directory)
        read_before, written_before = disk.read_write_bytes()
        start = time.monotonic()
        if group is not None:
            stack.callback(group.kill_all)
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=None if show_progress else errors, start_new_session=True, cwd=working_directory,
                                 env={**os.environ, **(environment or {})}, preexec_fn=lambda: _before_exec(group))
        stack.callback(_end, child)
        rusage, own_s, timed_out, samples = _wait(child, group, disk, time_limit_s)
        seconds = time.monotonic() - start
        read_after, written_after = disk.read_write_bytes()
        output.seek(0)
        errors.seek(0)
        return Result(seconds=seconds, processor_s=rusage.ru_utime + rusage.ru_stime, timed_out=timed_out,
                      exit_status=child.returncode, own_processor_s=own_s, output=output.read(), errors=errors.read(),
                      usage=group.finish() if group else cgroup.Usage(peak_program_bytes=rusage.ru_maxrss * 1024),
                      disk_read_bytes=read_after - read_before, disk_write_bytes=written_after - written_before,
                      disk_samples=samples)
