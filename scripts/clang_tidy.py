#!/usr/bin/env python3
"""Runs clang-tidy with the checks of .clang-tidy: clang_tidy.py {--changed|--all}, on the compile commands of build/release.

--all: every source of FOLDERS that is compiled, which takes some seconds of processor time each. --changed: those that differ from
the commit where this branch left the main one (on the main branch: from the commit before), headers by a source that includes
them; FILES_MAX at most, which takes no more than about three minutes on two processors. What it finds is named by the files of the
source tree. Exit status 1: something was found; 77: there is no clang-tidy or nothing is configured.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
FOLDERS = ("abi", "src", "lab", "tools", "compiler", "bench", "include", "compat")
TOOL = "clang-tidy-19"
FILES_MAX = 80
NOT_USED = 77
# Layers see each other's headers by links (cmake/layers.cmake).
LINKS = ((re.compile(r"\S*/layers/\w+/(?=(?:abi|lab)/)"), ""), (re.compile(r"\S*/layers/\w+/"), "src/"))


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True).stdout


def base_commit() -> str:
    """What the changes are counted from."""
    head = git("rev-parse", "HEAD").strip()
    for main in ("origin/HEAD", "origin/main", "main"):
        found = subprocess.run(["git", "-C", ROOT, "merge-base", "HEAD", main], capture_output=True, text=True).stdout.strip()
        if found and found != head:
            return found
    before = subprocess.run(["git", "-C", ROOT, "rev-parse", "-q", "--verify", "HEAD^"], capture_output=True, text=True)
    return before.stdout.strip() or head


def compiled() -> list[str]:
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    names = {os.path.relpath(pathlib.Path(command["directory"], command["file"]).resolve(), ROOT) for command in commands}
    return sorted(name for name in names if name.endswith((".cc", ".cpp")) and name.startswith(tuple(f"{folder}/" for folder in FOLDERS)))


def source_with(header: str, sources: list[str]) -> str | None:
    """The header's own source; else the first that includes it by name."""
    own = header.removesuffix(".h") + ".cc"
    if own in sources:
        return own
    name = re.compile(rf'^#include ".*\b{re.escape(pathlib.PurePath(header).name)}"', re.MULTILINE)
    return next((source for source in sources if name.search((ROOT / source).read_text())), None)


def changed(sources: list[str]) -> list[str]:
    found = set()
    for name in git("diff", "--name-only", "--diff-filter=d", base_commit()).splitlines():
        if name in sources:
            found.add(name)
        elif name.endswith(".h") and name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            found.add(source_with(name, sources))
    return sorted(found - {None})


def look_at(source: str) -> list[str]:
    """Its findings, a line each; if clang-tidy itself fails, what that says."""
    done = subprocess.run([TOOL, "-p", BUILD, "--quiet", ROOT / source], capture_output=True, text=True, cwd=ROOT)
    said = done.stdout.replace(f"{ROOT}/", "")
    for link, folder in LINKS:
        said = link.sub(folder, said)
    found = [line for line in said.splitlines() if re.search(r":\d+: (?:error|warning): ", line)]
    return found or ([f"{source}: clang-tidy failed: {done.stderr.strip()[-300:]}"] if done.returncode else [])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--changed", action="store_true")
    which.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    if not shutil.which(TOOL) or not (BUILD / "compile_commands.json").exists():
        print(f"skipped: {TOOL} or {BUILD.relative_to(ROOT)} is missing")
        return NOT_USED
    sources = compiled()
    wanted = sources if arguments.all else changed(sources)
    if arguments.changed and len(wanted) > FILES_MAX:
        print(f"clang-tidy: {len(wanted)} files have changed; {FILES_MAX} of them are looked at here, and all by ./dev nightly")
        wanted = wanted[:FILES_MAX]
    seen = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in (line for lines in pool.map(look_at, wanted) for line in lines):
            if line not in seen:  # headers are in many sources
                print(line, file=sys.stderr, flush=True)
            seen.add(line)
    print(f"clang-tidy: {len(wanted)} of {len(sources)} files, {len(seen)} findings")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
