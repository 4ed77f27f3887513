"""Drives PostgreSQL: postgres.py SPILLWAY-AND-SERVER... As root it changes to the user postgres, whom the server wants."""
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import time

START_LIMIT_S = 60
SQL = """
SET work_mem = '600MB'; SET max_parallel_workers_per_gather = 0; SET jit = off;
CREATE TABLE words AS SELECT i AS id, md5(i::text) || repeat('x', 160) AS word FROM generate_series(1, 700000) AS i;
SELECT count(*), min(word), max(word) FROM words;
SELECT md5(string_agg(word, '')) FROM (SELECT word FROM words WHERE id % 50 = 0 ORDER BY word) AS sorted;
SELECT sum(rank) FROM (SELECT id * row_number() OVER (ORDER BY word) % 1000 AS rank FROM words) AS ranked;
SELECT count(DISTINCT left(word, 6)) FROM words;
"""


def main() -> None:
    words = sys.argv[1:]
    folder = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
    as_user = []
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        os.chown(".", account.pw_uid, account.pw_gid)
        os.chmod("..", 0o711)  # the run's directory, which is for its user alone
        if "--store" in words:
            shutil.chown(words[words.index("--store") + 1], "postgres", "postgres")
    here = os.getcwd()
    subprocess.run([*as_user, folder / "initdb", "-D", "data", "-A", "trust", "-U", "postgres", "--locale=C", "-E", "UTF8", "-N"],
                   check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([*as_user, *words, folder / "postgres", "-D", "data", "-k", here, "-h", "", "-c", "fsync=off",
                               "-c", "shared_buffers=64MB", "-c", "autovacuum=off"], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + START_LIMIT_S
    with socket.socket(socket.AF_UNIX) as probe:
        while server.poll() is None and time.monotonic() < end:
            try:
                probe.connect(".s.PGSQL.5432")
                break
            except OSError:
                time.sleep(0.1)
    told = subprocess.run([folder / "psql", "-h", here, "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1", "-c", "SELECT 1"],
                          capture_output=True, text=True, check=False)
    if told.returncode == 0:
        told = subprocess.run([folder / "psql", "-h", here, "-U", "postgres", "-At", "-v", "ON_ERROR_STOP=1"], input=SQL,
                              capture_output=True, text=True, check=False)
    server.terminate()
    said = server.communicate(timeout=60)[1]
    sys.stderr.write(told.stderr + "".join(line + "\n" for line in said.splitlines() if "spillway:" in line or "FATAL" in line))
    print(told.stdout, "psql", told.returncode, "server", server.returncode)
    sys.exit(told.returncode)


if __name__ == "__main__":
    main()
