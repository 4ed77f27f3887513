#!/usr/bin/env python3
"""Tidiness that a formatter does not see: tidy.py ROOT. Errors fail it; warnings ask for a second look.

Errors: a header without an opening comment; a tab in a source; a TODO without a name or issue and a reason; a path of
one particular machine; a comment of a source that names a file of ours that does not exist; a line of a C or C++ comment over
COMMENT_COLUMNS_MAX columns that is no row of a table or drawing. Warnings: a file over FILE_LINES_MAX lines; a C++ function over FUNCTION_LINES_MAX lines.
"""
import pathlib
import re
import subprocess
import sys

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
COMMENT_COLUMNS_MAX = 120
TABLE_ROW = re.compile(r"//.*(?:\S {3,}\S|=>|[^\x00-\x7f])|^ \*   ")

CXX = {".h", ".cc", ".cpp", ".c", ".inc"}
SOURCES = CXX | {".py", ".sh", ".cmake", ".ll"}
TEXTS = SOURCES | {".md", ".txt", ".json", ""}
# A TODO says who or what it waits for, and why: "TODO(#12): huge pages once the kernel ...".
TODO = re.compile(r"\bTODO\b(?!\([^)]+\): \S+ \S+)|\bFIXME\b|\bXXX\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|work|Users)/\w")
# What a comment calls a file: a name with one of our suffixes, with as much of its path as tells it apart.
FILE_NAME = re.compile(r"(?<![\w<./*~$-])((?:[\w-]+/)*[\w-]+\.(?:h|cc|inc|cpp|S|py|sh|ll|def|md))(?![\w*/-])")
SYSTEM_HEADERS = ("linux/", "sys/", "asm/")
C_COMMENT, SCRIPT_COMMENT = re.compile(r"//(.*)|^\s*/?\*+(.*)"), re.compile(r"#(.*)()")
COMMENTS = dict.fromkeys(CXX | {".S"}, C_COMMENT) | dict.fromkeys({".py", ".sh", ".cmake"}, SCRIPT_COMMENT)
FUNCTION_HEAD = re.compile(r"^\s*(?!\s|if\b|for\b|while\b|switch\b|else\b|do\b|namespace\b|\}).*\)[^;]*\{$")


def tracked_files(root: pathlib.Path) -> list[pathlib.Path]:
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return [root / name for name in listing.split("\0") if name and (root / name).is_file()]


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def long_functions(lines: list[str]) -> list[tuple[int, int]]:
    """(line number, length) of each function longer than the limit. Relies on clang-format's layout: a function ends at the
    first closing brace that is not indented more than the line that opened it. One whose head takes several lines may
    seem shorter than it is."""
    found = []
    for start, line in enumerate(lines):
        if not FUNCTION_HEAD.match(line):
            continue
        end = next((i for i in range(start + 1, len(lines))
                    if lines[i].strip().rstrip(";,)") == "}" and indent_of(lines[i]) <= indent_of(line)), start)
        if end - start + 1 > FUNCTION_LINES_MAX:
            found.append((start + 1, end - start + 1))
    return found


def endings_of(names: list[str]) -> set[str]:
    """Every way in which a comment may name one of the files."""
    return {name.split("/", skipped)[-1] for name in names for skipped in range(name.count("/") + 1)}


def missing_files(line: str, comment: re.Pattern, known: set[str]) -> list[str]:
    """Files that the comment in the line names and that do not exist."""
    found = comment.search(line)
    text = (found[1] or found[2] or "") if found else ""
    return [name for name in FILE_NAME.findall(text) if name not in known and not name.startswith(SYSTEM_HEADERS)]


def check_file(name: str, path: pathlib.Path, known: set[str], errors: list[str], warnings: list[str]) -> None:
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return  # not a text
    own_rules = name in ("scripts/tidy.py", "LICENSE")
    if path.suffix == ".h" and not (lines and lines[0].startswith(("//", "/*"))):
        errors.append(f"{name}:1: a header opens with a comment that says what it is for")
    for number, line in enumerate(lines, 1):
        if path.suffix in SOURCES and "\t" in line:
            errors.append(f"{name}:{number}: a tab")
        if not own_rules and TODO.search(line):
            errors.append(f"{name}:{number}: a TODO needs a name or issue and a reason: TODO(#12): why it waits")
        if not own_rules and MACHINE_PATH.search(line):
            errors.append(f"{name}:{number}: a path of one particular machine")
        if path.suffix in CXX and len(line) > COMMENT_COLUMNS_MAX and line.lstrip().startswith(("//", "*")) and not TABLE_ROW.search(line):
            errors.append(f"{name}:{number}: a comment of {len(line)} columns; {COMMENT_COLUMNS_MAX} at most")
        if path.suffix in COMMENTS:
            for missing in missing_files(line, COMMENTS[path.suffix], known):
                errors.append(f"{name}:{number}: the comment names {missing}, and there is no such file")
    if path.suffix in SOURCES:
        if len(lines) > FILE_LINES_MAX:
            warnings.append(f"{name}: {len(lines)} lines; over {FILE_LINES_MAX} a file asks to be split")
        if path.suffix in CXX:
            for number, length in long_functions(lines):
                warnings.append(f"{name}:{number}: a function of {length} lines; over {FUNCTION_LINES_MAX} it asks to be split")


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    errors: list[str] = []
    warnings: list[str] = []
    files = tracked_files(root)
    known = endings_of([path.relative_to(root).as_posix() for path in files])
    for path in files:
        if path.suffix in TEXTS or path.suffix in COMMENTS:
            check_file(path.relative_to(root).as_posix(), path, known, errors, warnings)
    for line in warnings:
        print(f"warning: {line}")
    for line in errors:
        print(f"error: {line}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
