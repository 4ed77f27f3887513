"""Eviction policies of the user's own (include/spillway/policy.h), and traces to choose one by."""
import array
import pathlib
import subprocess

import pytest
from kit import EXIT_USAGE, SMALL, Kit, expect

pytestmark = pytest.mark.engines("translated", "mapped")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def _library(kit: Kit, source: pathlib.Path, *flags: str) -> pathlib.Path:
    made = kit.place / "libpolicy.so"
    done = subprocess.run(["clang-19", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{ROOT / 'include'}", *flags, source,
                           "-o", made], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    return made


def test_a_policy_of_ones_own_chooses_what_leaves(kit: Kit) -> None:
    policy = _library(kit, ROOT / "examples" / "policy" / "fifo.c")
    kit.same_as_native("containers.cc", "vectors", configs=(SMALL,), env={"SPILLWAY_POLICY": str(policy)} | kit.wants_report)
    kit.expect_spilled("containers.cc vectors")


def test_page_sets_give_the_same_answers(kit: Kit) -> None:
    for policy in ("sa-nrlfu", "sa-lru"):
        kit.same_as_native("containers.cc", "vectors", configs=(SMALL,), env={"SPILLWAY_POLICY": policy} | kit.wants_report)
        kit.expect_spilled(f"containers.cc vectors, {policy}")
    kit.same_as_native("threads.cc", "come_and_go", 500, configs=(SMALL,), env={"SPILLWAY_POLICY": "sa-nrlfu"} | kit.wants_report)


def test_what_is_no_policy_is_refused_with_a_line(kit: Kit) -> None:
    program = kit.compile("containers.cc", *SMALL.flags)
    bad = pathlib.Path(__file__).resolve().parent / "programs" / "policy_bad.c"
    for kind, complaint in enumerate(("does not define spw_policy_v1", "compile it again", "is missing")):
        run = kit.run(program, "vectors", env=SMALL.environment() | {"SPILLWAY_POLICY": str(_library(kit, bad, f"-DKIND={kind}"))})
        expect(run.code == EXIT_USAGE and run.errors.count("\n") == 1 and complaint in run.errors, run.last_words())
    run = kit.run(program, "vectors", env=SMALL.environment() | {"SPILLWAY_POLICY": "./nowhere.so"})
    expect(run.code == EXIT_USAGE and run.errors.count("\n") == 1 and "cannot be loaded" in run.errors, run.last_words())


def test_a_policy_that_breaks_the_rules_ends_the_program(kit: Kit) -> None:
    program = kit.compile("containers.cc", *SMALL.flags)
    bad = pathlib.Path(__file__).resolve().parent / "programs" / "policy_bad.c"
    run = kit.run(program, "vectors", env=SMALL.environment() | {"SPILLWAY_POLICY": str(_library(kit, bad, "-DKIND=3"))})
    expect(run.code == EXIT_USAGE and '"one too many" offered frame 1073741824' in run.errors, run.last_words())


def test_a_trace_has_the_blocks_in_the_order_of_their_uses(kit: Kit) -> None:
    trace = kit.place / "uses.trace"
    program = kit.compile("containers.cc", *SMALL.flags)
    run = kit.run(program, "vectors", env=SMALL.environment() | {"SPILLWAY_LEVELS": "shared", "SPILLWAY_TRACE": str(trace)})
    expect(run.code == 0 and run.errors == "", run.last_words())
    uses = array.array("Q", trace.read_bytes())
    expect(len(uses) > 5000 and len(set(uses)) > 2000, f"{len(uses)} uses of {len(set(uses))} blocks")
    in_a_row = sum(1 for before, here in zip(uses, uses[1:]) if here - before in (0, 1))
    expect(in_a_row > len(uses) / 3, f"of {len(uses)} uses {in_a_row} go on where the one before was")
    expect(all(not a == b == c for a, b, c in zip(uses, uses[1:], uses[2:])), "three uses of one block in a row")


def test_a_trace_that_cannot_be_written_is_refused(kit: Kit) -> None:
    program = kit.compile("containers.cc", *SMALL.flags)
    run = kit.run(program, "vectors", env=SMALL.environment() | {"SPILLWAY_TRACE": str(kit.place / "nowhere" / "uses.trace")})
    expect(run.code == EXIT_USAGE and run.errors.count("\n") == 1 and "--trace" in run.errors, run.last_words())
