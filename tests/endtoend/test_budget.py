"""What a miss of an unmodified program costs in system calls and sleeps (docs/ARCHITECTURE.md, "The budget of a miss")."""
import pytest
from kit import Kit, expect

pytestmark = pytest.mark.engines("unmodified")

PAGES, READS = 16384, 30000  # 64 MiB in 16 MiB
# One to read, one to install, one to return from the handler; a few for those that evict.
CALLS_MAX = 3.25
# One, for the device.
SLEEPS_MAX = 1.1


# Who waits for a processor sleeps more often, and evicts by himself.
@pytest.mark.quiet
def test_a_miss_costs_three_system_calls_and_one_sleep(kit: Kit) -> None:
    run = kit.run(kit.compile("budget.cc", "-O2"), PAGES, READS,
                  env={"SPILLWAY_MEMORY": "16M", "SPILLWAY_FAULTS": "signals", "SPILLWAY_BLOCK": "4K",
                       "SPILLWAY_MAPPED_READS": "cache"} | kit.wants_report)
    if run.code == 77:
        pytest.skip(run.output.strip())
    expect(run.code == 0, run.last_words())
    said = dict(zip(run.output.split()[::2], map(int, run.output.split()[1::2])))
    expect(said["wrong"] == 0, run.output)
    # Places are uniform and memory is full after the first half: what the report counts is of both.
    misses = kit.report()["counters"]["fills"] / 2
    expect(misses > READS / 2, f"only {misses} misses: {run.output}")
    calls, sleeps = said["calls"] / misses, said["sleeps"] / misses
    expect(1.9 < calls <= CALLS_MAX, f"{calls:.2f} system calls a miss, the budget is {CALLS_MAX}")
    expect(sleeps <= SLEEPS_MAX, f"{sleeps:.2f} sleeps a miss, the budget is {SLEEPS_MAX}")
