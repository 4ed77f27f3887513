"""What a miss of a recompiled program costs (docs/ARCHITECTURE.md, "The budget of a miss")."""
import pytest
from kit import Kit, expect

pytestmark = pytest.mark.engines("mapped")

PAGES, READS = 16384, 30000  # 64 MiB in 16 MiB
# The read; a few for those that evict.
CALLS_MAX = 1.25
SLEEPS_MAX = 1.1
# First touches of memory.
FAULTS_MAX = 0.1


# Who waits for a processor sleeps more often, and evicts by himself.
@pytest.mark.quiet
def test_a_loose_miss_costs_one_system_call_and_no_page_fault(kit: Kit) -> None:
    run = kit.run(kit.compile("budget.cc", "-O2"), PAGES, READS,
                  env={"SPILLWAY_MEMORY": "16M", "SPILLWAY_BLOCK": "4K"} | kit.wants_report)
    if run.code == 77:
        pytest.skip(run.output.strip())
    expect(run.code == 0, run.last_words())
    said = dict(zip(run.output.split()[::2], map(int, run.output.split()[1::2])))
    expect(said["wrong"] == 0, run.output)
    # Places are uniform and memory is full after the first half: what the report counts is of both.
    counters = kit.report()["counters"]
    misses = counters["fills"] / 2
    expect(misses > READS / 2, f"only {misses} misses: {run.output}")
    expect(counters["loose_fills"] > 0.95 * counters["fills"], f"{counters['loose_fills']} of {counters['fills']} came loose")
    for what, most in (("calls", CALLS_MAX), ("sleeps", SLEEPS_MAX), ("faults", FAULTS_MAX)):
        expect(said[what] <= most * misses, f"{said[what] / misses:.2f} {what} a miss, the budget is {most}")
