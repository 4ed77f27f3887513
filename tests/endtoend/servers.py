"""Servers that tests start and stop."""
import contextlib
import pathlib
import shutil
import subprocess
import tempfile
import time

import pytest
from kit import Kit, TIME_LIMIT_S, expect


@contextlib.contextmanager
def nbd_server(kit: Kit, *arguments: str):
    """nbdkit, and the name of its export."""
    if not shutil.which("nbdkit"):
        pytest.skip("nbdkit is not installed")
    # A socket's path is 107 bytes at most, which a build's may use up.
    with tempfile.TemporaryDirectory(prefix="spw_nbd.") as place, subprocess.Popen(
            ["nbdkit", "-f", "-U", f"{place}/nbd", "-P", f"{place}/nbd.pid", *arguments], stderr=subprocess.DEVNULL) as server:
        pid_file = pathlib.Path(place) / "nbd.pid"
        try:
            deadline = time.monotonic() + TIME_LIMIT_S
            while not pid_file.exists():
                expect(server.poll() is None and time.monotonic() < deadline, "nbdkit does not start")
                time.sleep(0.01)
            yield server, f"nbd+unix:///?socket={place}/nbd&timeout=5"
        finally:
            with contextlib.suppress(ProcessLookupError):
                server.kill()
