"""Programs with rights of their own: whoever starts them must not choose by the environment what they write where."""
import os
import pathlib
import shutil

import pytest
from kit import Kit, SMALL, expect

pytestmark = pytest.mark.engines("translated", "mapped")  # the loader keeps a library from being preloaded into such programs
OTHER_GROUP = 1


def _privileged(kit: Kit, program: pathlib.Path) -> pathlib.Path:
    """A set-group-ID copy of the program; as this user is not in its group, the kernel calls a run of it secure."""
    if os.geteuid() != 0:
        pytest.skip("giving a program to another group needs root")
    if os.statvfs(kit.place).f_flag & os.ST_NOSUID:
        pytest.skip(f"{kit.place} is mounted nosuid")
    if "NoNewPrivs:\t1" in pathlib.Path("/proc/self/status").read_text():
        pytest.skip("no process may get rights here (no_new_privs)")
    copy = kit.place / "privileged"
    shutil.copy(program, copy)
    os.chown(copy, -1, OTHER_GROUP)
    copy.chmod(0o2755)
    return copy


@pytest.mark.root
def test_the_environment_of_a_privileged_program_chooses_nothing(kit: Kit) -> None:
    program = kit.compile("containers.cc", "-O2")
    report = kit.place / "report.json"
    env = {"SPILLWAY_STATS": str(report), "SPILLWAY_STORE": "/nowhere/at/all", "SPILLWAY_TEST_FAULTS": "write:1+:EIO"}
    plain = kit.run(program, "vectors", env=SMALL.environment() | env)
    expect(plain.code == 2 and "/nowhere/at/all" in plain.errors, f"with ordinary rights: {plain.last_words()}")
    run = kit.run(_privileged(kit, program), "vectors", env=SMALL.environment() | env)
    expect(run.code == 0, run.last_words())
    expect(run.errors == "spillway: warning: this program runs with rights of its own (set-user-ID or the like): SPILLWAY_ "
           "variables are ignored\n", run.last_words())
    expect(not report.exists(), "a report was written where the environment said")


@pytest.mark.root
def test_a_privileged_program_without_variables_is_silent(kit: Kit) -> None:
    kit.needs_userfaultfd()  # else there is a variable
    program = _privileged(kit, kit.compile("containers.cc", "-O2"))
    run = kit.run(program, "vectors", env={"SPILLWAY_STORE": "", "SPILLWAY_QUIET": ""})
    expect(run.code == 0 and run.errors == "", run.last_words())
