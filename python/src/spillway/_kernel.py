"""What this kernel lets userfaultfd do."""

from __future__ import annotations

import ctypes
import os

_SYS_USERFAULTFD = 323  # x86-64
_DEVICE = "/dev/userfaultfd"


def serves_system_calls() -> bool:
    """Whether this process may have page faults of system calls served by its other threads. Needs the right to (root,
    CAP_SYS_PTRACE), vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd."""
    # The runtime's own test hook: it makes the machine look poorer.
    if os.environ.get("SPILLWAY_TEST_USERFAULT", ""):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(ctypes.c_long(_SYS_USERFAULTFD), ctypes.c_long(os.O_CLOEXEC | os.O_NONBLOCK))
    if fd >= 0:
        os.close(fd)
        return True
    return os.access(_DEVICE, os.R_OK | os.W_OK)
