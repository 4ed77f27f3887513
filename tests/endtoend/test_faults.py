"""Every read and write of the store fails once, in a loop over N, and the program is right or says what happened."""
import pytest
from kit import Config, EXIT_FAILURE, Kit, Run, SMALL, UNOPTIMISED, expect

# What a store does is the same for every kind of mapped program.
pytestmark = pytest.mark.engines("translated", "mapped")

FAULTS_MAX = 40
MIB_IN_ALL = 12
# How far apart the Ns are: one configuration sees them all.
STEPS = {SMALL: 1, UNOPTIMISED: 6}


def _run(kit: Kit, config: Config, faults: str, **env: str) -> Run:
    return kit.run(kit.compile("spill.cc", *config.flags), "scatter", MIB_IN_ALL, time_limit_s=30,
                   env=config.environment() | {"SPILLWAY_TEST_FAULTS": faults} | env)


def _expect_right(run: Run, where: str) -> None:
    expect((run.code, run.output, run.errors) == (0, "stores 600\nwrong 0\n", ""), f"{where}: {run.last_words()}")


def _expect_told(kit: Kit, run: Run, verb: str, reason: str, where: str) -> None:
    expect(run.code == EXIT_FAILURE and run.output == "", f"{where}: {run.last_words()}")
    expect(run.errors.count("\n") == 1 and run.errors.startswith(f"spillway: cannot {verb} block "),
           f"{where}: not one line: {run.errors}")
    for part in (f"spill:{kit.store} ", " at offset ", reason):
        expect(part in run.errors, f"{where}: {part!r} is not in {run.errors}")


def _expect_enough_requests(kit: Kit, config: Config) -> None:
    _expect_right(_run(kit, config, "", **kit.wants_report), "without faults")
    counters = kit.report()["counters"]
    for kind in ("store_reads", "store_writes"):
        expect(counters[kind] > 2 * FAULTS_MAX, f"only {counters[kind]} {kind}: the loop misses its end")


def _with_every_fault(kit: Kit, faults: str, judge) -> None:
    for config, step in STEPS.items():
        _expect_enough_requests(kit, config)
        for n in range(1, FAULTS_MAX + 1, step):
            plan = faults.format(n=n)
            judge(_run(kit, config, plan), f"{plan} with {config}")


def test_passing_faults_of_the_store_do_no_harm(kit: Kit) -> None:
    _with_every_fault(kit, "read:{n}:EIO:x2,write:{n}:EAGAIN:x3,short:{n}", _expect_right)


def test_a_failed_write_is_made_good_later(kit: Kit) -> None:
    _with_every_fault(kit, "write:{n}:ENOSPC", _expect_right)


def test_a_lasting_read_error_is_reported_and_a_failed_read_ahead_is_not(kit: Kit) -> None:
    reported = 0

    def judge(run: Run, where: str) -> None:
        nonlocal reported
        if run.code == 0:
            _expect_right(run, where)  # it was a read-ahead: the block was read once more when it was needed
        else:
            reported += 1
            _expect_told(kit, run, "read", "Input/output error", where)

    _with_every_fault(kit, "read:{n}:EIO", judge)
    expect(reported > 0, "no error was ever reported")


def test_writes_that_fail_from_the_nth_on_end_the_program(kit: Kit) -> None:
    failures = ((1, "EIO", "Input/output error"), (2, "ENOSPC", "No space left on device"),
                (7, "EROFS", "Read-only file system"), (FAULTS_MAX, "EDQUOT", "Disk quota exceeded"))
    for config in STEPS:
        for n, error, reason in failures:
            plan = f"write:{n}+:{error}"
            run = _run(kit, config, plan, SPILLWAY_TEST_FRAME_WAIT_MS="500")
            _expect_told(kit, run, "write", reason, f"{plan} with {config}")
