"""What code compiled with -fspillway-count says of itself."""
import json

from kit import Kit, SMALL, expect

ENGINES = ("translated",)


def direct_hits_of_threads_that_are_still_there_are_counted(kit: Kit) -> None:
    report = kit.place / "report.json"
    program = kit.compile("counted.cc", "-O2", "-fspillway-count")
    run = kit.run(program, env=SMALL.environment() | {"SPILLWAY_STATS": str(report)})
    expect((run.code, run.output) == (0, "1\n"), run.last_words())
    direct = json.loads(report.read_text())["levels"]["direct"]
    reads = 2_000_000
    expect(0.99 * reads < direct["hits"] + direct["misses"] < 1.5 * reads, f"{direct}, of {reads} reads")
    expect(direct["hits"] > 0.2 * reads, f"{direct}, of {reads} reads")
