#!/usr/bin/env python3
"""libspillway.so and libspillway_cxx.so export every entry point that their sources declare, every redirected function, and no
C++ template."""
import pathlib
import re
import subprocess
import sys

# The name, and the symbol if it is another.
ENTRY = re.compile(r"^SPW_(?:ENTRY|PUBLIC)\s[^(]*?(\w+)\((?:[^)]*\)\s*__asm__\(\"(\w+)\"\))?", re.MULTILINE)


def main() -> int:
    root, libraries = pathlib.Path(sys.argv[1]), sys.argv[2:]
    listed = subprocess.run(["nm", "-D", "--defined-only", *libraries], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in listed.splitlines() if len(line.split()) > 1}
    wanted = set()
    for source in [*root.glob("src/libc/**/*.cc"), *root.glob("src/api/*.cc")]:
        wanted |= {symbol or name for name, symbol in ENTRY.findall(source.read_text()) if not name.startswith("operator")}
    wanted |= {f"__spw_{name}_v1" for name in re.findall(r"^SPW_CALL\((\w+), \w*R\)", (root / "abi/calls.def").read_text(), re.MULTILINE)}
    wanted |= {"__spw_load_v1", "__spw_store_v1", "__spw_store_across_v1", "__spw_span_v1", "__spw_thread_v1", "__spw_abi_v3"}
    missing = sorted(wanted - exported)
    leaked = sorted(name for name in exported if re.match(r"_ZN?K?S[tas]|_ZN3spw|_ZN3fmt", name))
    for name in missing:
        print(f"not exported: {name} (abi/calls.def)")
    for name in leaked:
        print(f"exported by mistake: {name}")
    print(f"{len(wanted)} entry points, {len(missing)} missing, {len(leaked)} leaked")
    return 1 if missing or leaked or len(wanted) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
