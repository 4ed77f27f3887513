"""Managed memory in the hands of code that was not recompiled."""
import pathlib

from kit import Config, Kit, SMALL, UNOPTIMISED, MEDIUM, expect


def _same(kit: Kit, part: str, *configs: Config, suffix: str = ".so") -> None:
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=suffix)
    kit.same_as_native("foreign.cc", part, configs=configs, inputs=(library,))


def test_a_foreign_library_reads_and_writes_managed_arrays(kit: Kit) -> None:
    _same(kit, "arrays", SMALL, UNOPTIMISED, MEDIUM)


def test_a_plain_object_is_linked_with_instrumented_ones(kit: Kit) -> None:
    _same(kit, "arrays", SMALL, suffix=".o")


def test_foreign_and_instrumented_threads_lose_no_update(kit: Kit) -> None:
    _same(kit, "together", SMALL, MEDIUM)


def test_lists_mix_nodes_of_both_allocators(kit: Kit) -> None:
    _same(kit, "lists", SMALL, UNOPTIMISED)


def test_foreign_code_calls_back_with_managed_arguments(kit: Kit) -> None:
    _same(kit, "callbacks", SMALL, UNOPTIMISED)


def test_regular_expressions_match_managed_text(kit: Kit) -> None:
    _same(kit, "patterns", SMALL, MEDIUM)


def test_programs_handle_segmentation_faults_of_their_own(kit: Kit) -> None:
    _same(kit, "own_fault_handler", SMALL, UNOPTIMISED)


def test_foreign_code_is_named_in_the_report(kit: Kit) -> None:
    library = kit.compile("foreign_library.c", "-O2", spillway=False, suffix=".so")
    program = kit.compile("foreign.cc", *SMALL.flags, inputs=(library,))
    run = kit.run(program, "arrays", env=SMALL.environment() | kit.wants_report)
    expect(run.code == 0, run.last_words())
    foreign = kit.report()["foreign"]
    if kit.engine != "translated":
        return expect(foreign == [], f"nothing is foreign where data has its own address: {foreign}")
    named = {(pathlib.Path(code["library"]).name, code["function"]) for code in foreign if code["faults"] > 100}
    expect({(library.name, "foreign_sum"), (library.name, "foreign_add")} <= named, f"{foreign}")
