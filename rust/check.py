#!/usr/bin/env python3
"""Builds and tests what is in Rust: check.py [--prefix DIR] [--target-dir DIR] [CASE...]

DIR of --prefix holds bin/ and lib/ of Spillway, installed or just built (default: build/release); what cargo builds
goes to the target folder (default: build/rust). Each case prints a line: passed, failed, or skipped with the reason.
The exit code is 0, 1 when a case failed, 2 for wrong arguments, and 77 when everything was skipped. cargo, rustc and
rustdoc are those in PATH; PATH=/usr/bin:$PATH takes the system's, whose LLVM is old enough for recompiling.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE / "example"
CAP = ["--memory", "16M", "--threshold", "1", "--quota", "0"]
BOOKINGS = "150000"
SECONDS_MAX = 900

PROGRAM = """
fn main() {
    let numbers: spillway::SpillVec<u64> = (0..1 << 20).collect();
    println!("{} {}", numbers.iter().sum::<u64>(), spillway::is_managed(numbers.as_ptr()));
}
"""


class Skipped(Exception):
    """Why a case cannot run here."""


class Failed(Exception):
    """What was not as it should be."""


class Kit:
    """How cases call cargo: with Spillway's folder, and a target folder of their own."""

    def __init__(self, prefix: pathlib.Path, target: pathlib.Path) -> None:
        self.prefix, self.target = prefix, target
        self.cargo = shutil.which("cargo")
        self.rustc = shutil.which("rustc")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        self.env = clean | {"SPILLWAY_DIR": str(prefix), "CARGO_TARGET_DIR": str(target), "RUST_BACKTRACE": "0",
                            "PATH": f"{target}/debug:{os.environ['PATH']}"}

    def run(self, command: list, folder: pathlib.Path = HERE, env: dict | None = None,
            code: int = 0) -> subprocess.CompletedProcess:
        """Runs a command that is to end with `code`."""
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=folder, env=self.env | (env or {}), capture_output=True, text=True,
                              timeout=SECONDS_MAX)
        if done.returncode != code:
            said = done.stdout[-2000:] + done.stderr[-4000:]
            raise Failed(f"{' '.join(words)}\nends with {done.returncode}, not {code}\n{said}")
        return done

    def needs_subcommand(self) -> None:
        """Builds cargo-spillway, which the cases call as cargo does."""
        self.run([self.cargo, "build", "--locked", "-p", "cargo-spillway"])

    def needs_compiler(self) -> None:
        """Skips where spillway-clang is not there, or cannot read what rustc writes."""
        self.needs_subcommand()
        clang = self.prefix / "bin" / "spillway-clang"
        if not clang.exists():
            raise Skipped(f"there is no {clang}")
        theirs = number_in(self.run([self.rustc, "-vV"]).stdout, r"LLVM version: (\d+)")
        ours = number_in(self.run([clang, "--version"]).stdout, r"clang version (\d+)")
        if theirs > ours:
            raise Skipped(f"rustc's bitcode is LLVM {theirs}'s, which spillway-clang of LLVM {ours} cannot read")


def number_in(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    if not found:
        raise Failed(f"{pattern} is not in {text!r}")
    return int(found.group(1))


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Failed(what)


def the_crates_pass_their_tests(kit: Kit) -> str:
    # Documentation tests are started without cargo's search path for libraries.
    done = kit.run([kit.cargo, "test", "--locked", "--workspace"], env={"LD_LIBRARY_PATH": str(kit.prefix / "lib")})
    counts = [int(count) for count in re.findall(r"test result: ok\. (\d+) passed", done.stdout)]
    expect(sum(counts) >= 50, f"only {sum(counts)} tests were run:\n{done.stdout[-2000:]}")
    return f"{sum(counts)} tests"


def the_source_is_clean(kit: Kit) -> str:
    for tool in ("clippy", "fmt"):
        if subprocess.run([kit.cargo, tool, "--version"], capture_output=True).returncode != 0:
            raise Skipped(f"cargo {tool} is not installed")
    kit.run([kit.cargo, "fmt", "--all", "--check"])
    kit.run([kit.cargo, "fmt", "--all", "--check"], folder=EXAMPLE)
    kit.run([kit.cargo, "clippy", "--locked", "--all-targets", "--", "-D", "warnings"])
    kit.run([kit.cargo, "doc", "--locked", "--no-deps"], env={"RUSTDOCFLAGS": "-D warnings"})
    return "clippy, rustfmt, rustdoc"


def a_recompiled_program_is_that_of_a_native_run(kit: Kit) -> str:
    kit.needs_compiler()
    kit.run([kit.cargo, "build", "--locked", "--release"], folder=EXAMPLE)
    native = kit.run([kit.target / "release/ledger", BOOKINGS]).stdout
    expect(native.count("journal") == 3, native)
    run = [kit.cargo, "spillway", "run", "--locked", "--release", *CAP, "--stats", "text", "--", BOOKINGS]
    done = kit.run(run, folder=EXAMPLE)
    expect(done.stdout == native, f"{done.stdout}\nand natively\n{native}")
    evicted = number_in(done.stderr, r"(\d+) evicted")
    expect(evicted > 1000, f"it did not have to spill:\n{done.stderr}")
    table = kit.run(["nm", kit.target / "spillway/release/ledger"]).stdout
    expect("__spw_hints_v" in table, "it is not recompiled")
    expect("__spw_" not in kit.run(["nm", kit.target / "release/ledger"]).stdout, "the native one is recompiled")
    return f"{evicted} blocks evicted"


def tests_of_a_project_run_recompiled(kit: Kit) -> str:
    kit.needs_compiler()
    options = ["--memory", "16M", "--engine", "translated"]
    done = kit.run([kit.cargo, "spillway", "test", "--locked", "--release", *options], folder=EXAMPLE)
    expect("test result: ok. 1 passed" in done.stdout, done.stdout)
    return "with the translated engine"


def what_is_built_is_built_again_when_the_engine_changes(kit: Kit) -> str:
    kit.needs_compiler()
    build = [kit.cargo, "spillway", "build", "--locked", "--release"]
    for engine, compiles in (("translated", None), ("translated", False), ("mapped", True), ("mapped", False)):
        said = kit.run([*build, "--engine", engine], folder=EXAMPLE).stderr
        expect(compiles is None or ("Compiling ledger" in said) == compiles, f"--engine {engine}:\n{said}")
        table = kit.run(["nm", kit.target / "spillway/release/ledger"]).stdout
        expect(("__spw_load_v1" in table) == (engine == "translated"), f"--engine {engine}: code of another engine")
    return "and only then"


def a_program_finds_the_library_by_itself(kit: Kit) -> str:
    readme = (HERE / "README.md").read_text()
    build_script = re.search(r"```rust\n(fn main\(\) \{\n    let folder.*?)```", readme, re.S)[1]
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        (project / "src").mkdir()
        (project / "src/main.rs").write_text(PROGRAM)
        (project / "build.rs").write_text(build_script)
        (project / "Cargo.toml").write_text(
            '[package]\nname = "own"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n'
            f'[dependencies]\nspillway-memory = {{ path = "{HERE}/spillway" }}\n')
        kit.run([kit.cargo, "build"], folder=project)
        plain = {"LD_LIBRARY_PATH": "", "SPILLWAY_MEMORY": "32M"}
        said = kit.run([kit.target / "debug/own"], env=plain).stdout
        expect(said == f"{sum(range(1 << 20))} true\n", said)
    return "with the build script of the README"


def mistakes_are_told_in_one_line(kit: Kit) -> str:
    kit.needs_subcommand()
    for words, env, says in (
            (["sell"], {}, "sell is not one of build, run and test"),
            (["run", "--memory"], {}, "--memory wants a value"),
            (["build", "--memory", "1G"], {}, "--memory is for run and test"),
            (["build", "--engine", "steam"], {}, "--engine=steam is unknown"),
            (["build"], {"SPILLWAY_DIR": "/nowhere"}, "SPILLWAY_DIR is /nowhere, and there is no bin/spillway-clang"),
            (["build"], {"SPILLWAY_DIR": "", "PATH": "/nowhere"}, "spillway-clang is not in PATH"),
            (["run"], {"SPILLWAY_DIR": "", "PATH": "/nowhere"}, "spillway is not in PATH"),
            (["build", "--target", "aarch64-unknown-linux-gnu"], {}, "--target=aarch64-unknown-linux-gnu: only"),
            (["build"], {"RUSTC_WORKSPACE_WRAPPER": "other"}, "RUSTC_WORKSPACE_WRAPPER is set")):
        if not (kit.prefix / "bin/spillway-clang").exists() and not env:
            continue
        done = kit.run([kit.target / "debug/cargo-spillway", "spillway", *words], env=env, code=2)
        line = done.stderr.strip()
        expect(says in line and "\n" not in line, f"{words}: {line}")
    broken = kit.run([kit.cargo, "build", "--locked", "-p", "spillway-memory"],
                     env={"SPILLWAY_DIR": "/nowhere", "CARGO_TARGET_DIR": str(kit.target / "broken")}, code=101)
    expect("SPILLWAY_DIR is /nowhere, and there is no lib/libspillway.so in it" in broken.stderr, broken.stderr)
    return "of cargo spillway and of the build script"


CASES = (the_crates_pass_their_tests, the_source_is_clean, a_program_finds_the_library_by_itself,
         mistakes_are_told_in_one_line, a_recompiled_program_is_that_of_a_native_run, tests_of_a_project_run_recompiled,
         what_is_built_is_built_again_when_the_engine_changes)


def outcome_of(case, kit: Kit) -> tuple[str, str]:
    try:
        if not kit.cargo or not kit.rustc:
            raise Skipped("cargo and rustc are not installed (./dev setup)")
        if not (kit.prefix / "lib/libspillway.so").exists():
            raise Skipped(f"there is no lib/libspillway.so in {kit.prefix} (./dev build)")
        return "passed", case(kit)
    except Skipped as why:
        return "skipped", str(why)
    except Failed as what:
        return "FAILED", str(what)
    except subprocess.TimeoutExpired as what:
        return "FAILED", f"not done after {SECONDS_MAX} seconds: {what.cmd}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds and tests what is in Rust.")
    built = HERE.parent / "build"
    names = ", ".join(case.__name__ for case in CASES)
    parser.add_argument("--prefix", type=pathlib.Path, default=built / "release", help="where bin/ and lib/ are")
    parser.add_argument("--target-dir", type=pathlib.Path, default=built / "rust", help="where cargo builds")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="one of " + names)
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - {case.__name__ for case in CASES}
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}")
    kit = Kit(arguments.prefix.resolve(), arguments.target_dir.resolve())
    outcomes = []
    for case in CASES:
        if arguments.cases and case.__name__ not in arguments.cases:
            continue
        begun = time.monotonic()
        if sys.stdout.isatty():
            print(f"running {case.__name__} ...", end="\r", flush=True)
        outcome, said = outcome_of(case, kit)
        outcomes.append(outcome)
        print(f"{outcome:8}{case.__name__} ({time.monotonic() - begun:.0f} s): {said}", flush=True)
    counts = {word: outcomes.count(word) for word in ("passed", "FAILED", "skipped")}
    print("rust: " + ", ".join(f"{count} {word.lower()}" for word, count in counts.items()))
    if counts["FAILED"]:
        return 1
    return 0 if counts["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
