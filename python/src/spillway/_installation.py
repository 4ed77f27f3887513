"""Where the tool and the libraries are: in the wheel, or where the system has them installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Optional

_IN_WHEEL = Path(__file__).parent / "_installed"
_LIBRARY = "libspillway.so"


def is_binary(path: str) -> bool:
    """Whether it can be read and begins as programs and libraries do."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _tool_of_path() -> Optional[Path]:
    """The first `spillway` in PATH that is a binary: the wheel's console script has that name, too."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("spillway", path=folder) if folder else None
        if found is not None and is_binary(found):
            return Path(found).resolve()
    return None


def find_tool() -> Optional[Path]:
    """The program `spillway`: the wheel's if there is one, else that of PATH; None if there is neither."""
    own = _IN_WHEEL / "bin" / "spillway"
    return own if _is_program(own) else _tool_of_path()


def find_library() -> Optional[Path]:
    """libspillway.so, which belongs to the tool; None if there is none."""
    tool = find_tool()
    folders = [] if tool is None else [tool.parent.parent / name for name in ("lib", "lib/x86_64-linux-gnu", "lib64")]
    for folder in [*folders, Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/local/lib")]:
        for name in (_LIBRARY, _LIBRARY + ".0"):
            if (folder / name).is_file():
                return folder / name
    return None


def find_allocator() -> Optional[Path]:
    """The library that numpy's allocations go through, which only the wheel has; None without it."""
    own = _IN_WHEEL / "lib" / "libspillway_numpy.so"
    return own if own.is_file() else None
