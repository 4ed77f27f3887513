"""Tables in memory: pandas, polars, DuckDB, pyarrow."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import main, python_row  # noqa: E402

MIB = 1 << 20
ROWS_COUNT = 6 * MIB
KEYS = 200_000


def columns(count: int) -> dict:
    """Whole numbers, whose sums are the same in whatever order threads make them."""
    import numpy
    generator = numpy.random.default_rng(11)
    return {"key": generator.integers(0, KEYS, count), "day": generator.integers(0, 365, count),
            "value": generator.integers(0, 1 << 40, count), "weight": generator.integers(1, 100, count)}


def told(text: str) -> None:
    import hashlib
    print(len(text), hashlib.sha256(text.encode()).hexdigest())


def pandas_groupby_merge():
    """a frame of 6 M rows and 4 columns (192 MiB): merge with another, sort, group, pivot"""
    import numpy
    import pandas
    facts = pandas.DataFrame(columns(ROWS_COUNT))
    names = pandas.DataFrame({"key": numpy.arange(KEYS), "group": numpy.arange(KEYS) * 7919 % 1000})
    merged = facts.merge(names, on="key")
    merged["product"] = merged["value"] // merged["weight"]
    told(merged.groupby("group").agg({"value": "sum", "product": "max", "weight": "median"}).to_csv())
    told(merged.sort_values(["day", "key", "value"], kind="stable").iloc[::1000].to_csv(index=False))
    told(merged.pivot_table(index="day", columns="weight", values="value", aggfunc="max").to_csv())


def pandas_csv():
    """writes 1 M rows of numbers and texts as CSV, reads it (texts as Python's), counts and joins texts"""
    import pandas
    facts = pandas.DataFrame(columns(MIB))
    facts["name"] = ("customer " + facts["key"].astype(str)).astype(object)
    facts.to_csv("facts.csv", index=False)
    again = pandas.read_csv("facts.csv", dtype={"name": object})
    print(again.equals(facts))
    again["name"] = again["name"] + " of day " + again["day"].astype(str).astype(object)
    told(again["name"].value_counts().sort_index().head(5000).to_csv())


def polars_group_join():
    """a frame of 6 M rows and 4 columns (192 MiB): join, sort, group, window (its allocator is jemalloc)"""
    import polars
    facts = polars.DataFrame(columns(ROWS_COUNT))
    names = polars.DataFrame({"key": range(KEYS)}).with_columns(group=polars.col("key") * 7919 % 1000)
    merged = facts.join(names, on="key").with_columns(product=polars.col("value") // polars.col("weight"))
    told(merged.group_by("group").agg(polars.col("value").sum(), polars.col("product").max()).sort("group").write_csv())
    ordered = merged.sort(["day", "key", "value", "weight"])
    told(ordered.gather_every(1000).write_csv())
    told(ordered.with_columns(most=polars.col("value").max().over("day")).gather_every(999).write_csv())


def duckdb_sql():
    """a table of 4 M rows in its memory: aggregates, a join with itself, a sort (its own limit, else 80 % of the control group's, is 8 GiB)"""
    import duckdb
    connection = duckdb.connect(config={"memory_limit": "8GiB"})
    connection.execute("""create table facts as select (i * 7919) % 200000 as key, i % 365 as day,
        (hash(i) % 1099511627776)::bigint as value, (i % 97)::int as weight from range(4000000) t(i)""")
    queries = ("select day, sum(value), max(key), count(distinct key) from facts group by day order by day",
               "select a.day, sum(a.value % 1000), count(*) from facts a join facts b on a.value = b.value group by a.day order by 1",
               "select * from (select *, row_number() over (order by value, key, day) as place from facts) where place % 10007 = 0 order by place")
    for query in queries:
        told(repr(connection.execute(query).fetchall()))


def pyarrow_parquet():
    """a table of 6 M rows and 4 columns (192 MiB): sort, group, and a way through Parquet (its allocator is mimalloc)"""
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet
    facts = pyarrow.table(columns(ROWS_COUNT))
    ordered = facts.sort_by([("day", "ascending"), ("key", "ascending"), ("value", "ascending"), ("weight", "ascending")])
    pyarrow.parquet.write_table(ordered, "facts.parquet")
    again = pyarrow.parquet.read_table("facts.parquet")
    print(again.equals(ordered))
    grouped = again.group_by("key").aggregate([("value", "sum"), ("weight", "max")]).sort_by("key")
    told(str(grouped.slice(0, 5000).to_pydict()))


ROWS = [
    python_row(pandas_groupby_merge, package="pandas", pypi=("pandas",), cap_mib=128, data_mib=512),
    python_row(pandas_csv, package="pandas", pypi=("pandas",), cap_mib=128, data_mib=512),
    python_row(polars_group_join, package="polars", pypi=("polars", "numpy"), cap_mib=128, data_mib=512),
    python_row(duckdb_sql, package="duckdb", pypi=("duckdb",), cap_mib=128, data_mib=512),
    python_row(pyarrow_parquet, package="pyarrow", pypi=("pyarrow", "numpy"), cap_mib=128, data_mib=512,
               compares=("facts.parquet",)),
]

if __name__ == "__main__":
    main(globals())
