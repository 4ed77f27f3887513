"""Servers: what they hold is asked for by a client, while they fork, save and replicate."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import DEBIAN_PYTHON, Needs, Row  # noqa: E402


def redis(task: str, about: str, mib: int, cap_mib: int, data_mib: int, before: tuple = (), **of_row) -> Row:
    return Row(name=f"redis_{task}", about=about, needs=Needs(debian=("redis-server", "python3")),
               command=(*before, DEBIAN_PYTHON, "{rows}/drivers/redis.py", str(mib), task,
                        *(() if before else ("{spillway}",)), "redis-server"),
               version=("redis-server", "--version"), cap_mib=cap_mib, data_mib=data_mib, limit_s=300, **of_row)


ROWS = [
    redis("save", "200 MiB of strings: BGSAVE while a seventh of them is overwritten; the file is loaded again", 200, 48, 200),
    redis("rewrite", "the same with an append-only file and BGREWRITEAOF", 200, 48, 200),
    redis("replica", "two servers below one cap, of which one follows the other, while keys are overwritten", 130, 64, 260,
          before=("{spillway}",)),
    Row(name="memcached", about="200 MiB of values: set, changed, and read",
        command=(DEBIAN_PYTHON, "{rows}/drivers/memcached.py", "200", "{spillway}", "memcached", "-m", "400", "-t", "2", "-A"),
        needs=Needs(debian=("memcached", "python3")), version=("memcached", "--version"), cap_mib=48, data_mib=200),
    Row(name="postgres", about="a table of 150 MiB: made, sorted, grouped and joined with work_mem of 600 MiB; 64 MiB of shared buffers",
        command=(DEBIAN_PYTHON, "{rows}/drivers/postgres.py", "{spillway}"),
        needs=Needs(debian=("postgresql", "python3"), commands=("setpriv",)), version=("sh", "-c", "/usr/lib/postgresql/*/bin/postgres --version"),
        cap_mib=96, data_mib=384),
]
