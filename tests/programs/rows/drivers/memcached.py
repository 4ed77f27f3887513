"""Drives memcached: memcached.py MIB SPILLWAY-AND-SERVER... Sets values, changes some, and reads all of them again."""
import hashlib
import os
import socket
import subprocess
import sys
import time

VALUE_BYTES, PIPELINE, START_LIMIT_S = 4000, 100, 60


def value(key: int, version: int) -> bytes:
    block = hashlib.sha256(f"{key} {version}".encode()).digest()
    return (block * (VALUE_BYTES // len(block) + 1))[:VALUE_BYTES - key % 500]


def connect(process: subprocess.Popen) -> socket.socket:
    end = time.monotonic() + START_LIMIT_S
    while True:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect("socket")
            return made
        except OSError:
            made.close()
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the server does not start: exit status {process.poll()}")
            time.sleep(0.05)


def main() -> None:
    count = (int(sys.argv[1]) << 20) // VALUE_BYTES
    as_root = ["-u", "root"] if os.geteuid() == 0 else []
    process = subprocess.Popen([*sys.argv[2:], "-s", "socket", *as_root])
    connection = connect(process)
    answers = connection.makefile("rb")

    def store(keys: range, version: int) -> None:
        for begin in range(0, len(keys), PIPELINE):
            some = keys[begin:begin + PIPELINE]
            connection.sendall(b"".join(b"set key%d 0 0 %d\r\n%s\r\n" % (key, len(value(key, version)), value(key, version))
                                        for key in some))
            for _ in some:
                if answers.readline() != b"STORED\r\n":
                    sys.exit("a value was not stored")

    store(range(count), 1)
    store(range(0, count, 5), 2)
    right = 0
    for begin in range(0, count, PIPELINE):
        some = range(begin, min(begin + PIPELINE, count))
        connection.sendall(b"".join(b"get key%d\r\n" % key for key in some))
        for key in some:
            if answers.readline().startswith(b"VALUE"):
                wanted = value(key, 1 if key % 5 else 2)
                right += answers.read(len(wanted) + 2)[:-2] == wanted
                answers.readline()
    print("right", right, "of", count)
    connection.sendall(b"shutdown graceful\r\n")
    print("ended", process.wait(60))


if __name__ == "__main__":
    main()
