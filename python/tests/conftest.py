"""What the tests share.

A process has one configuration of Spillway, so this one has 64 MiB for all tests that run in it, and those of other
configurations, of crashes and of the preload run in processes of their own (`run`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import spillway
from spillway._kernel import serves_system_calls

SECONDS_MAX = 120
MEMORY = "64M"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheel", help="the wheel to install into a new environment and test there")


def pytest_configure(config: pytest.Config) -> None:
    spillway.configure(memory=MEMORY)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """run(code, preloaded=False, memory=..., env=...): the code in a new interpreter, in an empty directory."""

    def call(
        code: str, *words: str, preloaded: bool = False, memory: str = MEMORY, **env: str
    ) -> subprocess.CompletedProcess[str]:
        start = ["-m", "spillway", "run", "--memory", memory] if preloaded else []
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        surroundings.update(env)
        return subprocess.run(
            [sys.executable, *start, "-c", textwrap.dedent(code), *words],
            cwd=tmp_path,
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )

    return call


@pytest.fixture
def good(run: Run) -> Callable[..., str]:
    """As run(), of code that has to succeed: what it prints."""

    def call(code: str, *words: str, **how: object) -> str:
        done = run(code, *words, **how)
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return call


needs_served_system_calls = pytest.mark.skipif(
    not serves_system_calls(), reason="this kernel does not let userfaultfd serve system calls (spillway doctor)"
)
