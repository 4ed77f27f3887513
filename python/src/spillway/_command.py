"""The command line: `python -m spillway`, and the console script `spillway`.

`run` and `advise` take this interpreter for what follows their options, unless that is a program and no script.
Everything else goes to the tool as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Optional

from ._installation import find_tool, is_binary

_EXIT_USAGE = 2
# Of `run` and `advise`: all other options take a value.
_FLAGS = frozenset({"--no-check", "--quiet", "--help", "-h"})
_RUNS = frozenset({"run", "advise"})
_NO_TOOL = (
    "spillway: the program `spillway` is neither in this package nor in PATH; "
    "install the wheel for Linux on x86-64 (pip install spillway-memory), or Spillway itself"
)
_HELP = """
In Python: what follows the options is a script, or what python itself takes, and runs in this interpreter:
  python -m spillway run --memory 4G script.py ARGUMENTS     also: -m MODULE, -c CODE, -u script.py
  python -m spillway run --memory 4G -- PROGRAM ARGUMENTS    any other program
Without --, too, where PROGRAM is a binary or a name that is found in PATH.
"""


def _options_end(words: Sequence[str]) -> int:
    """How many words are options of the tool and their values."""
    at = 0
    while (at < len(words) and words[at].startswith("--") and words[at] != "--") or words[at : at + 1] == ["-h"]:
        at += 1 if "=" in words[at] or words[at] in _FLAGS else 2
    return min(at, len(words))


def _is_other_program(word: str) -> bool:
    """Whether it names no script: a binary, or, where there is no such file, a program of PATH."""
    if os.path.isfile(word):
        return is_binary(word)
    return not word.startswith("-") and shutil.which(word) is not None


def tool_words(arguments: Sequence[str]) -> list[str]:
    """What the tool is called with, for what `python -m spillway` was called with."""
    words = list(arguments)
    if not words or words[0] not in _RUNS:
        return words
    end = 1 + _options_end(words[1:])
    options, program = words[:end], words[end:]
    if program[:1] == ["--"] or "--help" in options or "-h" in options:
        return words
    if program and _is_other_program(program[0]):
        return [*options, "--", *program]
    return [*options, "--", sys.executable or "python3", *program]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Becomes the tool. Returns an exit code only where it cannot be started."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    tool = find_tool()
    if tool is None:
        print(_NO_TOOL, file=sys.stderr)
        return _EXIT_USAGE
    if (len(given) == 2 and given[0] in _RUNS and given[1] in ("--help", "-h")) or given in (["--help"], ["-h"]):
        return _help(str(tool), given)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(tool, ["spillway", *tool_words(given)])
    except OSError as error:
        print(f"spillway: {tool} cannot be started: {error.strerror}", file=sys.stderr)
        return _EXIT_USAGE


def _help(tool: str, words: Sequence[str]) -> int:
    code = os.spawnv(os.P_WAIT, tool, ["spillway", *words])
    print(_HELP, end="")
    return code
