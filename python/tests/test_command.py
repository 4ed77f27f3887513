"""`python -m spillway`, and the console script."""

import re
import shutil
import subprocess
import sys

import pytest
from spillway import _command
from spillway._command import tool_words
from spillway._installation import find_tool

PYTHON = sys.executable


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["run", "s.py", "--memory", "1G"], ["run", "--", PYTHON, "s.py", "--memory", "1G"]),
        (["run", "--memory", "4G", "s.py", "x"], ["run", "--memory", "4G", "--", PYTHON, "s.py", "x"]),
        (["run", "--memory=4G", "--no-check", "s.py"], ["run", "--memory=4G", "--no-check", "--", PYTHON, "s.py"]),
        (["run", "--memory", "4G", "-m", "json.tool"], ["run", "--memory", "4G", "--", PYTHON, "-m", "json.tool"]),
        (["run", "-c", "1", "--", "2"], ["run", "--", PYTHON, "-c", "1", "--", "2"]),
        (["run", "--memory", "4G", "-"], ["run", "--memory", "4G", "--", PYTHON, "-"]),
        (["run", "-u", "s.py"], ["run", "--", PYTHON, "-u", "s.py"]),
        (["run", "--memory", "4G"], ["run", "--memory", "4G", "--", PYTHON]),
        (["run"], ["run", "--", PYTHON]),
        (["run", "--memory"], ["run", "--memory", "--", PYTHON]),
        (["run", "--memory", "4G", "--", "ls", "-l"], ["run", "--memory", "4G", "--", "ls", "-l"]),
        (["run", "--memory", "4G", "sort", "x"], ["run", "--memory", "4G", "--", "sort", "x"]),
        (["run", "--memory", "4G", "/bin/ls"], ["run", "--memory", "4G", "--", "/bin/ls"]),
        (["run", "--help"], ["run", "--help"]),
        (["advise", "--json", "f", "s.py"], ["advise", "--json", "f", "--", PYTHON, "s.py"]),
        (["doctor", "--store", "x"], ["doctor", "--store", "x"]),
        (["--version"], ["--version"]),
        ([], []),
    ],
)
def test_what_the_tool_is_given(given, wanted):
    assert tool_words(given) == wanted


def test_all_options_of_run_that_take_no_value_are_known():
    """Of any other one the word behind it would be taken for its value."""
    said = subprocess.run([find_tool(), "run", "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^ +(?:-\w,)?(--[\w-]+)(.*)$", said, re.MULTILINE)
    assert ("--memory" in dict(options)) and len(options) > 5
    without_value = {name for name, rest in options if not re.match(r" [A-Za-z|]*[A-Z]{2,}", rest)}
    assert without_value and without_value <= _command._FLAGS, without_value - _command._FLAGS


def call(*words, **how):
    return subprocess.run([PYTHON, "-m", "spillway", *words], capture_output=True, text=True, timeout=60, **how)


def test_scripts_modules_and_programs_run(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, spillway\nprint(sys.argv[1:], spillway.is_preloaded())\nsys.exit(7)\n")
    done = call("run", "--memory", "64M", str(script), "--memory", "x")
    assert (done.returncode, done.stdout) == (7, "['--memory', 'x'] True\n")
    shutil.copy(script, tmp_path / "module.py")
    done = call("run", "--memory", "64M", "-m", "module", "y", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "['y'] True\n")
    done = call("run", "--memory", "64M", "--", "sh", "-c", "echo $LD_PRELOAD")
    assert done.returncode == 0 and "libspillway.so" in done.stdout
    done = call("run", "--memory", "64M", input="print(40 + 2)")
    assert done.stdout == "42\n"


def test_other_commands_and_mistakes_are_the_tools():
    assert call("--version").stdout.startswith("spillway ")
    assert "kernel" in call("doctor").stdout
    done = call("run", "--memory", "4GG", "-c", "1")
    assert done.returncode == 2 and "4GG" in done.stderr and done.stderr.count("\n") == 1
    done = call("run", "--memory", "64M", "--store", "/not/there", "-c", "1")
    assert done.returncode == 2 and "it does not exist" in done.stderr
    done = call("rnu")
    assert done.returncode == 2 and "no such command" in done.stderr


def test_help_says_what_is_different_here():
    for words in (["--help"], ["run", "--help"], ["advise", "-h"]):
        done = call(*words)
        assert done.returncode == 0 and "In Python:" in done.stdout


def test_without_the_tool_one_line_says_how_to_get_it(tmp_path):
    import spillway

    package = shutil.copytree(
        spillway.__path__[0], tmp_path / "spillway", ignore=shutil.ignore_patterns("_installed", "__pycache__")
    )
    env = {"PYTHONPATH": str(tmp_path), "PATH": "/nowhere"}
    done = call("doctor", env=env)
    assert done.returncode == 2 and "pip install spillway-memory" in done.stderr and done.stderr.count("\n") == 1
    # A system's installation, by PATH, and beside it its library.
    prefix = tmp_path / "prefix"
    shutil.copytree(find_tool().parent.parent, prefix)
    env["PATH"] = str(prefix / "bin")
    assert call("--version", env=env).stdout.startswith("spillway ")
    code = "import spillway; print(spillway.version(), spillway.empty(3).shape)"
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.endswith(" (3,)\n"), done.stderr
    code = "import spillway, sys\nwith spillway.numpy_allocator(): pass"
    done = subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True)
    assert "libspillway_numpy.so is missing" in done.stderr
    assert package
