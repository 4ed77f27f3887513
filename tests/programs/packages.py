"""What rows need from Debian and PyPI: what of it is missing, and how it is installed."""
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys

from row import Row

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build" / "programs-venv"
VENV_PYTHON = VENV / "bin" / "python"
SETUP = "./dev programs --setup"


def _debian_installed(package: str) -> bool:
    told = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", package], capture_output=True, text=True,
                          check=False)
    return told.stdout == "installed"


def _pypi_installed() -> set[str]:
    folders = [str(folder) for folder in VENV.glob("lib/python3*/site-packages")]
    names = (found.metadata["Name"] for found in importlib.metadata.distributions(path=folders))
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names if name}


def missing(rows: list[Row]) -> tuple[list[str], list[str]]:
    """Packages of Debian and of PyPI that are not here."""
    debian = sorted({package for row in rows for package in row.needs.debian})
    pypi = sorted({package for row in rows for package in row.needs.pypi})
    have = _pypi_installed() if pypi else set()
    return ([package for package in debian if not _debian_installed(package)],
            [package for package in pypi if package.lower() not in have])


def why_not(row: Row, filled) -> str | None:
    """None where the row can be run, otherwise what is missing. filled: puts paths into a command's words."""
    debian, pypi = missing([row])
    absent = debian + [f"{package} (PyPI)" for package in pypi]
    if absent:
        return f"not installed: {', '.join(absent)} ({SETUP})"
    for command in row.needs.commands:
        if shutil.which(command) is None:
            return f"there is no {command}"
    if row.needs.check:
        try:
            tried = subprocess.run(filled(row.needs.check), capture_output=True, check=False).returncode
        except OSError:
            tried = -1
        if tried != 0:
            return row.needs.check_reason
    return None


def _run(command: list, what: str) -> bool:
    done = subprocess.run([str(word) for word in command], check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        print(f"programs: {what} failed; its rows will be skipped", file=sys.stderr)
    return done.returncode == 0


def _install_debian(packages: list[str]) -> None:
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    if shutil.which("apt-get") is None or (as_root and shutil.which("sudo") is None):
        print(f"programs: without apt and root these cannot be installed: {' '.join(packages)}", file=sys.stderr)
        return
    print(f"programs: apt-get install {' '.join(packages)}", flush=True)
    _run([*as_root, "apt-get", "update", "-qq"], "apt-get update")
    install = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq",
               "--no-install-recommends"]
    if not _run([*install, *packages], "apt-get install"):
        for package in packages:  # one that this Debian does not know must not keep the others away
            _run([*install, package], f"apt-get install {package}")


def _install_pypi(packages: list[str]) -> None:
    if not VENV_PYTHON.exists():
        print(f"programs: python3 -m venv {VENV.relative_to(ROOT)}", flush=True)
        if not _run([sys.executable, "-m", "venv", VENV], "python3 -m venv"):
            return
    for package in packages:
        print(f"programs: pip install {package}", flush=True)
        _run([VENV_PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package],
             f"pip install {package}")


def install(rows: list[Row]) -> None:
    debian, pypi = missing(rows)
    if debian:
        _install_debian(debian)
    if pypi:
        _install_pypi(pypi)
    if not debian and not pypi:
        print("programs: all packages are installed")
