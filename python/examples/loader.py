#!/usr/bin/env python3
"""A PyTorch DataLoader over a .npy file larger than memory: `python -m spillway run --memory 4G loader.py`.

Worker processes begin as forks: they have the file's memory as their parent mapped it, and share its cap. They have
handlers of their own for SIGBUS, so the program has to be started under Spillway, which knows of both; without workers
it need not.
"""

import argparse
import os
import sys
import time

import numpy as np
import spillway

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError as error:
    sys.exit(f"skipped: PyTorch is not installed ({error}); pip install torch")


class Vectors(Dataset):
    """Sample i is row i of the file, and its number."""

    def __init__(self, file: str) -> None:
        self.rows = spillway.open_memmap(file, "r")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int):
        return torch.from_numpy(self.rows[index].copy()), index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--file", default="samples.npy")
    parser.add_argument("--memory", default="128M", help="cap on the memory for data")
    given = parser.parse_args()
    if given.workers and not spillway.is_preloaded():
        sys.exit("with --workers start it by: python -m spillway run --memory 128M " + " ".join(sys.argv))
    if not spillway.is_preloaded():  # under `spillway run` options are the run's
        spillway.configure(memory=given.memory)
    if not os.path.exists(given.file):
        made = spillway.open_memmap(given.file, "w+", "f4", (given.samples, given.columns))
        for begin in range(0, given.samples, 10_000):
            numbers = np.arange(begin, min(begin + 10_000, given.samples), dtype="f4")
            made[begin : begin + 10_000] = numbers[:, None]
        made.flush()
        del made
    data = Vectors(given.file)
    spillway.advise(data.rows, "random")
    loader = DataLoader(data, batch_size=512, shuffle=True, num_workers=given.workers)
    begin, count, right = time.monotonic(), 0, True
    for batch, numbers in loader:
        count += len(batch)
        right &= bool((batch == numbers[:, None].to(batch.dtype)).all())
    print(f"{count:,} samples in {time.monotonic() - begin:.1f} s, all right: {right}")
    print(spillway.statistics())


if __name__ == "__main__":
    main()
