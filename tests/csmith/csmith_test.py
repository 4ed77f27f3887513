#!/usr/bin/env python3
"""Random programs of csmith, recompiled for both engines on a tiny cap, compared with native runs.

csmith keeps its data in globals, which are not managed. So the program becomes a class whose object is allocated: its globals are
members, all of them in managed memory. A thread beside it (churn.h) has them evicted before each of a few rounds, and goes on.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
COMPILER = "clang++-19"
LEVELS = ("-O0", "-O1", "-O2", "-O3")
ENGINES = ("translated", "mapped")
FLAGS = ("-std=c++17", "-w", "-Wno-narrowing", "-pthread", "-I/usr/include/csmith", f"-I{HERE}")
MEMORY = "8M"
GENERATE_LIMIT_S, COMPILE_LIMIT_S, NATIVE_LIMIT_S, RUN_LIMIT_S = 60, 120, 2, 60
# Of the processor. What csmith makes at all it makes in a second or two; with one seed in ten it does not end.
GENERATE_LIMIT_CPU_S = 2
# What takes clang alone longer says nothing more about ours.
COMPILE_NATIVELY_LIMIT_CPU_S = 5
ROUNDS = 4
GENERATOR_FLAGS = ("--lang-cpp", "--cpp11", "--max-array-len-per-dim", "20")
# For many of them: half the time each.
SMALL_FLAGS = ("--max-funcs", "3", "--max-block-depth", "3", "--max-expr-complexity", "5")
NOT_USED = 77


@dataclasses.dataclass(frozen=True)
class Outcome:
    seed: int
    wrong: str = ""
    skipped: str = ""


def as_class(text: str) -> str:
    """The program with its globals and functions as members of a class, whose object main() allocates."""
    head, rest = text.split("/* --- Struct/Union Declarations --- */", 1)
    rest, statistics = rest.rsplit("/************************ statistics", 1)
    lines = []
    for line in rest.splitlines():
        if re.match(r"(inline )?static .*\bfunc_\d+\(.*\);$", line):
            continue  # members need no declaration before their use
        lines.append(re.sub(r"^(inline )?static ", "", line))
    body = re.sub(r"^int main ?\(", "int run(", "\n".join(lines), flags=re.MULTILINE)
    return (f'{head}#include "churn.h"\nstruct Program {{\n{body}\n}};\n'
            "int main(int argc, char** argv) {\n  int code = 0;\n"
            f"  for (int round = 0; round < {ROUNDS}; ++round) {{\n    Program* program = new Program;\n    churn.wait_for_a_lap();\n"
            "    code |= program->run(argc, argv);\n    delete program;\n  }\n  return code;\n}\n"
            f"/************************ statistics{statistics}")


class Stopped(Exception):
    """The test is to end: nothing more is started, and what ends now was ended."""


class Children:
    """What runs, each in a session of its own, so that it goes with all that it has started."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen] = set()
        self.stopped = False

    def start(self, command: list, **options) -> subprocess.Popen:
        with self.lock:
            if self.stopped:
                raise Stopped
            process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       start_new_session=True, **options)
            self.running.add(process)
            return process

    def end(self, process: subprocess.Popen) -> None:
        with self.lock:
            self.running.discard(process)
        kill_session(process)
        process.communicate()
        if self.stopped:
            raise Stopped

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for process in self.running:
                kill_session(process)


def kill_session(process: subprocess.Popen) -> None:
    if process.returncode is None:  # else its number may be another's
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


CHILDREN = Children()


def call(command: list, limit_s: float, **options) -> subprocess.CompletedProcess | None:
    """None: it took too long."""
    process = CHILDREN.start(command, **options)
    try:
        output, errors = process.communicate(timeout=limit_s)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        return None
    finally:
        CHILDREN.end(process)


def said(done: subprocess.CompletedProcess | None, limit_s: float) -> str:
    if done is None:
        return f"took longer than {limit_s} s"
    return f"exit code {done.returncode}: {(done.stdout + done.stderr)[-800:]}"


def check(build: pathlib.Path, place: pathlib.Path, seed: int, flags: tuple) -> Outcome:
    generator = ["prlimit", f"--cpu={GENERATE_LIMIT_CPU_S}", "csmith", "--seed", seed, *GENERATOR_FLAGS, *flags]
    made = call(generator, GENERATE_LIMIT_S, cwd=place)  # leaves a file there
    if made is None or made.returncode != 0:
        return Outcome(seed, skipped="csmith does not end")
    source = place / f"{seed}.cc"
    source.write_text(as_class(made.stdout))
    native = place / "native"
    level = LEVELS[seed % len(LEVELS)]
    compiled = call(["prlimit", f"--cpu={COMPILE_NATIVELY_LIMIT_CPU_S}", COMPILER, *FLAGS, level, source, "-o", native], COMPILE_LIMIT_S)
    if compiled is None or compiled.returncode != 0:
        return Outcome(seed, skipped="no C++ as a class, or too much of it")
    expected = call([native], NATIVE_LIMIT_S)
    if expected is None or expected.returncode < 0:
        return Outcome(seed, skipped="the native program does not end")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
    for engine in ENGINES:
        program = place / engine
        compiled = call([build / "bin" / "spillway-clang++", *FLAGS, level, f"-fspillway-engine={engine}", source, "-o", program],
                        COMPILE_LIMIT_S)
        if compiled is None or compiled.returncode != 0:
            return Outcome(seed, wrong=f"{engine} {level}: compiling: {said(compiled, COMPILE_LIMIT_S)}")
        ran = call([build / "bin" / "spillway", "run", "--memory", MEMORY, "--threshold", 1, "--quota", 0, "--store", place, "--",
                    program], RUN_LIMIT_S, env=environment | {"CHURN": "1"})
        if ran is None or (ran.returncode, ran.stdout) != (expected.returncode, expected.stdout):
            if is_undefined(place, seed, expected.stdout):
                return Outcome(seed, skipped="undefined: natively other results without optimisation")
            return Outcome(seed, wrong=f"{engine} {level}: {said(ran, RUN_LIMIT_S)}\nnatively {expected.stdout}")
    return Outcome(seed)


def is_undefined(place: pathlib.Path, seed: int, expected: str) -> bool:
    """Whether clang alone makes something else of the program without optimisation: csmith writes loops without end, which C++ may take away."""
    unoptimised = place / "unoptimised"
    compiled = call([COMPILER, *FLAGS, "-O0", place / f"{seed}.cc", "-o", unoptimised], COMPILE_LIMIT_S)
    ran = call([unoptimised], RUN_LIMIT_S) if compiled and compiled.returncode == 0 else None
    return ran is None or ran.stdout != expected


def check_in_own_place(build: pathlib.Path, keep: pathlib.Path, seed: int, flags: tuple) -> Outcome:
    with tempfile.TemporaryDirectory(dir=keep) as place:
        outcome = check(build, pathlib.Path(place), seed, flags)
        if outcome.wrong:
            shutil.copy(pathlib.Path(place) / f"{seed}.cc", keep)
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10, help="programs [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of the first [%(default)s]")
    parser.add_argument("--small", action="store_true", help="programs of few functions: more of them in the time")
    arguments = parser.parse_args()
    if not shutil.which("csmith"):
        print("skipped: csmith is not installed")
        return NOT_USED
    keep = arguments.build.resolve() / "tests" / "csmith"
    keep.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            return check_all(pool, arguments, keep)
        except (KeyboardInterrupt, SystemExit) as ended:
            pool.shutdown(wait=False, cancel_futures=True)
            CHILDREN.stop()
            return ended.code if isinstance(ended, SystemExit) else 128 + signal.SIGINT


def check_all(pool: concurrent.futures.Executor, arguments: argparse.Namespace, keep: pathlib.Path) -> int:
    skipped, wrong, done = {}, 0, 0
    flags = SMALL_FLAGS if arguments.small else ()
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    for outcome in pool.map(lambda seed: check_in_own_place(arguments.build.resolve(), keep, seed, flags), seeds):
        done += 1
        if outcome.skipped:
            skipped[outcome.skipped] = skipped.get(outcome.skipped, 0) + 1
        if outcome.wrong:
            wrong += 1
            print(f"seed {outcome.seed}: {outcome.wrong}\n  kept: {keep / f'{outcome.seed}.cc'}", flush=True)
        if done % 100 == 0:
            print(f"{done} programs, {wrong} wrong", flush=True)
    same = done - wrong - sum(skipped.values())
    print(f"{same} same as native, {wrong} wrong, {sum(skipped.values())} skipped {skipped or ''}")
    return 1 if wrong or same == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
