"""The kernel refuses memory: at the start, for tables, for threads."""
import pathlib
import shutil

import pytest
from kit import EXIT_FAILURE, EXIT_USAGE, Kit, MEDIUM, SMALL, WIDE, expect

# The mapped engine reserves its space as writable private memory, which counts against the limit that this sets.
pytestmark = pytest.mark.engines("translated")


def test_a_lack_of_memory_is_told_in_one_line_and_never_a_crash(kit: Kit) -> None:
    prlimit = shutil.which("prlimit")
    if not prlimit:
        pytest.skip("there is no prlimit here")
    ended = set()
    for config in (SMALL, MEDIUM, WIDE):
        program = kit.compile("lack.cc", *config.flags)
        limits = [*range(1000, 36000, 1750), *range(36000, 100000, 8000), 400000]
        for limit_kib in limits:
            run = kit.run(pathlib.Path(prlimit), f"--data={limit_kib << 10}", program, env=config.environment())
            where = f"{limit_kib} KiB with {config}: {run.last_words()}"
            expect(run.code in (0, EXIT_USAGE, EXIT_FAILURE), where)
            if run.code == 0:
                expect((run.output, run.errors) == ("wrong 0\n", ""), where)
            else:
                expect(run.output == "" and run.errors.startswith("spillway: ") and run.errors.count("\n") == 1, where)
            ended.add(run.code)
        expect(run.code == 0, f"not even {where}")
    expect(len(ended) >= 2, f"the limits never bit: {ended}")
