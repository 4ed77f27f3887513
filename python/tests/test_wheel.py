"""The wheel (pytest --wheel FILE): what is in it, and an environment made from nothing that has it and numpy, and no
build tree."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

TAG = "py3-none-manylinux_2_31_x86_64"
PROGRAM = """
import sys
import numpy as np, spillway
assert spillway.is_preloaded() and not any("build" in path for path in sys.path), sys.path
array = np.arange(24 << 20)  # 192 MiB
array += 1
assert array.sum() == array.size * (array.size + 1) // 2
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libspillway" in line}
assert len(mapped) == 2 and all(path.startswith(sys.prefix) for path in mapped), mapped
status = open("/proc/self/status")
print(sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon", "RssShmem"))) // 1024,
spillway.statistics())
"""
UNPRELOADED = """
import numpy as np, spillway
spillway.configure(memory="64M")
with spillway.numpy_allocator(): array = np.ones(24 << 20)
print(array.sum(), spillway.statistics().evictions > 0)
"""


@pytest.fixture(scope="module")
def wheel(request):
    given = request.config.getoption("--wheel")
    if not given:
        pytest.skip("no --wheel FILE is named; python/check.py builds one")
    return Path(given).resolve()


def test_its_tag_and_files(wheel):
    assert wheel.name.endswith(TAG + ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    notices = [name for name in names if "/_installed/licenses/" in name]
    native = sorted(name for name in names if "/_installed/" in name and name not in notices)
    assert native == [
        "spillway/_installed/bin/spillway",
        "spillway/_installed/lib/libspillway.so",
        "spillway/_installed/lib/libspillway_first.so.0",
        "spillway/_installed/lib/libspillway_numpy.so",
    ]
    assert "spillway/py.typed" in names
    # Of what is linked in: these at least.
    for package in ("liburing", "libfmt", "libcli11", "nlohmann-json3", "libdw", "libelf"):
        assert f"spillway/_installed/licenses/{package}-dev.txt" in notices
    others = [
        name for name in names if name not in native + notices and not re.search(r"\.py$|py\.typed$|\.dist-info/", name)
    ]
    assert others == []


def test_auditwheel_confirms_the_tag(wheel):
    pytest.importorskip("auditwheel", reason="needs auditwheel")
    said = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=True
    )
    assert f'"{TAG.split("-")[-1]}"' in " ".join(said.stdout.split())


def test_its_libraries_are_stripped_and_name_no_machine(wheel, tmp_path):
    elffile = pytest.importorskip("elftools.elf.elffile", reason="needs pyelftools, which comes with auditwheel")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    files = [file for file in (tmp_path / "spillway" / "_installed").glob("[bl]i[nb]/*") if file.is_file()]
    assert len(files) == 4
    for file in files:
        with open(file, "rb") as opened:
            sections = {section.name for section in elffile.ELFFile(opened).iter_sections()}
        assert ".dynsym" in sections and not {".symtab", ".debug_info"} & sections, file.name
        assert str(Path(__file__).parents[2]).encode() not in file.read_bytes(), file.name


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("from-nothing")
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel, "numpy"], check=True, cwd=folder)

    def call(*words):
        env = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(folder)}
        return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=200)

    return call


def test_a_capped_numpy_program(environment):
    done = environment("python", "-m", "spillway", "run", "--memory", "64M", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) <= 64 + 32 and "misses" in done.stdout


def test_managed_arrays_without_a_run(environment):
    done = environment("python", "-c", UNPRELOADED)
    assert (done.returncode, done.stdout) == (0, "25165824.0 True\n"), done.stderr


def test_the_console_script(environment):
    assert environment("spillway", "--version").stdout.startswith("spillway ")
    assert "Spillway can run here" in environment("spillway", "doctor").stdout
    done = environment("spillway", "run", "--memory", "64M", "-c", "import spillway; print(spillway.is_preloaded())")
    assert done.stdout == "True\n", done.stderr
    assert environment("spillway", "run", "--memory", "64M", "--", "echo", "hello").stdout == "hello\n"
    assert environment("spillway", "rnu").returncode == 2
