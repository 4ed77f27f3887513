"""Memory that fits is in huge pages where the system gives them to malloc, too; beyond the cap it is in small ones, which go one by one."""
import re

import pytest
from kit import Kit, expect

pytestmark = pytest.mark.engines("mapped", "unmodified")

FITS_MIB, CAP_MIB = 64, 96


def _huge(kit: Kit, more_mib: int, natively: bool = False) -> tuple[int, int]:
    """MiB in huge pages before and after memory has grown; nothing of it is wrong."""
    program = kit.compile("huge_pages.cc", "-O2", spillway=not natively)
    env = {} if natively else {"SPILLWAY_MEMORY": f"{CAP_MIB}M", "SPILLWAY_THRESHOLD": "64K"}
    run = kit.run(program, FITS_MIB, more_mib, env=env)
    said = re.fullmatch(r"fits (\d+) MiB, beyond (\d+) MiB, wrong 0\n", run.output)
    expect(run.code == 0 and said is not None, run.last_words())
    return int(said[1]), int(said[2])


def test_memory_that_fits_is_in_huge_pages_as_it_is_natively(kit: Kit) -> None:
    native = _huge(kit, 1, natively=True)[0]
    if native < FITS_MIB // 2:
        pytest.skip(f"the machine gave {native} MiB of {FITS_MIB} in huge pages to a program by itself")
    ours = _huge(kit, 1)[0]
    expect(ours >= FITS_MIB // 2, f"{ours} MiB of {FITS_MIB} are in huge pages, natively {native}")


def test_memory_beyond_the_cap_is_not(kit: Kit) -> None:
    _, beyond = _huge(kit, 2 * CAP_MIB)
    expect(beyond == 0, f"{beyond} MiB are in huge pages, which give no memory back but as a whole")
