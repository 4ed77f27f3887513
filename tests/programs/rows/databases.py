"""Databases in one process."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import DEBIAN_PYTHON, Needs, Row, main, python_data  # noqa: E402

SQL = """
PRAGMA cache_size=-1000000;
CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT, size INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200000)
  INSERT INTO words SELECT i, printf('%08x-%s', (i * 7919) % 1000003, hex(zeroblob(60))), i % 101 FROM n;
SELECT size, count(*), min(word), max(word) FROM words GROUP BY size ORDER BY size LIMIT 12;
UPDATE words SET word = word || id WHERE id % 3 = 0;
SELECT sum(length(word)), count(DISTINCT size) FROM words;
PRAGMA integrity_check;
"""
MODELS = ("-keyrange_dist_a=14.18", "-keyrange_dist_b=-2.917", "-keyrange_dist_c=0.0164", "-keyrange_dist_d=-0.08082",
          "-keyrange_num=30", "-value_k=0.2615", "-value_sigma=25.45", "-iter_k=2.517", "-iter_sigma=14.236",
          "-mix_get_ratio=0.83", "-mix_put_ratio=0.14", "-mix_seek_ratio=0.03", "-sine_mix_rate_interval_milliseconds=5000",
          "-sine_a=1000", "-sine_b=0.000073", "-sine_d=4500")
DB = ("db_bench", "-seed=7", "-threads=1", "-key_size=48", "-value_size=400", "-compression_type=none", "-db=db")
# What has nothing of the time in it; what ran is counted, and what was looked for was found.
TOLD = ("sh", "-c", "\"$@\" > all 2> errors; s=$?; cat errors >&2; "
        "grep -oE '^(fillseq|fillrandom|readseq|readrandom|mixgraph) |[0-9]+ of [0-9]+ found|Gets:[0-9]+ Puts:[0-9]+ Seek:[0-9]+.*scan' all; exit $s",
        "sh", "{spillway}")


def statements():
    """for sqlite3"""
    with open("statements.sql", "w") as file:
        file.write(SQL)


def db_bench(name: str, about: str, *arguments: str, **of_row) -> Row:
    return Row(name=name, about=about, command=(*TOLD, *DB, *arguments), needs=Needs(debian=("rocksdb-tools",)),
               version=("sh", "-c", "ldb --version"), **of_row)


ROWS = [
    Row(name="sqlite_in_memory", about="1,200,000 rows in a database in memory: made, grouped, changed and checked",
        command=("sqlite3", ":memory:", ".read {data}/statements.sql"), needs=Needs(debian=("sqlite3",)),
        version=("sqlite3", "--version"), data=python_data(statements, python=DEBIAN_PYTHON), cap_mib=48, data_mib=192, limit_s=300),
    Row(name="sqlite_file", about="the same in a file, with a page cache of 1 GiB, without a journal",
        command=("sqlite3", "-cmd", "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;", "file.db", ".read {data}/statements.sql"),
        needs=Needs(debian=("sqlite3",)), compares=("file.db",), version=("sqlite3", "--version"),
        data=python_data(statements, python=DEBIAN_PYTHON), cap_mib=48, data_mib=192, limit_s=300),
    db_bench("rocksdb_plain_table", "fills 300,000 keys into plain tables, which it maps, and reads 60,000 (db_bench)",
             "-benchmarks=fillseq,readrandom", "-num=300000", "-reads=60000", "-use_plain_table=1", "-mmap_read=1", "-prefix_size=12",
             "-keys_per_prefix=0", "-write_buffer_size=134217728", "-disable_wal=1", cap_mib=32, data_mib=140),
    db_bench("rocksdb_mixgraph", "mixgraph: 60,000 gets, puts and seeks on 400,000 keys, block cache 192 MiB (db_bench)",
             "-benchmarks=fillseq,mixgraph", "-num=400000", "-reads=60000", "-cache_size=201326592", "-write_buffer_size=134217728",
             "-disable_wal=1", *MODELS, cap_mib=40, data_mib=180, limit_s=300),
]

if __name__ == "__main__":
    main(globals())
