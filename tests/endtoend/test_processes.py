"""Child processes and signals."""
import signal
import time

import pytest
from kit import Config, Kit, MEDIUM, SMALL, TIME_LIMIT_S, UNOPTIMISED, expect, start

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified", "threads")

# The 16 MB of the programs do not fit.
DEDICATED = Config(("-O2",), "9M", "4K", "dedicated")


def test_programs_are_spawned_with_managed_arguments(kit: Kit) -> None:
    kit.same_as_native("processes.cc", "spawn", configs=(SMALL, UNOPTIMISED, MEDIUM))


def test_system_and_popen_work_beside_managed_memory(kit: Kit) -> None:
    kit.same_as_native("processes.cc", "system_and_popen", configs=(SMALL, UNOPTIMISED))


def test_vfork_and_exec_work_beside_managed_memory(kit: Kit) -> None:
    kit.same_as_native("processes.cc", "vfork", configs=(SMALL, DEDICATED))


def test_fork_and_exec_work_twice_over(kit: Kit) -> None:
    kit.same_as_native("processes.cc", "fork_twice", configs=(SMALL, UNOPTIMISED, DEDICATED))


def test_a_segmentation_fault_sent_by_hand_ends_the_program(kit: Kit) -> None:
    run = kit.run(kit.compile("processes.cc", *SMALL.flags), "raise_segv", env=SMALL.environment())
    expect(run.code == -signal.SIGSEGV, run.last_words())


def test_signals_end_programs_as_they_always_do(kit: Kit) -> None:
    for config in (SMALL, UNOPTIMISED, MEDIUM):
        program = kit.compile("processes.cc", *config.flags)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            with start(kit, program, "work_for_ever", env=config.environment()) as process:
                expect(process.stdout.readline() == "working\n", "it did not start")
                time.sleep(0.1)  # somewhere in its work; where does not matter
                process.send_signal(number)
                output, errors = process.communicate(timeout=TIME_LIMIT_S)
            where = f"{number.name} with {config}"
            expect((process.returncode, output, errors) == (-number, "", ""), f"{where}: {process.returncode} {output}{errors}")
            left = list(kit.store.iterdir())
            expect(left == [], f"{where} left {left}")


def test_a_program_that_handles_a_signal_goes_on(kit: Kit) -> None:
    for config in (SMALL, UNOPTIMISED):
        program = kit.compile("processes.cc", *config.flags)
        with start(kit, program, "work_until_told", env=config.environment()) as process:
            expect(process.stdout.readline() == "working\n", "it did not start")
            time.sleep(0.1)  # somewhere in its work
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=TIME_LIMIT_S)
        expect((process.returncode, output, errors) == (21, "told\n", ""), f"{config}: {process.returncode} {output}{errors}")
