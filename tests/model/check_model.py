#!/usr/bin/env python3
"""Checks a Spin model: the right one has no errors, and each of its switched-on bugs is found.

    check_model.py MODEL.pml WORK_DIRECTORY {safety|progress|bugs|quick|large}

Exit status: 0 checked; 1 an error, with the shortest words on where; 77 spin or a C compiler is missing.
"""
import pathlib
import re
import shutil
import subprocess
import sys

# `quick` is the last world of safety and of progress, which are the smallest: for every run of the tests.
# Of each model the defines of each run. Small worlds, so that each is searched to its end in seconds; together they have
# everything. `progress` is of models with an ltl formula; `bugs`: the world that switched-on bugs are looked for in; `large`: worlds
# for `./dev nightly`, which take minutes and up to LARGE_MIB_MAX of memory; `progress_bugs`: bugs that break no assertion and
# stop nobody, but keep somebody from ever getting on, looked for in the last world of `progress`.
MODELS = {
    "pin_evict_writeback": {
        "safety": [
            {"OPS_0": 2, "OPS_1": 1, "SYNCS": 1},
            {"OPS_0": 2, "OPS_1": 2, "SYNCS": 0},
            {"OPS_0": 2, "OPS_1": 1, "SYNCS": 0, "FILL_FAILURES": 1, "WRITE_FAILURES": 1},
        ],
        "progress": [
            {"OPS_0": 1, "OPS_1": 1, "SYNCS": 1, "FILL_FAILURES": 1, "WRITE_FAILURES": 1},
            {"OPS_0": 2, "OPS_1": 1, "SYNCS": 0},
        ],
        "bugs": {"OPS_0": 2, "OPS_1": 2, "SYNCS": 1, "FILL_FAILURES": 1, "WRITE_FAILURES": 1},
        "large": [
            {"OPS_0": 2, "OPS_1": 2, "SYNCS": 1},
            {"OPS_0": 2, "OPS_1": 1, "SYNCS": 1, "FILL_FAILURES": 1, "WRITE_FAILURES": 1},
        ],
        "progress_bugs": {"BUG_VICTIMS_NOT_WRITTEN"},
    },
    "page_index_deletion": {
        "safety": [
            {"OPS_0": 2, "OPS_1": 1, "RECLAIMS": 1},
            {"OPS_0": 1, "OPS_1": 1, "RECLAIMS": 2},
            {"OPS_0": 1, "OPS_1": 1, "RECLAIMS": 1, "READS": 1},
        ],
        "progress": [],
        "bugs": {"OPS_0": 2, "OPS_1": 1, "RECLAIMS": 1},
        "large": [
            {"OPS_0": 2, "OPS_1": 1, "RECLAIMS": 2},
            {"OPS_0": 2, "OPS_1": 1, "RECLAIMS": 1, "READS": 1},
        ],
        "progress_bugs": set(),
    },
    "extent_claim": {
        "safety": [
            {"OPS_0": 2, "OPS_1": 1, "CLAIMS": 2},
            {"OPS_0": 2, "OPS_1": 2, "CLAIMS": 1, "STORES": 2},
            {"OPS_0": 2, "OPS_1": 1, "CLAIMS": 1, "WRITE_FAILURES": 1, "EVICTIONS": 2},
            {"OPS_0": 1, "OPS_1": 1, "CLAIMS": 2, "WRITE_FAILURES": 1},
        ],
        "progress": [
            {"OPS_0": 1, "OPS_1": 1, "CLAIMS": 1},
        ],
        "bugs": {"OPS_0": 2, "OPS_1": 1, "CLAIMS": 2},
        "large": [
            {"OPS_0": 2, "OPS_1": 2, "CLAIMS": 2, "STORES": 2, "WRITE_FAILURES": 1},
        ],
        "progress_bugs": set(),
    },
    "extent_fork": {
        "safety": [
            {"PINS": 3, "CLAIMS": 2, "RESTS": 2, "FORKS": 2},
            {"PINS": 2, "CLAIMS": 2, "RESTS": 1, "FORKS": 1},
        ],
        "progress": [
            {"PINS": 2, "CLAIMS": 2, "RESTS": 1, "FORKS": 1},
        ],
        "bugs": {"PINS": 2, "CLAIMS": 2, "RESTS": 1, "FORKS": 1},
        "large": [
            {"PINS": 4, "CLAIMS": 4, "RESTS": 3, "FORKS": 2},
        ],
        "progress_bugs": set(),
    },
    "lifted_writes": {
        "safety": [
            {"OPS_0": 2, "OPS_1": 2, "WRITES": 2, "EVICTIONS": 1},
            {"OPS_0": 2, "OPS_1": 1, "WRITES": 2, "EVICTIONS": 1, "WRITE_FAILURES": 1},
            {"OPS_0": 2, "OPS_1": 1, "WRITES": 1, "EVICTIONS": 2},
        ],
        "progress": [
            {"OPS_0": 1, "OPS_1": 1, "WRITES": 1, "EVICTIONS": 1, "WRITE_FAILURES": 1},
        ],
        "bugs": {"OPS_0": 2, "OPS_1": 1, "WRITES": 2, "EVICTIONS": 1, "WRITE_FAILURES": 1},
        "large": [
            {"OPS_0": 2, "OPS_1": 2, "WRITES": 3, "EVICTIONS": 2, "WRITE_FAILURES": 1},
        ],
        "progress_bugs": set(),
    },
    "loose_placed": {
        "safety": [
            {"OPS_0": 1, "OPS_1": 1, "OPS_2": 1},
            {"OPS_0": 2, "OPS_1": 2, "OPS_2": 0},
            {"OPS_0": 2, "OPS_1": 0, "OPS_2": 2, "WITHDRAWALS": 2},
            {"OPS_0": 1, "OPS_1": 0, "OPS_2": 2, "WITHDRAWALS": 2, "DISCARDS": 1, "STORES_AHEAD": 1},
            {"OPS_0": 2, "OPS_1": 0, "OPS_2": 1},
        ],
        "progress": [
            {"OPS_0": 2, "OPS_1": 0, "OPS_2": 1},
            {"OPS_0": 1, "OPS_1": 0, "OPS_2": 2, "WITHDRAWALS": 2},
        ],
        "bugs": {"OPS_0": 2, "OPS_1": 0, "OPS_2": 2, "WITHDRAWALS": 2, "STORES_AHEAD": 1},
        "large": [
            {"OPS_0": 1, "OPS_1": 1, "OPS_2": 1, "WITHDRAWALS": 2},
            {"OPS_0": 1, "OPS_1": 1, "OPS_2": 2},
            {"OPS_0": 1, "OPS_1": 1, "OPS_2": 1, "DISCARDS": 1},
            {"OPS_0": 2, "OPS_1": 0, "OPS_2": 2, "EVICTIONS": 2, "WRITEBACKS": 2, "WITHDRAWALS": 2},
            {"OPS_0": 2, "OPS_1": 0, "OPS_2": 2, "WITHDRAWALS": 2, "DISCARDS": 1, "STORES_AHEAD": 1},
        ],
        "progress_bugs": {"BUG_FAULT_WAITS_FOR_HOLDERS"},
    },
}
# How pan is built and called: for assertions and deadlocks; for the ltl formula under weak fairness.
SAFETY_SEARCH = (["-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE"], [])
PROGRESS_SEARCH = (["-DNFAIR=3", "-DCOLLAPSE"], ["-a", "-f"])
SECONDS_MAX, LARGE_SECONDS_MAX = 240, 3600
LARGE_MIB_MAX = 4096


def check(model: pathlib.Path, work: pathlib.Path, defines: dict, search: tuple, seconds_max: int = SECONDS_MAX) -> tuple[int, str]:
    """How many errors the checker found (it stops at the first), and its words."""
    build, options = search
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    flags = [f"-D{name}={value}" for name, value in defines.items()]
    subprocess.run(["spin", *flags, "-a", str(model)], cwd=work, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["gcc", "-O2", "-w", *build, "-o", "pan", "pan.c"], cwd=work, check=True)
    run = subprocess.run(["./pan", "-m200000", *options], cwd=work, capture_output=True, text=True, timeout=seconds_max,
                         check=False)
    # A search that was cut short proves nothing.
    if "error: max search depth too small" in run.stdout or "out of memory" in run.stdout or "-DMEMLIM bound" in run.stdout:
        raise RuntimeError(f"{defines}: the search was cut short\n{run.stdout}")
    errors = int(re.search(r"errors: (\d+)", run.stdout).group(1))
    states = re.search(r"([\d.e+]+) states, stored", run.stdout).group(1)
    why = re.search(r"pan:1: (.*)", run.stdout)
    return errors, f"{states} states{', ' + why.group(1) if why else ''}"


def main() -> int:
    model, work, what = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3]
    for tool in ("spin", "gcc"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is missing")
            return 77
    bad = 0
    worlds_of = MODELS[model.stem]
    if what == "bugs":
        for bug in sorted(set(re.findall(r"\bBUG_[A-Z_]+\b", model.read_text()))):
            world, search = \
                (worlds_of["progress"][-1], PROGRESS_SEARCH) if bug in worlds_of["progress_bugs"] else (worlds_of["bugs"], SAFETY_SEARCH)
            errors, words = check(model, work / bug, {**world, bug: 1}, search)
            bad += errors == 0
            print(f"{bug}: {'found' if errors else 'NOT FOUND'} ({words})")
        return 1 if bad else 0
    searches = [(world, SAFETY_SEARCH) for world in worlds_of["safety" if what == "quick" else what]]
    seconds_max = SECONDS_MAX
    if what == "progress":
        searches = [(world, PROGRESS_SEARCH) for world in worlds_of["progress"]]
    elif what == "quick":
        searches = searches[-1:] + [(world, PROGRESS_SEARCH) for world in worlds_of.get("progress", [])][-1:]
    elif what == "large":
        searches = [(world, ([*search[0], f"-DMEMLIM={LARGE_MIB_MAX}"], search[1])) for world, search in searches]
        seconds_max = LARGE_SECONDS_MAX
    for number, (world, search) in enumerate(searches):
        errors, words = check(model, work / f"{what}{number}", world, search, seconds_max)
        bad += errors
        print(f"{world}: {errors} errors ({words})")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
