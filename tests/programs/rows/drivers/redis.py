"""Drives redis-server: redis.py MIB TASK SPILLWAY-AND-SERVER... Prints what depends on the data alone.

TASK: save (BGSAVE while keys are overwritten), rewrite (BGREWRITEAOF likewise), replica (a second server follows the first).
The server's log goes to the file `log`, in the working directory; what Spillway says is on standard error.
"""
import hashlib
import os
import socket
import subprocess
import sys
import time

PIPELINE = 200
VALUE_BYTES = 2000
START_LIMIT_S, WAIT_LIMIT_S = 60, 250
SETTINGS = ("--port", "0", "--save", "", "--appendfsync", "no", "--enable-debug-command", "local", "--logfile", "log",
            "--repl-diskless-sync-delay", "0", "--repl-timeout", "300", "--auto-aof-rewrite-percentage", "0")


class Server:
    def __init__(self, words: list, name: str, *settings: str):
        os.makedirs(name, exist_ok=True)
        self.path = os.path.abspath(f"{name}/socket")
        self.process = subprocess.Popen([*words, "--unixsocket", self.path, "--dir", name, *SETTINGS, *settings],
                                        stdout=subprocess.DEVNULL)
        self.connection = self._connect()
        self.answers = self.connection.makefile("rb")
        self.wait_for("persistence", "loading:0")

    def _connect(self) -> socket.socket:
        end = time.monotonic() + START_LIMIT_S
        while True:
            made = socket.socket(socket.AF_UNIX)
            try:
                made.connect(self.path)
                made.settimeout(WAIT_LIMIT_S)
                return made
            except OSError:
                made.close()
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the server does not start: exit status {self.process.poll()}")
                time.sleep(0.05)

    def ask(self, *commands: tuple) -> list:
        found = []
        for begin in range(0, len(commands), PIPELINE):
            some = commands[begin:begin + PIPELINE]
            self.connection.sendall(b"".join(map(encoded, some)))
            found += [self._answer() for _ in some]
        return found

    def _answer(self):
        line = self.answers.readline().rstrip(b"\r\n")
        if not line:
            sys.exit(f"the server left: exit status {self.process.wait()}")
        if line[:1] == b"-" and not line.startswith(b"-LOADING"):
            sys.exit(f"the server answered {line.decode()}")
        if line[:1] != b"$" or line == b"$-1":
            return line
        size = int(line[1:])
        return self.answers.read(size + 2)[:size]

    def wait_for(self, section: str, *wanted: str) -> str:
        end = time.monotonic() + WAIT_LIMIT_S
        while time.monotonic() < end:
            told = self.ask(("INFO", section))[0].decode()
            if set(wanted) <= set(told.splitlines()):  # whole lines: async_loading:0 is another
                return told
            time.sleep(0.1)
        sys.exit(f"not within {WAIT_LIMIT_S} s: {wanted}: {told}")

    def digest(self) -> str:
        return f"{self.ask(('DBSIZE',))[0].decode()} {self.ask(('DEBUG', 'DIGEST'))[0].decode()}"

    def stop(self) -> None:
        self.connection.sendall(encoded(("SHUTDOWN", "NOSAVE")))
        self.process.wait(WAIT_LIMIT_S)
        print("ended", self.process.returncode)


def encoded(command: tuple) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def value(key: int, version: int) -> bytes:
    block = hashlib.sha256(f"{key} {version}".encode()).digest()
    return (block * (VALUE_BYTES // len(block) + 1))[:VALUE_BYTES - key % 700]


def fill(server: Server, keys: range, version: int) -> None:
    for begin in range(keys.start, keys.stop, PIPELINE * keys.step):
        some = range(begin, min(begin + PIPELINE * keys.step, keys.stop), keys.step)
        server.ask(*(("SET", f"key:{key}", value(key, version)) for key in some))


def save(words: list, count: int) -> None:
    server = Server(words, "first")
    fill(server, range(count), 1)
    print("filled", server.digest())
    server.ask(("BGSAVE",))
    fill(server, range(0, count, 7), 2)
    server.wait_for("persistence", "rdb_bgsave_in_progress:0", "rdb_last_bgsave_status:ok")
    print("changed meanwhile", server.digest())
    server.stop()
    again = Server(words, "first")
    print("saved", again.digest())
    again.stop()


def rewrite(words: list, count: int) -> None:
    server = Server(words, "first", "--appendonly", "yes")
    fill(server, range(count), 1)
    server.ask(("BGREWRITEAOF",))
    fill(server, range(0, count, 7), 2)
    server.wait_for("persistence", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok")
    print("rewritten", server.digest())
    server.stop()
    again = Server(words, "first", "--appendonly", "yes")
    print("read again", again.digest())
    again.stop()


def replica(words: list, count: int) -> None:
    first = Server(words, "first", "--port", "27379")
    fill(first, range(count), 1)
    second = Server(words, "second", "--port", "27380", "--replicaof", "127.0.0.1 27379")
    fill(first, range(0, count, 7), 2)
    second.wait_for("replication", "master_link_status:up")
    first.ask(("WAIT", "1", str(WAIT_LIMIT_S * 1000)))
    print("first", first.digest())
    print("second", second.digest())
    second.stop()
    first.stop()


if __name__ == "__main__":
    {"save": save, "rewrite": rewrite, "replica": replica}[sys.argv[2]](sys.argv[3:], (int(sys.argv[1]) << 20) // VALUE_BYTES)
