#!/usr/bin/env python3
"""The README's two commands on a machine that has nothing: bare_machine.py [--quick] [--only COMMAND] [--compiler-cache DIR].

A Debian 12 of apt and pip alone, a clone of the last commit in it, and there `./dev demo` and `./dev test`, which install what
they need. Both have to end well, and to say how far they are: never more than QUIET_MAX_S without a line. Some three hours of
two processors; with a cache of compilers' results (ccache's directory) less than one. --quick: the demonstration's small form
and no tests. Exit code 77, with the reason, where there are no root's rights or no network. What they printed stays in
build/packages/bare/.
"""
import argparse
import pathlib
import subprocess
import sys
import time

import fresh_root

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = SOURCE / "build/packages"
LOGS = FOLDER / "bare"
TIME_LIMIT_S = 3 * 3600
QUIET_MAX_S = 300
NOT_USED = 77
CACHE = "/compiler-cache"  # in the root


def progress_of(root, words, log, **environment):
    """(exit code, the longest time without a line in seconds) of a command in the clone."""
    began = last = time.monotonic()
    longest = 0.0
    with root.start("sh", "-c", 'cd /spillway && exec "$@" 2>&1', "sh", *words, **environment) as command, log.open("w") as kept:
        for line in command.stdout:
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            kept.write(f"{now - began:7.0f}  {line}")
            kept.flush()
            if now - began > TIME_LIMIT_S:
                command.kill()
                return -1, longest
        return command.wait(), max(longest, time.monotonic() - last)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small demonstration alone")
    parser.add_argument("--only", choices=("demo", "test"), help="this one of the two commands")
    parser.add_argument("--compiler-cache", type=pathlib.Path, metavar="DIR", help="ccache's directory, to take results from and to put them into")
    arguments = parser.parse_args()
    if arguments.compiler_cache and not arguments.compiler_cache.is_dir():
        parser.error(f"--compiler-cache={arguments.compiler_cache}: it is no directory")
    reason = fresh_root.why_not()
    if reason:
        print(f"skipped: {reason}")
        return NOT_USED
    base = FOLDER / "base" / "bookworm.tar"
    try:
        fresh_root.make_base(base)
    except OSError as error:
        print(f"skipped: {error}")
        return NOT_USED
    root = fresh_root.Root(base, FOLDER / "test" / "bare")
    LOGS.mkdir(exist_ok=True)
    environment = {}
    if arguments.compiler_cache:
        root.bind(arguments.compiler_cache, CACHE)
        environment = {"CCACHE_DIR": CACHE, "CCACHE_BASEDIR": "/spillway", "CCACHE_NOHASHDIR": "1"}
    commands = [("demo", "--quick")] if arguments.quick else [("demo",), ("test",)]
    commands = [words for words in commands if arguments.only in (None, words[0])]
    failed = 0
    try:
        subprocess.run(["git", "clone", "-q", SOURCE, root.folder / "spillway"], check=True)
        for words in commands:
            log = LOGS / f"{words[0]}.log"
            began = time.monotonic()
            code, longest_s = progress_of(root, ("./dev", *words), log, **environment)
            is_well = code == 0 and longest_s <= QUIET_MAX_S
            failed += not is_well
            said = [line[9:] for line in log.read_text().splitlines() if line[9:].strip()]
            last = said[-1] if said else ""
            print(f"./dev {' '.join(words)}: exit code {code} after {(time.monotonic() - began) / 60:.0f} min, at most "
                  f"{longest_s:.0f} s without a line{'' if is_well else f' (more than {QUIET_MAX_S} s is too long)' if code == 0 else ''}; "
                  f"its last one: {last}", flush=True)
    finally:
        root.remove()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
