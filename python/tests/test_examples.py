"""python/examples on small data that is still larger than its cap."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def call(name, *words, cwd, start=()):
    done = subprocess.run(
        [sys.executable, *start, EXAMPLES / name, *words], cwd=cwd, capture_output=True, text=True, timeout=200
    )
    if done.returncode and done.stderr.startswith("skipped: "):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_knn(tmp_path):
    for _ in range(2):  # the second time the file is there
        said = call("knn.py", "--rows", "300000", "--queries", "40", "--memory", "64M", cwd=tmp_path)
        assert "40 of 40 found their own row first" in said and "cap 64.0 MiB" in said
    assert (tmp_path / "vectors.npy").stat().st_size > 100 << 20


def test_table(tmp_path):
    pytest.importorskip("pandas", reason="needs pandas")
    said = call("table.py", "--rows", "4000000", "--memory", "64M", cwd=tmp_path)
    assert "sums agree: True" in said and "all columns managed: True" in said


def test_loader(tmp_path):
    run = ["-m", "spillway", "run", "--memory", "64M"]
    for start, workers in (([], "0"), (run, "2")):
        words = ["--samples", "50000", "--memory", "32M", "--workers", workers]
        said = call("loader.py", *words, cwd=tmp_path, start=start)
        assert "50,000 samples" in said and "all right: True" in said
