"""A program whose store is a small filesystem, mounted in a mount namespace that ends with the program."""
import contextlib
import os
import pathlib
import subprocess

import pytest
from kit import Kit, MIB, start

MOUNTS = {
    "tmpfs": 'mount -t tmpfs -o size="$1" none "$2"',
    "ext4": 'truncate -s "$1" "$2.image" && mkfs.ext4 -q -m 0 "$2.image" && mount -o loop "$2.image" "$2"',
}


def _script(filesystem: str, then: str) -> list[str]:
    return ["--mount", "--propagation", "private", "sh", "-c", f"{MOUNTS[filesystem]} && shift 2 && {then}", "sh"]


@contextlib.contextmanager
def on_small_store(kit: Kit, filesystem: str, size_bytes: int, program: pathlib.Path, *arguments, env: dict[str, str]):
    """The running program, as kit.start() gives it. Skips where the machine does not allow such a mount."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small filesystem needs root")
    tried = subprocess.run(["unshare", *_script(filesystem, "true"), str(64 * MIB), str(kit.store)], capture_output=True,
                           text=True, env=os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"})
    if tried.returncode != 0:
        pytest.skip(f"no small {filesystem} can be mounted here: {tried.stderr.strip()}")
    path = {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    with start(kit, "unshare", *_script(filesystem, 'exec "$@"'), size_bytes, kit.store, program, *arguments,
               env=env | path) as process:
        yield process


def inside(process: subprocess.Popen, path: pathlib.Path) -> pathlib.Path:
    """Where `path` of the program's mount namespace is for us."""
    return pathlib.Path(f"/proc/{process.pid}/root") / path.relative_to("/")


def free_bytes(directory: pathlib.Path) -> int:
    info = os.statvfs(directory)
    return info.f_bavail * info.f_frsize
