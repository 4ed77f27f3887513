#!/usr/bin/env python3
"""Nearest neighbours in a matrix larger than memory: `knn.py --rows 200_000_000 --file /mnt/nvme/vectors.npy`.

The matrix is a .npy file, made when it is not there: 200 M rows of 128 numbers are 100 GB. Queries are rows of it with
a little noise, so each has to find its own row first. All queries are compared with one piece of the matrix after the
other, by one product of matrices each, so that the file is read once, in order.
"""

import argparse
import os
import time

import numpy as np
import spillway

PIECE_BYTES = 32 << 20


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the matrix")
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("-k", type=int, default=10, help="neighbours of each")
    parser.add_argument("--file", default="vectors.npy", help="where the matrix is, or is made")
    parser.add_argument("--memory", default="256M", help="cap on the memory for data")
    return parser.parse_args()


def make(file: str, rows: int, columns: int) -> None:
    print(f"making {file}: {rows:,} rows of {columns} numbers")
    matrix = spillway.open_memmap(file, "w+", "f4", (rows, columns))
    random, step = np.random.default_rng(1), max(1, PIECE_BYTES // (4 * columns))
    for begin in range(0, rows, step):
        part = matrix[begin : begin + step]
        part[...] = random.standard_normal(part.shape, "f4")
    matrix.flush()


def nearest(matrix: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Row numbers of the k nearest rows of each query, nearest first: shape (queries, k)."""
    step = max(k, PIECE_BYTES // (matrix.itemsize * matrix.shape[1]))
    best, rows = np.full((len(queries), 0), np.inf, "f4"), np.zeros((len(queries), 0), "i8")
    for begin in range(0, len(matrix), step):
        part = matrix[begin : begin + step]
        # |x - q|^2 but for |q|^2, which is the same for all x.
        distances = np.einsum("ij,ij->i", part, part) - 2 * (queries @ part.T)
        numbers = np.broadcast_to(np.arange(begin, begin + len(part)), distances.shape)
        distances, numbers = np.hstack([best, distances]), np.hstack([rows, numbers])
        chosen = np.argpartition(distances, min(k, distances.shape[1]) - 1)[:, :k]
        best, rows = np.take_along_axis(distances, chosen, 1), np.take_along_axis(numbers, chosen, 1)
    return np.take_along_axis(rows, np.argsort(best), 1)


def main() -> None:
    given = arguments()
    if not spillway.is_preloaded():  # under `spillway run` options are the run's
        spillway.configure(memory=given.memory, store=os.path.dirname(os.path.abspath(given.file)))
    if not os.path.exists(given.file):
        make(given.file, given.rows, given.columns)
    matrix = spillway.open_memmap(given.file, "r")
    spillway.advise(matrix, "sequential")
    random = np.random.default_rng(2)
    wanted = np.sort(random.choice(len(matrix), given.queries, replace=False))
    queries = matrix[wanted] + 0.01 * random.standard_normal((given.queries, matrix.shape[1]), "f4")
    begin = time.monotonic()
    found = nearest(matrix, queries, given.k)
    took = time.monotonic() - begin
    print(f"{given.queries} queries, {len(matrix):,} rows, {matrix.nbytes / 2**30:.1f} GiB: {took:.1f} s")
    print(f"{np.count_nonzero(found[:, 0] == wanted)} of {given.queries} found their own row first")
    print(spillway.statistics())


if __name__ == "__main__":
    main()
