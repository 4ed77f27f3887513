#!/usr/bin/env python3
"""A pandas table larger than memory: `table.py --rows 1_000_000_000 --memory 8G`.

Columns are managed arrays, which pandas takes as they are (copy=False); what it makes itself, as results and temporary
columns, comes from numpy's allocator. Objects of Python (texts as objects) are not numpy's: for those start the whole
program under Spillway: `python -m spillway run --memory 8G script.py`.
"""

import argparse

import numpy as np
import pandas as pd
import spillway


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--memory", default="256M", help="cap on the memory for data")
    parser.add_argument("--store", help="directory for what does not fit [$TMPDIR, or /tmp]")
    given = parser.parse_args()
    if not spillway.is_preloaded():  # under `spillway run` options are the run's
        spillway.configure(memory=given.memory, store=given.store)

    random = np.random.default_rng(3)
    columns = {
        "key": spillway.empty(given.rows, "i4"),
        "price": spillway.empty(given.rows),
        "count": spillway.empty(given.rows),
    }
    step = 1 << 20
    for begin in range(0, given.rows, step):
        end = min(begin + step, given.rows)
        columns["key"][begin:end] = random.integers(0, given.groups, end - begin)
        columns["price"][begin:end] = random.random(end - begin)
        columns["count"][begin:end] = random.integers(1, 10, end - begin)
    table = pd.DataFrame(columns, copy=False)

    with spillway.numpy_allocator("1M"):
        table["total"] = table["price"] * table["count"]
        totals = table.groupby("key")["total"].sum()
        best = table.nlargest(3, "total")
    print(totals.describe().to_string())
    print(best.to_string(index=False))
    # The same by numpy alone, a piece at a time.
    check = np.zeros(given.groups)
    for begin in range(0, given.rows, step):
        part = slice(begin, begin + step)
        check += np.bincount(columns["key"][part], columns["price"][part] * columns["count"][part], given.groups)
    print("sums agree:", bool(np.allclose(totals.reindex(range(given.groups), fill_value=0), check)))
    managed = all(spillway.is_managed(table[name].to_numpy()) for name in table)
    print("all columns managed:", managed)
    print(spillway.statistics())


if __name__ == "__main__":
    main()
