#!/usr/bin/env python3
"""Builds the wheel and tests the Python package with it: check.py [--no-lint] [PYTEST ARGUMENTS...].

Makes an environment in build/python-venv, with what the tests need from the package index; builds the wheel as
CONTRIBUTING's packages allow (cmake, ninja, a C++20 compiler and the headers of `./dev setup`) into build/wheels;
installs it there; then pytest, ruff and mypy. The exit code is pytest's, or 1 when lint or the build fails.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python"
ENVIRONMENT = ROOT / "build" / "python-venv"
WHEELS = ROOT / "build" / "wheels"
LOG = ROOT / "build" / "wheel.log"
LOG_LINES_SHOWN = 40
TOOLS = ["build", "scikit-build-core>=0.11", "ninja", "auditwheel", "ruff", "mypy"]
TESTS = ["numpy>=1.24", "pandas", "pytest", "nbclient", "ipykernel"]
EXIT_FAILED = 1


def say(line: str) -> None:
    print(f"python: {line}", flush=True)


def call(*words: object, **how: object) -> int:
    return subprocess.run([str(word) for word in words], **how).returncode


def prepare() -> Path:
    """The environment's interpreter. What is there already is left alone."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        say(f"making {ENVIRONMENT.relative_to(ROOT)}")
        try:
            venv.create(ENVIRONMENT, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError:
            shutil.rmtree(ENVIRONMENT)
            sys.exit(f"python: {sys.executable} makes no environments; apt-get install python3-venv")
    wanted = ENVIRONMENT / "wanted"
    text = "\n".join([*TOOLS, *TESTS])
    if not wanted.exists() or wanted.read_text() != text:
        say("installing what the tests need: " + " ".join([*TOOLS, *TESTS]))
        install = ("install", "-q", "--retries", "10", "--disable-pip-version-check")
        if call(python, "-m", "pip", *install, *TOOLS, *TESTS) != 0:
            sys.exit("python: pip failed; is the package index there?")
        wanted.write_text(text)
    return python


def build(python: Path) -> Path:
    say("building the wheel (a first time takes a minute or two)")
    shutil.rmtree(WHEELS, ignore_errors=True)
    with open(LOG, "w") as log:
        words = ("-m", "build", "--wheel", "--no-isolation", "-o", WHEELS, ROOT)
        code = call(python, *words, stdout=log, stderr=subprocess.STDOUT)
    if code != 0:
        print("".join(LOG.read_text().splitlines(True)[-LOG_LINES_SHOWN:]), file=sys.stderr)
        sys.exit(f"python: the wheel was not built; all that was said is in {LOG.relative_to(ROOT)}")
    (wheel,) = WHEELS.glob("*.whl")
    install = ("install", "-q", "--disable-pip-version-check", "--force-reinstall", "--no-deps", wheel)
    if call(python, "-m", "pip", *install) != 0:
        sys.exit("python: the wheel could not be installed")
    say(f"built and installed {wheel.name}")
    return wheel


def lint(python: Path) -> bool:
    say("ruff and mypy")
    return all(
        [
            call(python, "-m", "ruff", "check", "-q", "--config", PACKAGE / "ruff.toml", PACKAGE) == 0,
            call(python, "-m", "ruff", "format", "-q", "--check", "--config", PACKAGE / "ruff.toml", PACKAGE) == 0,
            call(python, "-m", "mypy", "--config-file", PACKAGE / "mypy.ini") == 0,
        ]
    )


def main() -> int:
    arguments = sys.argv[1:]
    is_linted = "--no-lint" not in arguments
    python = prepare()
    wheel = build(python)
    is_clean = not is_linted or lint(python)
    # Not from the root: what is tested is what is installed.
    words = [word for word in arguments if word != "--no-lint"]
    tests = call(python, "-m", "pytest", "-rs", f"--wheel={wheel}", *words, cwd=PACKAGE / "tests")
    return tests or (0 if is_clean else EXIT_FAILED)


if __name__ == "__main__":
    sys.exit(main())
