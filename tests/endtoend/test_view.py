"""Memory that fits, at first or to the end: what the translated engine's resident view serves, and what it leaves behind."""
import pytest
from kit import Config, FITS, FITS_UNOPTIMISED, HERE, Kit, expect

pytestmark = pytest.mark.engines("translated", "mapped")

FITS_MEDIUM = Config(("-O2",), "256M", "64K", "dedicated")
FITS_LARGE = Config(("-O2",), "1G", "2M", "combining")
FITTING = (FITS, FITS_UNOPTIMISED, FITS_MEDIUM, FITS_LARGE)
# The 9 MiB of the threads fit, and what is taken meanwhile does not.
OUTGROWN = (Config(("-O2",), "24M", "4K", "combining"), Config(("-O3", "-march=native"), "24M", "4K", "dedicated"),
            Config(("-O0",), "24M", "4K", "combining"), Config(("-O2",), "48M", "64K", "combining"))
MORE_MIB = 60


def _same(kit: Kit, part: str, argument: int = 0, configs: tuple[Config, ...] = FITTING, source: str = "view.cc",
          env: dict[str, str] | None = None) -> None:
    """As natively, and through the view where there is one. Of what fits, nothing is evicted."""
    for config in configs:
        kit.same_as_native(source, part, argument, configs=(config,), env=kit.wants_report | (env or {}))
        if kit.engine != "translated":
            continue
        report = kit.report()
        counters = report["counters"]
        expect(counters["view_faults"] > 0, f"{part} with {config} did without a view: {counters}")
        if config in FITTING:
            expect(counters["evictions"] == counters["foreign_faults"] == 0, f"{part} with {config} did not fit: {counters}")
            expect(report["foreign"] == [], f"{part} with {config}: {report['foreign']}")
        else:
            kit.expect_spilled(f"{part} with {config}")


def test_threads_go_on_where_they_are_when_memory_no_longer_fits(kit: Kit) -> None:
    _same(kit, "outgrow", MORE_MIB, OUTGROWN)


def test_threads_sleep_at_objects_in_memory_that_no_longer_fits(kit: Kit) -> None:
    _same(kit, "sleepers", 40, OUTGROWN, source="sleepers.cc")


def test_threads_work_on_memory_that_fits(kit: Kit) -> None:
    _same(kit, "outgrow", 8)


def test_ranges_come_and_go_while_they_fit(kit: Kit) -> None:
    _same(kit, "churn", 3000)


def test_ranges_come_and_go_until_they_no_longer_fit(kit: Kit) -> None:
    _same(kit, "churn", 3000, (Config(("-O2",), "16M", "4K", "combining"), Config(("-O2",), "16M", "4K", "dedicated")))


def test_stores_to_mapped_files_that_fit_reach_them(kit: Kit) -> None:
    left = kit.place / "left.data"
    expected = None
    for config in FITTING:
        left.unlink(missing_ok=True)
        kit.run(kit.compile("view.cc", "-O2", spillway=False), "shared_file")
        expected = left.read_bytes()
        left.unlink()
        _same(kit, "shared_file", configs=(config,))
        expect(left.read_bytes() == expected, f"with {config} the file left mapped is another one")


def test_stores_to_private_mappings_that_fit_stay_there(kit: Kit) -> None:
    _same(kit, "private_file")


def test_what_was_synced_is_not_written_again(kit: Kit) -> None:
    _same(kit, "written_between", configs=(FITS,))


def test_without_a_view_answers_are_the_same(kit: Kit) -> None:
    for part, argument in (("outgrow", 8), ("churn", 1000), ("shared_file", 0), ("private_file", 0)):
        kit.same_as_native("view.cc", part, argument, configs=(FITS,), env=kit.wants_report | {"SPILLWAY_LEVELS": "all"})
        counters = kit.report()["counters"]
        expect(counters["view_faults"] == 0, f"{part} used a view: {counters}")


def test_children_beside_memory_that_fits_work(kit: Kit) -> None:
    for part in ("spawn", "system_and_popen", "vfork", "fork_twice"):
        _same(kit, part, configs=(FITS, FITS_UNOPTIMISED), source="processes.cc")


def test_threads_of_all_kinds_share_memory_that_fits(kit: Kit) -> None:
    for part, argument in (("come_and_go", 500), ("interleaved", 16), ("atomics", 0), ("foreign_locks", 0), ("standard_locks", 0),
                           ("atomic_waits", 0), ("futures", 0), ("keys", 0)):
        kit.same_as_native("threads.cc", part, argument, configs=(FITS, FITS_UNOPTIMISED))


def test_programs_of_all_kinds_run_on_memory_that_fits(kit: Kit) -> None:
    parts = {
        "containers.cc": ("vectors", "deques_and_lists", "trees", "hash_tables", "strings", "algorithms", "smart_pointers"),
        "language.cc": ("realloc", "calloc", "aligned", "zero", "throw", "longjmp", "thread_local", "signals", "copies"),
        "files.cc": ("print", "streams", "stdio", "descriptors"),
        "calls.cc": ("files", "locks", "many_messages", "times_and_limits", "signals_and_events", "ways_of_exec",
                     "buffers_of_libc", "long_strings"),
    }
    for source, names in parts.items():
        for name in names:
            kit.same_as_native(source, name, configs=(FITS, FITS_MEDIUM))


def test_random_operations_on_memory_that_fits_end_as_natively(kit: Kit) -> None:
    for part in ("brief", "brief_threads"):
        kit.same_as_native("random.cc", part, 1, configs=(FITS, FITS_UNOPTIMISED, FITS_LARGE), flags=("-Wno-deprecated-declarations",))


def test_signals_beside_memory_that_fits_work(kit: Kit) -> None:
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=".so")
    for source, part, argument in (("blocked.cc", "threads", 0), ("blocked.cc", "thread_with_a_mask", 0), ("blocked.cc", "in_handler", 0),
                                   ("blocked.cc", "suspended", 0), ("blocked.cc", "own_handler", 0), ("old_signals.cc", "installed", 0),
                                   ("old_signals.cc", "blocked", 0)):
        kit.same_as_native(source, part, argument, configs=(FITS, FITS_UNOPTIMISED), inputs=(library,))


def test_handlers_touch_memory_that_fits_while_faults_are_served(kit: Kit) -> None:
    # Code without a plain version may not be interrupted in the runtime (access/translate/translator.h).
    _same(kit, "alarms", 12, (FITS, FITS_LARGE))


def test_foreign_code_works_on_memory_that_fits(kit: Kit) -> None:
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=".so")
    for part in ("arrays", "together", "lists", "callbacks", "patterns", "own_fault_handler"):
        kit.same_as_native("foreign.cc", part, configs=(FITS, FITS_MEDIUM), inputs=(library,))


def test_the_public_interface_works_on_memory_that_fits(kit: Kit) -> None:
    for config in (FITS, FITS_UNOPTIMISED, FITS_MEDIUM):
        program = kit.compile("api.cc", *config.flags, f"-I{HERE.parents[1] / 'include'}")
        for part, same in (("writes", "same 1\n"), ("files", "flush 0\nunmap 0\nsame 1\n")):
            run = kit.run(program, part, env=config.environment())
            expect((run.code, run.output, run.errors) == (0, same, ""), f"{part} with {config}: {run.last_words()}")
