"""A terminal for a program under test: its screen by tmux, or its bytes and settings by a pty."""
import contextlib
import itertools
import os
import pathlib
import pty
import re
import select
import shlex
import signal
import subprocess
import termios
import time

from kit import Wrong, expect, program_of

TIME_LIMIT_S = 30
LOOK_EVERY_S = 0.05
# The size is the terminal's, not that of the one where the tests are started, which programs would believe first.
NOT_INHERITED = ("SPILLWAY_", "TMUX", "COLUMNS", "LINES")
_numbers = itertools.count()


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)} | {"LC_ALL": "C.UTF-8"} | more


class Screen:
    """What a program shows in a terminal of this size, and keys for it. Skipped where there is no tmux."""

    def __init__(self, place: pathlib.Path, *words, columns: int = 100, lines: int = 30, env: dict[str, str] | None = None):
        settings = place / "tmux.conf"
        settings.write_text("set -g status off\nset -g remain-on-exit on\nset -g default-terminal screen-256color\n")
        # A path of a socket may not be long.
        self._command = [program_of("tmux"), "-u", "-L", f"spillway-test-{os.getpid()}-{next(_numbers)}", "-f", str(settings)]
        self._env = _environment({"SHELL": "/bin/sh"} | (env or {}))
        # What the program itself sees, whatever else the server makes of the environment.
        set_env = ["env", *(f"{name}={value}" for name, value in (env or {}).items())]
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), shlex.join([*set_env, *map(str, words)]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tmux("kill-server", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        done = subprocess.run([*self._command, *words], capture_output=True, text=True, timeout=TIME_LIMIT_S, env=self._env)
        expect(done.returncode == 0 or not check, f"tmux {' '.join(words)}: {done.stderr}")
        return done.stdout

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def text(self, with_styles: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(["-e"] if with_styles else []))

    def until(self, pattern: str) -> str:
        """The screen as soon as it has this; Wrong with the screen when it never does."""
        return self.until_it(lambda text: re.search(pattern, text, re.M) is not None, pattern)

    def until_it(self, is_so, what: str) -> str:
        deadline = time.monotonic() + TIME_LIMIT_S
        while not is_so(text := self.text()):
            if time.monotonic() > deadline:
                raise Wrong(f"the screen never showed {what}:\n{text}")
            time.sleep(LOOK_EVERY_S)
        return text

    def exit_code(self) -> int:
        """Of the program, once it has ended; 128 and more: by a signal."""
        deadline = time.monotonic() + TIME_LIMIT_S
        while time.monotonic() < deadline:
            dead, status, by_signal = self._tmux("display-message", "-p", "#{pane_dead},#{pane_dead_status},#{pane_dead_signal}").strip().split(",")
            if dead == "1" and (status or by_signal):  # which it may learn a moment later
                return 128 + int(by_signal) if by_signal else int(status)
            if dead == "1":
                self._tmux("run-shell", "true")  # tmux misses the end of a child at times, until another one ends
            time.sleep(LOOK_EVERY_S)
        raise Wrong(f"the program goes on:\n{self.text()}")


class Bytes:
    """A program on a pty: everything it wrote, and the settings of its terminal before and after."""

    def __init__(self, *words, env: dict[str, str]):
        self._master, slave = pty.openpty()
        self._slave = os.dup(slave)
        termios.tcsetwinsize(slave, (24, 80)) if hasattr(termios, "tcsetwinsize") else None
        self.settings_before = termios.tcgetattr(self._slave)
        self.written = b""
        self.process = subprocess.Popen(list(map(str, words)), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        env=_environment({"TERM": "xterm-256color"} | env),
                                        preexec_fn=lambda: os.set_inheritable(slave, True))
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if ready:
            self.written += os.read(self._master, 65536)
        return bool(ready)

    def until(self, part: bytes) -> None:
        deadline = time.monotonic() + TIME_LIMIT_S
        while part not in self.written:
            expect(time.monotonic() < deadline, f"{part!r} was never written: {self.written[-2000:]!r}")
            self._read(LOOK_EVERY_S)

    def end(self) -> int:
        """The exit code, as subprocess has it, after the rest was read."""
        deadline = time.monotonic() + TIME_LIMIT_S
        while self.process.poll() is None:
            expect(time.monotonic() < deadline, f"the program goes on: {self.written[-2000:]!r}")
            self._read(LOOK_EVERY_S)
        while self._read(LOOK_EVERY_S):
            pass
        return self.process.returncode

    def settings(self) -> list:
        return termios.tcgetattr(self._slave)
