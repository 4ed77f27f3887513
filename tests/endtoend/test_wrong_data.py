"""A store that gives back something else than it got: the program is right, or one line says which block was changed, where."""
import re

import pytest
from kit import EXIT_FAILURE, Kit, Run, SMALL, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified")

DAMAGES = ("flip", "zeros", "torn", "lost", "elsewhere")
MIB_IN_ALL = 12
RIGHT = (0, "stores 600\nwrong 0\n", "")
ENCRYPTED = {"SPILLWAY_ENCRYPT": "on"}


def _run(kit: Kit, faults: str, **env: str) -> Run:
    return kit.run(kit.compile("spill.cc", *SMALL.flags), "scatter", MIB_IN_ALL, time_limit_s=30,
                   env=SMALL.environment() | {"SPILLWAY_TEST_FAULTS": faults} | env)


def _is_told(kit: Kit, run: Run, where: str) -> bool:
    """It is told, or it did no harm."""
    if run.code == 0:
        expect((run.code, run.output, run.errors) == RIGHT, f"{where}: {run.last_words()}")
        return False
    line = rf"spillway: block \d+ was changed on spill:{re.escape(str(kit.store))} .*at offset \d+: what is read there is not .*\n"
    expect(run.code == EXIT_FAILURE and run.output == "" and re.fullmatch(line, run.errors) is not None, f"{where}: {run.last_words()}")
    return True


def _is_found(kit: Kit, **env: str) -> None:
    for damage in DAMAGES:
        for n in (1, 30, 100):
            plan = f"read:{n}+:{damage}"
            expect(_is_told(kit, _run(kit, plan, **env), plan), f"{plan}: it did no harm, which cannot be")
        told = [_is_told(kit, _run(kit, plan, **env), plan) for plan in (f"write:{n}:{damage}" for n in range(1, 60, 6))]
        expect(any(told), f"no block that was written {damage} was read again")


def test_what_stays_wrong_is_found(kit: Kit) -> None:
    _is_found(kit)


def test_what_stays_wrong_does_not_fit_its_tag(kit: Kit) -> None:
    run = _run(kit, "", **ENCRYPTED)
    if "needs libipsec-mb" in run.errors or "no encryption" in run.errors:
        pytest.skip(run.errors.strip())
    _is_found(kit, **ENCRYPTED)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_wrong_once_is_read_again(kit: Kit, damage: str) -> None:
    run = _run(kit, f"read:20:{damage}", **kit.wants_report)
    expect((run.code, run.output, run.errors) == RIGHT, run.last_words())
    # What was not moved may have been there already.
    failures = kit.report()["counters"]["checksum_failures"]
    expect(failures == 1 or (damage == "lost" and failures == 0), f"{failures} failures")


def test_without_checksums_it_goes_by(kit: Kit) -> None:
    """So that the others are known to look at something."""
    run = _run(kit, "read:1+:zeros", SPILLWAY_CHECKSUMS="off")
    expect((run.code, run.output, run.errors) != RIGHT and "was changed" not in run.errors, run.last_words())
