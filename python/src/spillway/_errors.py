"""What goes wrong, as exceptions."""

from __future__ import annotations


class SpillwayError(OSError):
    """Spillway refused or could not do something.

    ``errno`` is the error number, ``strerror`` the line that says what, where and how to mend it.
    """


class OutOfMemoryError(SpillwayError, MemoryError):
    """No managed addresses, or no memory that may be pinned, are left."""


class NotPreloadedError(SpillwayError, RuntimeError):
    """The process was not started under Spillway, which what was asked for needs."""


class SpillwayWarning(UserWarning):
    """Something works in part only; the text says what to do about it."""
