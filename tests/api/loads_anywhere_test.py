#!/usr/bin/env python3
"""What libspillway.so and its kin ask of the system they are loaded into: `loads_anywhere_test.py FILE...`, by their dynamic sections.

No libstdc++ of the system's (but for libspillway_cxx.so), no symbol of a glibc newer than the floor, and nothing of the libstdc++ inside
visible to the program, whose own it would replace.
"""
import pathlib
import re
import subprocess
import sys

GLIBC_FLOOR = (2, 31)
# By name, or found in every glibc since the floor.
NEEDED = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|spillway|spillway_first)\.so\.\d+|ld-linux-x86-64\.so\.2")
WITH_LIBSTDCXX = "libspillway_cxx.so"


def _said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def wrong_in(file: pathlib.Path) -> list[str]:
    wrong = []
    of_program = file.name.startswith(WITH_LIBSTDCXX)
    for name in re.findall(r"\(NEEDED\).*\[(.+)\]", _said("readelf", "-dW", file)):
        if not NEEDED.fullmatch(name) and not (of_program and name == "libstdc++.so.6"):
            wrong.append(f"it needs {name}")
    symbols = 0
    for line in _said("objdump", "-T", file).splitlines():
        words = line.split()
        if len(words) < 4 or not re.fullmatch(r"[0-9a-f]{16}", words[0]):
            continue
        symbols += 1
        is_defined, name = "*UND*" not in words, words[-1]
        for version in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", line):
            if not is_defined and tuple(map(int, version.split("."))) > GLIBC_FLOOR:
                wrong.append(f"{name} of glibc {version}")
        if not of_program and not is_defined and re.search(r"GLIBCXX_|CXXABI_", line):
            wrong.append(f"{name} of the system's libstdc++")
        # __cxa_atexit is libc's, which the runtime stands before (abi/calls.def).
        if is_defined and name != "__cxa_atexit" and re.match(r"_ZNK?St|_ZNS[t9]|__cxa_|__gxx_", name):
            wrong.append(f"{name} is visible, which is libstdc++'s")
    return wrong + ([] if symbols else ["it has no dynamic symbols: is it a library?"])


def main() -> int:
    found = 0
    for file in map(pathlib.Path, sys.argv[1:]):
        for wrong in wrong_in(file):
            print(f"{file.name}: {wrong}")
            found += 1
    print(f"{len(sys.argv) - 1} files, {found} wrong")
    return 1 if found or len(sys.argv) == 1 else 0


if __name__ == "__main__":
    sys.exit(main())
