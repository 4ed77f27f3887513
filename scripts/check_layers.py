#!/usr/bin/env python3
"""Fails when a file includes a layer above its own, or when sibling parts of a layer do.

The order is SPW_LAYERS of cmake/layers.cmake, lowest first. A layer may include itself and the layers before it;
the folders of a layer that are layers themselves (access/mapped) are siblings and never include each other. The last
layer is lab/, which nothing that is shipped may include: neither src/ nor the tools, the compiler and the headers for programs.
"""
import pathlib
import re
import sys

SUFFIXES = {".h", ".cc", ".cpp", ".c", ".inc"}
SHIPPED = ("tools", "compiler", "compat", "include")  # in no layer, and without the lab
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def read_layers(root: pathlib.Path) -> list[str]:
    text = (root / "cmake/layers.cmake").read_text()
    return re.search(r"set\(SPW_LAYERS([^)]*)\)", text).group(1).split()


def layer_of(path: str, layers: list[str]) -> str | None:
    return max((layer for layer in layers if path == layer or path.startswith(layer + "/")), key=len, default=None)


def sources(root: pathlib.Path, folders: tuple[str, ...]) -> list[pathlib.Path]:
    return sorted(path for folder in folders for path in root.glob(f"{folder}/**/*") if path.suffix in SUFFIXES)


def violations(root: pathlib.Path, layers: list[str]) -> list[str]:
    found = []
    for source in sources(root, ("src", "abi", "lab")):
        relative = source.relative_to(root).as_posix()
        own = layer_of(relative.removeprefix("src/"), layers)
        if own is None:
            found.append(f"{relative}: in no layer of cmake/layers.cmake")
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            other = match and layer_of(match.group(1), layers)
            if not other or other == own:
                continue
            siblings = "/" in own and pathlib.PurePath(own).parent == pathlib.PurePath(other).parent
            if siblings or layers.index(other) > layers.index(own):
                found.append(f"{relative}:{number}: layer {own} includes {other}, which is {'its sibling' if siblings else 'above it'}")
    for source in sources(root, SHIPPED):
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1).startswith("lab/"):
                found.append(f"{source.relative_to(root).as_posix()}:{number}: includes the lab, which nothing shipped may")
    return found


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = violations(root, read_layers(root))
    print("\n".join(found), file=sys.stderr) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
