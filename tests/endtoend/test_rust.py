"""Rust, by way of LLVM bitcode (examples/rust)."""
import re
import shutil
import subprocess

import pytest
from kit import HERE, Kit, expect

pytestmark = pytest.mark.engines("translated", "mapped")
EXAMPLE = HERE.parents[1] / "examples" / "rust"
CAP = {"SPILLWAY_MEMORY": "24M", "SPILLWAY_THRESHOLD": "1", "SPILLWAY_QUOTA": "0"}


def _llvm_of(command: list, pattern: str) -> int:
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.search(pattern, said).group(1))


@pytest.mark.slow
def test_rusts_collections_are_those_of_a_native_run(kit: Kit) -> None:
    if not shutil.which("rustc"):
        pytest.skip("rustc is not installed")
    theirs = _llvm_of(["rustc", "--version", "--verbose"], r"LLVM version: (\d+)")
    clang = kit.build / "bin" / "spillway-clang"
    ours = _llvm_of([clang, "--version"], r"clang version (\d+)")
    if theirs > ours:
        pytest.skip(f"rustc's bitcode is LLVM {theirs}'s, which this build's LLVM {ours} cannot read (./dev test llvm22 --slow)")
    program = kit.place / "words"
    made = subprocess.run([EXAMPLE / "build.sh", clang, EXAMPLE / "words.rs", program, f"-fspillway-engine={kit.engine}"],
                          capture_output=True, text=True)
    expect(made.returncode == 0, made.stderr[-2000:])
    native = kit.run(program.with_suffix(".native"), 400_000)
    expect(native.code == 0, native.last_words())
    managed = kit.run(program, 400_000, env=CAP | kit.wants_report)
    expect((managed.code, managed.output) == (0, native.output), managed.last_words())
    kit.expect_spilled("words")
