"""Sizes as people write them: "4G", "1.5 GiB", 4096. The same words as the options of the tool."""

from __future__ import annotations

import re
from typing import SupportsIndex, Union

Size = Union[str, SupportsIndex]
"""A number of bytes, or a text with a unit: K, M, G or T, which are powers of 1024 ("4G", "512MiB")."""

_SHIFTS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:(b)|([kmgt])(?:i?b)?)?\s*", re.IGNORECASE)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_BYTES_END = 1 << 63


def parse_size(size: Size, what: str = "a size") -> int:
    """Bytes of `size`. ValueError for what is none ("4GG", a negative number), TypeError for what is no size at all."""
    if isinstance(size, str):
        match = _SIZE.fullmatch(size)
        if not match:
            raise ValueError(f'{what} is a number with a unit, such as "4G" or "512M", not {size!r}')
        number, unit = match[1], (match[2] or match[3] or "").lower()
        # Whole numbers stay exact.
        count = (int(number) << _SHIFTS[unit]) if number.isdigit() else int(float(number) * (1 << _SHIFTS[unit]))
    else:
        try:
            count = size.__index__()
        except AttributeError:
            raise TypeError(
                f'{what} is a whole number of bytes, or a text such as "4G", not a {type(size).__name__}'
            ) from None
    if not 0 <= count < _BYTES_END:
        raise ValueError(f"{what} is from 0 to 2**63 - 1 bytes, not {size!r}")
    return count


def format_size(count: float) -> str:
    """A number of bytes as "4.0 GiB"."""
    unit = 0
    while abs(count) >= 1024 and unit + 1 < len(_UNITS):
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"
