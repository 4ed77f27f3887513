#!/usr/bin/env python3
"""Programs that know nothing of Spillway, run on a tiny cap and compared with native runs: endtoend_test.py BUILD ENGINE CASE.

--list-program ENGINE prints the cases, --list-slow the long ones, and of both --list-root those that are skipped without root, and
--list-quiet those that count something that other work on the machine changes. A case is a function of a cases_*.py file, named after
a behaviour. What it needs its module says: NEEDS_ROOT and NEEDS_QUIET, as SLOW.
Exit status 77 with a reason: skipped, as something is missing.
"""
import importlib
import pathlib
import shutil
import sys
import tempfile

import kit
from harness import sources

MODULES = [importlib.import_module(file.stem) for file in sorted(kit.HERE.glob("cases_*.py"))]
CASES = {name: case for module in MODULES for name, case in vars(module).items()
         if callable(case) and case.__module__ == module.__name__ and not name.startswith("_")}
SLOW_CASES = {name for module in MODULES for name in getattr(module, "SLOW", ())}
# A module's SLOW_WITH: by engine, the cases that are slow with it only, as others stand for them in continuous integration.
SLOW_WITH = {(engine, name) for module in MODULES for engine, names in getattr(module, "SLOW_WITH", {}).items() for name in names}


def needing(what: str) -> set[str]:
    names = {name for module in MODULES for name in getattr(module, what, ())}
    assert names <= CASES.keys(), f"{what} names no cases: {names - CASES.keys()}"
    return names


def listed(what: str, engine: str) -> list[str]:
    slow = SLOW_CASES | {name for of, name in SLOW_WITH if of == engine}
    wanted = {"--list-program": CASES.keys() - slow, "--list-slow": slow,
              "--list-root": needing("NEEDS_ROOT"), "--list-quiet": needing("NEEDS_QUIET")}[what]
    return [name for name in CASES
            if name in wanted and engine in getattr(sys.modules[CASES[name].__module__], "ENGINES", kit.ENGINES)]


def main() -> int:
    if sys.argv[1].startswith("--list-"):
        print(";".join(listed(sys.argv[1], sys.argv[2])))
        return 0
    build, engine, name = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    parent = build / "tests" / "endtoend"
    parent.mkdir(parents=True, exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    try:
        CASES[name](kit.Kit(build, place, engine))
    except (kit.Skipped, sources.Unavailable) as reason:
        print(f"skipped: {reason}")
        return 77
    except (kit.Wrong, sources.BuildFailed) as wrong:
        print(f"FAILED: {wrong}")
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
