"""All processes below one `spillway run` share its cap, as a control group sees it."""
import contextlib
import time

import pytest
from kit import Kit, MIB, TIME_LIMIT_S, expect, start
from harness import cgroup
from harness.programs import ALLOWANCE_BYTES

pytestmark = pytest.mark.engines("unmodified")
CAP_BYTES = 64 * MIB
SAMPLE_EVERY_S = 0.02


@contextlib.contextmanager
def _run_in_a_group(kit: Kit, limit_bytes: int, *words, cap_bytes: int = CAP_BYTES):
    if reason := cgroup.why_not():
        pytest.skip(reason)
    with cgroup.memory_group(limit_bytes) as group:
        run = (kit.build / "bin" / "spillway", "run", "--memory", str(cap_bytes), "--store", kit.place, "--", *words)
        with start(kit, *run, group=group) as process:
            yield group, process


@pytest.mark.root
def test_eight_programs_stay_within_one_cap(kit: Kit) -> None:
    """Each fills more than all of it; the kernel would end one at the group's limit."""
    program = kit.compile("spill.cc", "-O2")
    all_of_them = f"for i in 1 2 3 4 5 6 7 8; do {program} fill 100 & done; wait"
    with _run_in_a_group(kit, CAP_BYTES + ALLOWANCE_BYTES, "/bin/sh", "-c", all_of_them) as (group, process):
        while process.poll() is None:
            group.sample()
            time.sleep(SAMPLE_EVERY_S)
        output = process.stdout.read() + process.stderr.read()
        usage = group.finish()
    expect(usage.out_of_memory_kills == 0 and process.returncode == 0 and output == "wrong 0\n" * 8,
           f"exit code {process.returncode}, {usage}: {output}")
    expect(CAP_BYTES // 2 < usage.peak_program_bytes <= CAP_BYTES + ALLOWANCE_BYTES, f"{usage}")


def test_what_one_program_had_the_next_one_gets(kit: Kit) -> None:
    """One after the other, and one that is killed: each has all of the cap."""
    program = kit.compile("spill.cc", "-O2")
    script = f"{program} fill 100; {program} stay 100 < /dev/zero > /dev/null & sleep 1; kill -9 $!; {program} fill 100"
    run = kit.run(kit.build / "bin" / "spillway", "run", "--memory", str(CAP_BYTES), "--store", kit.place, "--stats",
                  kit.place / "report-%p.json", "--", "/bin/sh", "-c", script)
    expect(run.output.count("wrong 0\n") == 2, run.last_words())


@pytest.mark.root
def test_forked_workers_settle_within_one_cap(kit: Kit) -> None:
    """Right after a fork, before anybody has looked, workers may hold more."""
    seconds, settled_after_s = 6, 3
    program = kit.compile("forks.cc", "-O2")
    with _run_in_a_group(kit, 16 * CAP_BYTES, program, "workers", str(seconds)) as (group, process):
        deadline = time.monotonic() + TIME_LIMIT_S
        while not (processes := len((group.directory / "cgroup.procs").read_text().split())) >= 5:
            expect(time.monotonic() < deadline and process.poll() is None, f"{processes} processes")
            time.sleep(SAMPLE_EVERY_S)
        time.sleep(settled_after_s)
        end = time.monotonic() + seconds - settled_after_s - 1
        while time.monotonic() < end:
            group.sample()
            time.sleep(SAMPLE_EVERY_S)
        output, errors = process.communicate(timeout=TIME_LIMIT_S)
        usage = group.finish()
    expect((process.returncode, output) == (0, "0 wrong\n"), f"exit code {process.returncode}: {output}{errors}")
    expect(CAP_BYTES // 2 < usage.peak_program_bytes <= CAP_BYTES + ALLOWANCE_BYTES, f"{usage} {errors}")


@pytest.mark.root
def test_children_do_not_copy_what_they_have_in_common(kit: Kit) -> None:
    """What a child has of its parent's memory it gives up by writing it, and direct I/O copies memory that is
    copy-on-write: each child would have all of the cap once more. There is room for what is on its way."""
    program = kit.compile("forks.cc", "-O2")
    with _run_in_a_group(kit, 16 * CAP_BYTES, program, "rests", "50") as (group, process):
        while process.poll() is None:
            group.sample()
            time.sleep(SAMPLE_EVERY_S / 4)
        output, errors = process.communicate(timeout=TIME_LIMIT_S)
        usage = group.finish()
    expect((process.returncode, output) == (0, "0 wrong\n"), f"exit code {process.returncode}: {output}{errors}")
    expect(CAP_BYTES // 2 < usage.peak_program_bytes <= CAP_BYTES + 2 * ALLOWANCE_BYTES, f"{usage} {errors}")
