"""What the disk itself can do, by fio, past the page cache: random reads, and reading and writing in order."""
import dataclasses
import json
import pathlib
import shutil
import subprocess

ENGINES = ("psync", "io_uring")
SEQUENTIAL_BLOCK_BYTES = 1 << 20
SEQUENTIAL_DEPTH = 8


@dataclasses.dataclass(frozen=True)
class Reads:
    reads_per_s: float
    processor_us: float  # a read, of fio's own threads
    engine: str


def why_not() -> str | None:
    return None if shutil.which("fio") else "fio is missing (./dev setup installs it)"


def why_no_engine(name: str) -> str | None:
    """None where fio has this engine."""
    if reason := why_not():
        return reason
    listed = subprocess.run(["fio", "--enghelp"], capture_output=True, text=True, check=False).stdout.split()
    return None if name in listed else f"this fio has no {name} engine"


def _run(file: pathlib.Path, seconds: int, *options: str) -> tuple[dict | None, str]:
    """What fio says of its only job (None where it failed), and its complaints."""
    command = ["fio", "--name=peer", f"--filename={file}", "--direct=1", "--thread", "--time_based",
               f"--runtime={seconds}", "--group_reporting", "--output-format=json", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if run.returncode != 0:
        return None, run.stderr.strip()
    return json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0], ""


def random_reads(file: pathlib.Path, block_bytes: int, jobs: int, seconds: int, depth: int = 1) -> Reads:
    """The better engine's rate with `jobs` readers, each with `depth` reads under way."""
    found = []
    for engine in ENGINES if depth == 1 else ("libaio", "io_uring"):
        job, complaint = _run(file, seconds, "--readonly", "--rw=randread", f"--bs={block_bytes}", f"--ioengine={engine}",
                              f"--iodepth={depth}", f"--numjobs={jobs}", "--norandommap")
        if job is not None:  # a kernel may forbid io_uring
            processor_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
            read = job["read"]
            found.append(Reads(read["iops"], processor_s * 1e6 / max(1, read["total_ios"]), engine))
    if not found:
        raise RuntimeError(f"fio failed: {complaint}")
    return max(found, key=lambda reads: reads.reads_per_s)


def sequential_bytes_per_s(file: pathlib.Path, file_bytes: int, read_percent: int, seconds: int) -> float:
    """Bytes read and written a second, in order and with large requests. Makes and overwrites the file."""
    job, complaint = _run(file, seconds, "--rw=rw", f"--rwmixread={read_percent}", f"--size={file_bytes}",
                          f"--bs={SEQUENTIAL_BLOCK_BYTES}", f"--iodepth={SEQUENTIAL_DEPTH}", "--ioengine=libaio")
    if job is None:
        raise RuntimeError(f"fio failed: {complaint}")
    return job["read"]["bw_bytes"] + job["write"]["bw_bytes"]
