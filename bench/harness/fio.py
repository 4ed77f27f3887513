"""What the disk itself can do: random reads by fio, past the page cache."""
import json
import pathlib
import shutil
import subprocess

ENGINES = ("psync", "io_uring")


def why_not() -> str | None:
    return None if shutil.which("fio") else "fio is missing (./dev setup installs it)"


def random_reads_per_s(file: pathlib.Path, block_bytes: int, jobs: int, seconds: int) -> tuple[float, str]:
    """The better engine's rate with `jobs` readers, each waiting for one read at a time, and its name."""
    rates = {}
    for engine in ENGINES:
        command = ["fio", "--name=peer", f"--filename={file}", "--readonly", "--rw=randread", f"--bs={block_bytes}",
                   "--direct=1", f"--ioengine={engine}", "--iodepth=1", f"--numjobs={jobs}", "--thread",
                   "--norandommap", "--time_based", f"--runtime={seconds}", "--group_reporting",
                   "--output-format=json"]
        run = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
        if run.returncode == 0:  # a kernel may forbid io_uring
            rates[engine] = json.loads(run.stdout[run.stdout.index("{"):])["jobs"][0]["read"]["iops"]
    if not rates:
        raise RuntimeError(f"fio failed: {run.stderr.strip()}")
    best = max(rates, key=rates.get)
    return rates[best], best
