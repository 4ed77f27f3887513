"""What a row of docs/PROGRAMS.md is: a program as its author ships it, the data it is given, and what it has to print.

Rows are in rows/, one file a family, as a list ROWS. README.md beside this file says how to add one. This file imports
nothing of the project's, since Python workloads import it within the program that is tried.
"""
import dataclasses
import hashlib
import inspect
import sys
from collections.abc import Callable

DATA_PER_CAP = 4
DEBIAN_PYTHON = "/usr/bin/python3"


@dataclasses.dataclass(frozen=True)
class Needs:
    """debian: packages of apt. pypi: packages of pip, in the virtual environment of `./dev programs --setup`. commands: found
    by PATH, whoever installed them. check: a command that has to succeed, for what else is needed; check_reason: what is said if
    it does not."""

    debian: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    check_reason: str = ""


@dataclasses.dataclass(frozen=True)
class Data:
    """Made once by `command` in an empty directory, which is kept in build/programs-data under `name` and `key`. What it
    writes may depend on nothing but the command. key: changes when what is made does."""

    name: str
    command: tuple[str, ...]
    key: str = ""

    @property
    def directory(self) -> str:
        text = "\0".join((*self.command, self.key))
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclasses.dataclass(frozen=True)
class Row:
    """One program with one task. In the words of `command` (and of version, and of Data's): {data} is the directory of
    `data`, {work} the directory it runs in, which is empty at first, {python} the Python of the virtual environment,
    {rows} the directory of this folder's rows, {cap} the cap in bytes. A word {spillway} is where `spillway run ... --`
    goes, and nothing natively; without one it goes first."""

    name: str
    about: str  # what it does with how much, for the page
    command: tuple[str, ...]
    cap_mib: int
    data_mib: int  # what the task has in memory natively, files that it maps or reads through the page cache included
    version: tuple[str, ...]  # a command; the first line that it prints
    needs: Needs = Needs()
    data: Data | None = None
    compares: tuple[str, ...] = ()  # files in {work}, beside what it prints, that have to be as native's
    options: tuple[str, ...] = ()  # of `spillway run`, beside --memory and --store; the page shows them
    environment: tuple[tuple[str, str], ...] = ()
    remark: str = ""  # what one has to know who runs it, though the result is right
    refused: str = ""  # the row is refused: this is part of the line that says why
    short: bool = False  # takes seconds; a test of `./dev test`
    limit_s: float = 400  # a run that takes longer hangs

    def __post_init__(self):
        if self.data_mib < DATA_PER_CAP * self.cap_mib:
            raise ValueError(f"{self.name}: {self.data_mib} MiB of data are not {DATA_PER_CAP} times {self.cap_mib}")


def _file_of(function: Callable) -> str:
    return inspect.getsourcefile(function).rsplit("/", 1)[-1]


def python_data(function: Callable, python: str = "{python}") -> Data:
    """What a function of a file of rows writes to the working directory. Its text is the key."""
    return Data(function.__name__, (python, "{rows}/" + _file_of(function), function.__name__), inspect.getsource(function))


def python_row(function: Callable, *, package: str, pypi: tuple[str, ...] = (), debian: tuple[str, ...] = (),
               **of_row) -> Row:
    """A function of a file of rows as a program of its own; the function's docstring is what the page says. `pypi`: it
    runs in the virtual environment, with wheels; otherwise with Debian's Python. `package`: whose version is told; none
    means Python's own."""
    python = "{python}" if pypi else DEBIAN_PYTHON
    tell = f"import importlib.metadata as m; print('{package}', m.version('{package}'))" if package else \
        "import platform; print('Python', platform.python_version())"
    needs = Needs(debian=("python3", *debian) if not pypi else debian, pypi=pypi)
    return Row(name=function.__name__, about=" ".join((function.__doc__ or "").split()), needs=needs,
               command=(python, "{rows}/" + _file_of(function), function.__name__), version=(python, "-c", tell), **of_row)


def main(names: dict) -> None:
    """For the end of a file of rows: runs the workload or maker of data that the first argument names."""
    names[sys.argv[1]](*sys.argv[2:])
