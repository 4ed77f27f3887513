"""A swap file on a given disk, and the kernel's settings for swapping, both undone afterwards."""
import contextlib
import os
import pathlib
import shutil
import subprocess

from .workspace import undisturbed

PAGE_CLUSTER = pathlib.Path("/proc/sys/vm/page-cluster")
MULTIGEN_LRU = pathlib.Path("/sys/kernel/mm/lru_gen/enabled")


def why_not() -> str | None:
    """None where a swap file can be used, otherwise the reason."""
    if os.geteuid() != 0:
        return "making swap needs root"
    if shutil.which("mkswap") is None or shutil.which("swapon") is None:
        return "mkswap or swapon is missing"
    in_use = pathlib.Path("/proc/swaps").read_text().splitlines()[1:]
    if in_use:
        return f"the machine already swaps to {in_use[0].split()[0]}, which would be measured instead"
    return None


@contextlib.contextmanager
def setting(path: pathlib.Path, value: str):
    """Sets a kernel setting for a while. Does nothing where the kernel lacks it."""
    if not path.exists():
        yield False
        return
    before = path.read_text().strip()
    try:
        path.write_text(value)
        yield True
    finally:
        with undisturbed():
            path.write_text(before)


@contextlib.contextmanager
def swap_file(directory: pathlib.Path, size_bytes: int):
    """Swaps to a file in `directory`, with the multi-generation LRU where the kernel has it."""
    path = directory / "swap"
    try:
        with open(path, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        subprocess.run(["mkswap", str(path)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["swapon", str(path)], check=True, capture_output=True)
        with setting(MULTIGEN_LRU, "y"):
            yield path
    finally:
        with undisturbed():
            subprocess.run(["swapoff", str(path)], check=False, capture_output=True)
            path.unlink(missing_ok=True)
