"""What code compiled with -fspillway-count says of itself."""
import pytest
from kit import Kit, SMALL, expect

pytestmark = pytest.mark.engines("translated")


def test_direct_hits_of_threads_that_are_still_there_are_counted(kit: Kit) -> None:
    program = kit.compile("counted.cc", "-O2", "-fspillway-count")
    run = kit.run(program, env=SMALL.environment() | kit.wants_report)
    expect((run.code, run.output) == (0, "1\n"), run.last_words())
    direct = kit.report()["levels"]["direct"]
    reads = 2_000_000
    expect(0.99 * reads < direct["hits"] + direct["misses"] < 1.5 * reads, f"{direct}, of {reads} reads")
    expect(direct["hits"] > 0.2 * reads, f"{direct}, of {reads} reads")
