"""System calls that are not made through libc's functions, where threads serve their own faults: the kernel cannot have a page brought in, so
calls with managed arguments are sent back to the thread (src/libc/system_calls/dispatch.h)."""
import json
import pathlib

import pytest
from kit import Kit, Run, SMALL, expect

pytestmark = pytest.mark.engines("mapped", "unmodified")

AUTO = {"SPILLWAY_FAULTS": "auto"}
REFUSED = "is refused (ENOSYS): the kernel would touch memory that only the program's threads can bring in; --faults=threads allows it where " \
          "userfaultfd is allowed"


def _raw(kit: Kit, part: str) -> None:
    library = kit.compile("raw_library.c", "-O2", spillway=False, suffix=".so")
    kit.same_as_native("raw_calls.cc", part, configs=(SMALL,), inputs=(library,), env=AUTO)


def _kernel(kit: Kit, part: str) -> None:
    kit.same_as_native("kernel_memory.cc", part, configs=(SMALL,), env=AUTO)


def test_raw_transfers_take_managed_buffers(kit: Kit) -> None:
    _raw(kit, "transfers")


def test_raw_calls_take_managed_structures(kit: Kit) -> None:
    _raw(kit, "structures")


def test_raw_messages_and_waits_for_them_take_managed_memory(kit: Kit) -> None:
    _raw(kit, "messages")


def test_raw_futexes_and_sleeps_take_managed_memory(kit: Kit) -> None:
    _raw(kit, "waits")


def test_the_first_call_of_a_thread_may_be_a_raw_one_with_managed_memory(kit: Kit) -> None:
    _raw(kit, "thread")


def test_raw_masks_leave_faults_served(kit: Kit) -> None:
    _raw(kit, "masks")


def test_raw_fork_clone_and_exec_work(kit: Kit) -> None:
    _raw(kit, "processes")


def test_raw_vfork_and_threads_work_and_calls_are_seen_to_afterwards(kit: Kit) -> None:
    _raw(kit, "vforks")


def test_pages_given_to_a_pipe_keep_what_they_held(kit: Kit) -> None:
    _kernel(kit, "pipe_of_pages")


def test_a_process_reads_and_writes_its_own_memory_by_name(kit: Kit) -> None:
    _kernel(kit, "own_memory")


def test_another_process_reads_right_bytes_or_none(kit: Kit) -> None:
    _kernel(kit, "watched_by_another")


def test_raw_changes_of_mappings_are_the_runtimes(kit: Kit) -> None:
    _kernel(kit, "ranges")


def test_a_program_has_its_own_handler_of_sigsys(kit: Kit) -> None:
    _kernel(kit, "own_handler")


def test_handlers_set_without_libc_get_their_signals(kit: Kit) -> None:
    _kernel(kit, "raw_actions")


def test_queues_and_semaphores_take_managed_memory(kit: Kit) -> None:
    _kernel(kit, "queues")


def _rings(kit: Kit) -> pathlib.Path:
    return kit.compile("rings.cc", "-O2", "-luring", "-laio")


def test_rings_made_before_memory_is_watched_work(kit: Kit) -> None:
    kit.needs_userfaultfd()
    for part in ("uring_before", "aio_before"):
        native = kit.run(kit.compile("rings.cc", "-O2", "-luring", "-laio", spillway=False), part)
        run = kit.run(_rings(kit), part, env=SMALL.environment() | AUTO | kit.wants_report)
        expect((run.code, run.output, run.errors) == (native.code, native.output, native.errors), run.last_words())
        if "none" not in native.output:
            expect("rings" in kit.report()["facts"]["faults_by"], str(kit.report()["facts"]))


def test_rings_made_afterwards_are_refused_with_one_warning(kit: Kit) -> None:
    for part, call in (("uring_after", "io_uring_setup"), ("aio_after", "io_setup")):
        run = kit.run(_rings(kit), part, env=SMALL.environment() | AUTO)
        expect(run.code == 0 and run.output == f"{call} -38\n" * 2, run.last_words())
        expect(run.errors == f"spillway: warning: {call} {REFUSED}\n", run.last_words())
    kit.needs_userfaultfd()
    for part in ("uring_after", "aio_after"):
        native = kit.run(kit.compile("rings.cc", "-O2", "-luring", "-laio", spillway=False), part)
        allowed = kit.run(_rings(kit), part, env=SMALL.environment() | {"SPILLWAY_FAULTS": "threads"})
        expect((allowed.output, allowed.errors) == (native.output, native.errors), allowed.last_words())


def test_rings_made_before_memory_is_watched_are_warned_of_where_userfaultfd_is_forbidden(kit: Kit) -> None:
    for part in ("uring_before", "aio_before"):
        run = kit.run(_rings(kit), part, env=SMALL.environment() | AUTO | {"SPILLWAY_TEST_USERFAULT": "none"})
        if "none" not in run.output:
            expect(run.errors.startswith("spillway: warning: the program has rings for asynchronous I/O, which get EFAULT") and
                   run.errors.count("\n") == 1 and "error -14" in run.output, run.last_words())


def _without_dispatch(kit: Kit, program: pathlib.Path, *arguments: str, env: dict[str, str]) -> Run:
    return kit.run(kit.compile("without_dispatch.c", "-O2", spillway=False), program, *arguments, env=env)


def test_programs_run_where_the_kernel_has_no_dispatch(kit: Kit) -> None:
    """And what the other tests show is its doing: a raw call fails there."""
    program = kit.compile("kernel_memory.cc", "-O2")
    for part in ("own_handler", "queues"):
        native = kit.run(kit.compile("kernel_memory.cc", "-O2", spillway=False), part)
        run = _without_dispatch(kit, program, part, env=SMALL.environment() | AUTO)
        expect((run.code, run.output, run.errors) == (native.code, native.output, native.errors), run.last_words())
    run = _without_dispatch(kit, program, "own_memory", env=SMALL.environment() | AUTO)
    expect("raw failed: " in run.output, run.last_words())


def test_the_doctor_tells_of_dispatch(kit: Kit) -> None:
    doctor = kit.build / "bin" / "spillway"
    for run, found in ((kit.run(doctor, "doctor", "--store", kit.store, "--json"), ("available",)),
                       (_without_dispatch(kit, doctor, "doctor", "--store", str(kit.store), "--json", env={}), ("not allowed",))):
        finding = next(f for f in json.loads(run.output)["findings"] if f["id"] == "call_dispatch")
        expect(finding["found"] in found, str(finding))
        expect(bool(finding["costs"]) == (finding["verdict"] != "ok"), str(finding))
