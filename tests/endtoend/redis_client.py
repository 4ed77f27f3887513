"""A client of Redis over a local socket: pipelines of commands, and what the server answers."""
import pathlib
import socket
import subprocess
import time

from kit import Wrong, expect

START_TIME_LIMIT_S = 60
# Few enough that answers wait in the socket while commands are still being sent.
PIPELINE = 100


class RedisClient:
    """To the server `process`, that will listen on `path`; an answer takes `time_limit_s` at most. An error it answers with is Wrong."""

    def __init__(self, path: pathlib.Path, process: subprocess.Popen, time_limit_s: float):
        until = time.monotonic() + START_TIME_LIMIT_S
        while not path.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        expect(path.exists(), "the server did not start" if process.poll() is None else f"the server ended: {process.stderr.read()[-800:]}")
        self.process = process
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(time_limit_s)
        self.connection.connect(str(path))
        self.answers = self.connection.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answers.close()
        self.connection.close()

    def ask(self, *commands: tuple) -> list:
        """What each command is answered with: text, a number, None, or a list of these."""
        found = []
        for begin in range(0, len(commands), PIPELINE):
            some = commands[begin:begin + PIPELINE]
            try:
                self.connection.sendall(b"".join(map(_encoded, some)))
                found += [self._answer() for _ in some]
            except OSError as error:
                raise Wrong(f"at {some[0]}: {error}; {self._last_words()}") from None
        return found

    def leave(self, *command) -> None:
        """A command that is answered with the end of the connection."""
        self.connection.sendall(_encoded(command))
        expect(self.answers.readline() == b"", f"{command} was answered")

    def _answer(self):
        line = self.answers.readline().decode(errors="replace").rstrip("\r\n")
        if not line:
            raise Wrong(f"the server left; {self._last_words()}")
        kind, rest = line[0], line[1:]
        expect(kind != "-", f"the server answered {rest}")
        if kind == "+":
            return rest
        if kind == ":":
            return int(rest)
        if kind == "*":
            return [self._answer() for _ in range(int(rest))]
        expect(kind == "$", f"no answer of Redis's: {line}")
        return None if rest == "-1" else self.answers.read(int(rest) + 2)[:-2].decode(errors="replace")

    def _last_words(self) -> str:
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "it runs on"
        return f"exit code {self.process.returncode}: {self.process.stderr.read()[-800:]}"


def _encoded(command: tuple) -> bytes:
    words = [str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
