#!/usr/bin/env python3
"""Compiles one program plainly and instrumented, runs both, and fails where their output differs.

usage: run_program.py --clang CLANG --pass PLUGIN --runtime OBJECT... --work DIR --source FILE --flags "..."

Flags are clang's; a flag that starts with -spw goes to the pass. Exit 77: the machine cannot run what the flags ask for,
or the compiler has no OpenMP.
"""
import argparse
import pathlib
import subprocess
import sys

LIMIT_SECONDS = 180  # many times what it takes: others may use the machine, too


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def cpu_has(flags: list[str]) -> bool:
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    wanted = {"-mavx2": "avx2", "-mavx512vl": "avx512vl", "-mcx16": "cx16"}
    return all(name in cpu for flag, name in wanted.items() if flag in flags)


def has_openmp(clang: str) -> bool:
    done = subprocess.run([clang, "-fopenmp", "-fsyntax-only", "-xc", "-"], input="#include <omp.h>\n", capture_output=True, text=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clang", required=True)
    parser.add_argument("--pass", dest="plugin", required=True)
    parser.add_argument("--runtime", nargs="+", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--flags", default="")
    arguments = parser.parse_args()
    flags = arguments.flags.split()
    clang_flags = [flag for flag in flags if not flag.startswith("-spw")]
    if not cpu_has(clang_flags):
        print(f"skipped: this machine has not what {' '.join(clang_flags)} asks for")
        return 77
    if "-fopenmp" in clang_flags and not has_openmp(arguments.clang):
        print(f"skipped: {arguments.clang} has no OpenMP")
        return 77
    pathlib.Path(arguments.work).mkdir(parents=True, exist_ok=True)
    base = f"{arguments.work}/{pathlib.Path(arguments.source).name}{''.join(flags)}".replace("=", "_")
    mode = ["--driver-mode=g++"] if arguments.source.endswith(".cc") else []
    common = [arguments.clang, *mode, *clang_flags, "-Wno-everything", "-o"]
    plugin = [f"-fpass-plugin={arguments.plugin}", "-Xclang", "-load", "-Xclang", arguments.plugin]
    for flag in ["-spw-verify", *(flag for flag in flags if flag.startswith("-spw"))]:
        plugin += ["-Xclang", "-mllvm", "-Xclang", flag]
    run([*common, base + ".plain", arguments.source])
    run([*common, base + ".spw.o", "-c", *plugin, arguments.source])
    run([*common, base + ".spw", base + ".spw.o", *arguments.runtime, "-lpthread"])
    expected, got = run([base + ".plain"]), run([base + ".spw"])
    if expected == got:
        return 0
    for wanted, seen in zip(expected.splitlines(), got.splitlines()):
        print(f"{'  ' if wanted == seen else '! '}{wanted}   {'' if wanted == seen else seen}")
    print(f"{len(expected.splitlines())} lines wanted, {len(got.splitlines())} seen")
    return 1


if __name__ == "__main__":
    sys.exit(main())
