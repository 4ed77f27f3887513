"""Machines whose kernel forbids userfaultfd, or keeps it from system calls: the recompiled programs' side of it."""
import json
import signal

import pytest
from kit import Config, EXIT_USAGE, Kit, MEDIUM, SMALL, expect

pytestmark = pytest.mark.engines("mapped", "unmodified", "threads")
BY_THREADS = {"SPILLWAY_FAULTS": "threads"}
USER_FAULTS_ONLY = {"SPILLWAY_TEST_USERFAULT": "user"}
FORBIDDEN = {"SPILLWAY_TEST_USERFAULT": "none", "SPILLWAY_FAULTS": "auto"}
CAP_16M = Config(("-O2",), "16M", "auto", "combining")


def _system_call_faults(kit: Kit, env: dict[str, str]) -> str:
    run = kit.run(kit.compile("containers.cc", "-O2"), "vectors",
                  env=SMALL.environment() | kit.wants_report | env)
    expect(run.code == 0, run.last_words())
    return kit.report()["facts"]["system_call_faults"]


def test_the_report_tells_whether_system_calls_may_fault(kit: Kit) -> None:
    """Which shows too that the other tests here test what they say."""
    kit.needs_userfaultfd()
    doctor = kit.run(kit.build / "bin" / "spillway", "doctor", "--store", kit.store, "--json")
    found = next(f["found"] for f in json.loads(doctor.output)["findings"] if f["id"] == "userfaultfd")
    expect(_system_call_faults(kit, USER_FAULTS_ONLY) == "brought in first", "SPILLWAY_TEST_USERFAULT=user was not heeded")
    wanted = {"available": "served", "user mode only": "brought in first"}[found]
    expect(_system_call_faults(kit, BY_THREADS) == wanted, f"userfaultfd here: {found}")
    # Of threads that serve their own faults the kernel is none.
    expect(_system_call_faults(kit, {"SPILLWAY_FAULTS": "auto"}) == "brought in first", "by default")


def test_threads_and_locks_work_where_system_calls_may_not_fault(kit: Kit) -> None:
    for part, *arguments in (("come_and_go", 200), ("interleaved", 16), ("atomics",), ("foreign_locks",), ("standard_locks",),
                             ("atomic_waits",)):
        kit.same_as_native("threads.cc", part, *arguments, configs=(CAP_16M,), env=USER_FAULTS_ONLY)


def test_memory_functions_work_where_system_calls_may_not_fault(kit: Kit) -> None:
    for part in ("realloc", "calloc", "aligned", "copies"):
        kit.same_as_native("language.cc", part, configs=(SMALL,), env=USER_FAULTS_ONLY)


def test_descriptors_pipes_and_sockets_work_where_system_calls_may_not_fault(kit: Kit) -> None:
    for part in ("descriptors", "stdio", "streams", "print"):
        kit.same_as_native("files.cc", part, configs=(SMALL, MEDIUM), env=USER_FAULTS_ONLY)


def test_programs_do_what_they_do_natively_where_userfaultfd_is_forbidden(kit: Kit) -> None:
    """SPW_USERFAULT=none has all other tests say so, too."""
    for source, *parts in (("containers.cc", "vectors", "trees"), ("threads.cc", "foreign_locks", "atomics"), ("language.cc", "realloc", "copies"),
                           ("files.cc", "stdio", "streams")):
        for part in parts:
            kit.same_as_native(source, part, configs=(SMALL,), env=FORBIDDEN | kit.wants_report)
            facts = kit.report()["facts"]
            expect("by access rights" in facts["faults_by"] and facts["system_call_faults"] == "brought in first", f"{facts}")


def test_guard_pages_of_the_program_outlive_writebacks(kit: Kit) -> None:
    for part in ("touched", "untouched"):
        for env in ({}, {"SPILLWAY_FAULTS": "auto"}, FORBIDDEN):
            kit.same_as_native("guard_pages.c", part, configs=(CAP_16M, MEDIUM), env=env)


def test_guard_pages_are_never_read_while_they_are_written(kit: Kit) -> None:
    for env in ({}, {"SPILLWAY_FAULTS": "auto"}):
        kit.same_as_native("read_guards.c", configs=(CAP_16M,), env=env)


def test_rights_come_and_go_while_pages_are_written(kit: Kit) -> None:
    for env in ({}, {"SPILLWAY_FAULTS": "auto"}, FORBIDDEN):
        kit.same_as_native("toggled_pages.c", configs=(CAP_16M, MEDIUM), env=env)


def test_a_jump_into_data_is_the_programs_own_fault(kit: Kit) -> None:
    source = kit.place / "jump.c"
    source.write_text("""#include <stdlib.h>
#include <string.h>
int main(void) {
  char* data = malloc(1 << 20);
  memset(data, 0xC3, 1 << 20);
  for (int i = 0; i < 64; ++i) memset(malloc(1 << 20), i, 1 << 20);
  ((void (*)(void))(void*)data)();
  return 0;
}
""")
    program = kit.compile(str(source), "-O0", spillway=False)
    run = kit.run(kit.build / "bin" / "spillway", "run", "--memory", "16M", "--store", kit.store, "--", program, env=FORBIDDEN)
    expect(run.code in (-signal.SIGSEGV, 128 + signal.SIGSEGV), run.last_words())


def test_threads_that_serve_faults_are_refused_where_userfaultfd_is_forbidden(kit: Kit) -> None:
    run = kit.run(kit.compile("containers.cc", "-O2"), "vectors", env=SMALL.environment() | FORBIDDEN | BY_THREADS)
    expect(run.code == EXIT_USAGE and run.output == "" and run.errors.count("\n") == 1, run.last_words())
    expect(run.errors.startswith("spillway: --faults=threads: userfaultfd is not allowed here") and "seccomp profile" in run.errors, run.errors)
