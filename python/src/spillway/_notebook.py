"""%spillway and %%spillway: what a notebook's process, or one of its cells, costs.

A cell runs as it would without the magic: its last expression is shown, and an exception is the cell's. While it runs,
a thread shows a line of progress, in a notebook by a display that is updated, in a terminal by one line that is written
over.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import contextvars
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, NoReturn, Optional

from ._process import Statistics, limit, statistics
from ._sizes import format_size

_MAGIC = "spillway"
_INTERVAL_S = 0.5


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"%%{_MAGIC}: {message}; %%{_MAGIC}? lists what there is")


def _parser() -> _Arguments:
    parser = _Arguments(prog=f"%%{_MAGIC}", add_help=False, allow_abbrev=False)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--interval", type=float, default=_INTERVAL_S)
    parser.add_argument("--memory")
    return parser


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole > 0 else "0 %"


def progress_line(seconds: float, cost: Statistics) -> str:
    """While a cell runs: what it has cost so far."""
    return (
        f"spillway: {seconds:.0f} s, {cost.misses:,} misses, read {format_size(cost.read_bytes)} "
        f"({format_size(cost.read_bytes / seconds if seconds > 0 else 0)}/s), wrote {format_size(cost.written_bytes)}, "
        f"{format_size(cost.cached_bytes)} in memory"
    )


def report(seconds: float, cost: Statistics) -> str:
    """Of a cell that has ended. Threads that wait at the same time count each."""
    waited = cost.waited_ns / 1e9
    return (
        f"spillway: {seconds:.2f} s, of which threads waited {waited:.2f} s ({_share(waited, seconds)}); "
        f"{cost.misses:,} misses; read {format_size(cost.read_bytes)}, wrote {format_size(cost.written_bytes)}; "
        f"{format_size(cost.cached_bytes)} of {format_size(cost.managed_bytes)} in memory, "
        f"cap {format_size(cost.memory_limit_bytes)}"
    )


class _Line:
    """A line that is shown and then replaced."""

    def show(self, text: str) -> None:
        raise NotImplementedError

    def end(self, text: str) -> None:
        raise NotImplementedError


class _NotebookLine(_Line):
    def __init__(self, display: Callable[..., Any]) -> None:
        self._display, self._handle = display, None

    def show(self, text: str) -> None:
        content = {"text/plain": text}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    end = show


class _TerminalLine(_Line):
    """Progress only where somebody looks."""

    def __init__(self) -> None:
        self._columns = 0

    def show(self, text: str) -> None:
        if sys.stderr.isatty():
            # One that is wrapped could not be written over.
            self._write(text[: shutil.get_terminal_size().columns - 1], "")

    def end(self, text: str) -> None:
        self._write(text, "\n")

    def _write(self, text: str, end: str) -> None:
        begin = "\r" if self._columns else ""
        print(begin + text.ljust(self._columns), end=end, file=sys.stderr, flush=True)
        self._columns = len(text)


def _line_of(shell: Any) -> _Line:
    if type(shell).__module__.startswith("ipykernel"):
        from IPython.display import display

        return _NotebookLine(display)
    return _TerminalLine()


@contextlib.contextmanager
def _measured(line: Optional[_Line], interval_s: float) -> Iterator[Callable[[], str]]:
    """Shows progress; gives what reports the cost when it has ended."""
    ended = threading.Event()
    begin, before = time.monotonic(), statistics()

    def look() -> None:
        while not ended.wait(interval_s):
            if line is not None:
                line.show(progress_line(time.monotonic() - begin, statistics() - before))

    # In the cell's context: what the thread shows belongs to the cell.
    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(look,), name="spillway-progress", daemon=True
    )
    thread.start()
    try:
        yield lambda: report(time.monotonic() - begin, statistics() - before)
    finally:
        ended.set()
        thread.join()


def _run(shell: Any, cell: str) -> None:
    """As the shell would: in its namespace, the last expression shown, exceptions out of it."""
    text = shell.transform_cell(cell)
    name = shell.compile.cache(text, shell.execution_count, raw_code=cell)
    tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
    # IPython looks for the semicolon that hides a result in the cell as a whole, which is a call of this magic.
    is_hidden = shell.displayhook.semicolon_at_end_of_expression(text)
    shown = [tree.body.pop()] if tree.body and isinstance(tree.body[-1], ast.Expr) and not is_hidden else []
    with shell.compile.extra_flags(0):
        pieces = [shell.compile(ast.Module(tree.body, []), name, "exec")]
        pieces += [shell.compile(ast.Interactive([expression]), name, "single") for expression in shown]
    for piece in pieces:
        exec(piece, shell.user_global_ns, shell.user_ns)


class Magics:
    """The two magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def line(self, words: str) -> None:
        """%spillway: one line about this process so far."""
        if words.strip():
            raise ValueError(f"%{_MAGIC} takes nothing; %%{_MAGIC} above a cell measures the cell")
        print(f"spillway: {statistics()}")

    def cell(self, words: str, cell: Optional[str] = None) -> None:
        """%%spillway [--quiet] [--interval SECONDS] [--memory SIZE]: runs the cell and says what it cost.

        Misses, bytes read and written, the time that threads waited for blocks, and what is in memory. --quiet: no
        progress while it runs. --interval: of the progress, 0.5 s. --memory: a lower cap while the cell runs (under
        `spillway run`).
        """
        arguments = _parser().parse_args(shlex.split(words))
        if not 0 < arguments.interval < threading.TIMEOUT_MAX:
            raise ValueError(f"%%{_MAGIC}: --interval is a number of seconds above 0")
        cap = limit(arguments.memory) if arguments.memory is not None else contextlib.nullcontext()
        line = _line_of(self._shell)
        with cap, _measured(None if arguments.quiet else line, arguments.interval) as cost:
            try:
                _run(self._shell, cell or "")
            finally:
                line.end(cost())


def load(shell: Any) -> None:
    """Registers both."""
    magics = Magics(shell)
    shell.register_magic_function(magics.line, "line", _MAGIC)
    shell.register_magic_function(magics.cell, "cell", _MAGIC)


def unload(shell: Any) -> None:
    """Takes both away."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_MAGIC, None)
