#!/usr/bin/env python3
"""The packages of `./dev package`, installed and used in a fresh Debian 12: packages_test.py --packages build/packages.

What comes from the archive is installed with the network there; programs run without one. Prints how long it takes from
nothing to a program with numpy under a cap, and to a recompiled program in C++. Skipped, with the reason, where there are no
root's rights, no network or no package of a kind.
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

import fresh_root

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(SOURCE / "tests/tools"), str(SOURCE / "tests/api"), str(SOURCE / "packaging/container")]
import install_test  # noqa: E402  the programs
import loads_anywhere_test  # noqa: E402
import make_seccomp  # noqa: E402

RUN = ("spillway", "run", "--memory", "16M", "--quota", "1M", "--store", "/var/tmp", "--stats", "/tmp/report.json", "--")
# 64 MiB of numbers, beside a cap of 16.
NUMPY = """
import numpy
numbers = numpy.arange(8 << 20, dtype=numpy.int64)
numbers[::3] += 1
print(int(numbers.sum()), int(numbers[-1]))
"""
COUNT = 8 << 20
NUMPY_PRINTS = f"{COUNT * (COUNT - 1) // 2 + (COUNT + 2) // 3} {COUNT - 1}\n"
# A program that knows the API, in C and in C++.
CLIENT_C = """
#include <spillway/spillway.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  char* data = malloc(64 << 20);
  if (data == 0) return 1;
  for (long i = 0; i < 64 << 20; i += 4096) data[i] = (char)i;
  printf("%s %d\\n", spw_version(), spw_is_managed(data));
  free(data);
  return 0;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(client LANGUAGES C CXX)
find_package(Spillway 0.2 REQUIRED COMPONENTS compiler)
add_executable(client client.c)
target_link_libraries(client PRIVATE Spillway::spillway)
add_executable(sums sums.cc)
target_link_libraries(sums PRIVATE Spillway::cxx Spillway::spillway)
file(WRITE ${CMAKE_BINARY_DIR}/compiler ${Spillway_CXX_COMPILER})
"""
PACKAGES = ("spillway", "libspillway0", "libspillway-dev", "spillway-clang")
# What dpkg and apt write down of what they did stays, and is theirs.
KEPT_BY_APT = re.compile(r"^/(var/(log|cache|lib/(dpkg|apt))/|packages/|tmp/|root/)")

_folder = pathlib.Path()
_times = {}


def say(line):
    print(line, flush=True)


def version():
    header = (SOURCE / "include/spillway/spillway.h").read_text()
    return ".".join(re.findall(r"^#define SPW_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.MULTILINE))


def debs(*names):
    return [f"/packages/{name}_{version()}_amd64.deb" for name in names]


class Lintian(unittest.TestCase):
    def test_it_has_nothing_to_say(self):
        changes = list((_folder / "deb").glob("*.changes"))
        if not changes:
            self.skipTest("no .debs were built: ./dev package deb")
        if shutil.which("lintian") is None:
            self.skipTest("there is no lintian; apt-get install lintian")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", *changes], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class InFreshDebian(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = fresh_root.why_not()
        if reason:
            raise unittest.SkipTest(reason)
        if not all((_folder / pathlib.Path(deb).name).exists() for deb in debs(*PACKAGES)):
            raise unittest.SkipTest("no .debs were built: ./dev package deb")
        base = _folder / "base" / "bookworm.tar"
        try:
            say("packages: a fresh Debian 12, kept for a week (mmdebstrap) ...")
            took = fresh_root.make_base(base)
            say(f"packages: {took:.0f} s" if took else "packages: one is there")
        except OSError as error:
            raise unittest.SkipTest(str(error)) from None
        cls.root = fresh_root.Root(base, _folder / "test" / "root")
        cls.addClassCleanup(cls.root.remove)
        (cls.root.folder / "packages").mkdir()
        for name in debs(*PACKAGES):
            shutil.copy(_folder / pathlib.Path(name).name, cls.root.folder / "packages")
        cls.before = cls.files()
        cls.install()

    @classmethod
    def files(cls):
        listed = cls.root.do("find", "/", "-xdev", "!", "-type", "d").splitlines()
        return {name for name in listed if not KEPT_BY_APT.match(name)}

    @classmethod
    def apt(cls, what, *packages):
        began = time.monotonic()
        say(f"packages: installing {what} ...")
        cls.root.do("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages, network=True)
        say(f"packages: {time.monotonic() - began:.0f} s")

    @classmethod
    def install(cls):
        """From nothing to a program with numpy, and to a recompiled one, with the clock running."""
        began = time.monotonic()
        cls.apt("the command and the runtime, without a list of packages", *debs("spillway", "libspillway0"))
        cls.root.do("apt-get", "update", "-qq", network=True)
        cls.listed_s = time.monotonic() - began
        cls.apt("numpy", "python3-numpy")
        cls.root.write("/tmp/sum_numbers.py", NUMPY)
        cls.numpy_output = cls.root.do(*RUN, "python3", "/tmp/sum_numbers.py")
        cls.numpy_report = json.loads((cls.root.folder / "tmp/report.json").read_text())
        _times["a program with numpy under a cap"] = time.monotonic() - began, 60
        began = time.monotonic()
        cls.apt("the compiler", *debs("libspillway-dev", "spillway-clang"))
        cls.root.write("/tmp/sums.cc", install_test.RECOMPILED)
        cls.root.do("spillway-clang++", "-O2", "/tmp/sums.cc", "-o", "/tmp/sums")
        cls.sums_output = cls.root.do(*RUN, "/tmp/sums")
        cls.sums_report = json.loads((cls.root.folder / "tmp/report.json").read_text())
        _times["a recompiled program in C++"] = cls.listed_s + time.monotonic() - began, 180
        cls.apt("CMake, make, pkg-config and completion, for the tests", "cmake", "make", "pkg-config", "bash-completion")

    def test_there_is_no_network_where_programs_run(self):
        done = self.root.call("python3", "-c", "import socket; socket.create_connection(('192.0.2.1', 80), 1)")
        self.assertIn("unreachable", done.stderr)

    def expect_spilled(self, report, engine="mapped"):
        self.assertEqual(report["facts"]["engine"], engine)
        self.assertGreater(report["counters"]["evictions"], 0, "all of it fitted")

    def test_a_numpy_program_runs_as_it_is(self):
        self.assertEqual(self.numpy_output, NUMPY_PRINTS)
        self.expect_spilled(self.numpy_report)

    def test_a_recompiled_program_runs(self):
        self.assertEqual(self.sums_output, install_test.RECOMPILED_PRINTS)
        self.expect_spilled(self.sums_report)
        needed = subprocess.run(["readelf", "-d", self.root.folder / "tmp/sums"], capture_output=True, text=True, check=True).stdout
        self.assertIn("libspillway.so.0", needed)
        self.assertNotIn("RUNPATH", needed, "of a directory where the dynamic linker looks by itself")

    def test_programs_are_instrumented_by_the_linker_and_for_the_other_engine(self):
        for flags, engine in ((["-flto"], "mapped"), (["-fspillway-engine=translated"], "translated")):
            self.root.do("spillway-clang++", "-O2", *flags, "/tmp/sums.cc", "-o", "/tmp/other")
            self.assertEqual(self.root.do(*RUN, "/tmp/other"), install_test.RECOMPILED_PRINTS)
            self.expect_spilled(json.loads((self.root.folder / "tmp/report.json").read_text()), engine)

    def test_a_project_finds_it_by_cmake(self):
        for name, text in (("CMakeLists.txt", PROJECT), ("client.c", CLIENT_C), ("sums.cc", install_test.RECOMPILED)):
            self.root.write(f"/tmp/project/{name}", text)
        self.root.do("cmake", "-S", "/tmp/project", "-B", "/tmp/project/build", "-DCMAKE_C_COMPILER=clang-19",
                     "-DCMAKE_CXX_COMPILER=clang++-19")
        self.root.do("cmake", "--build", "/tmp/project/build")
        self.assertEqual(self.root.do("/tmp/project/build/client"), f"{version()} 1\n")
        self.assertEqual(self.root.do("/tmp/project/build/sums"), install_test.RECOMPILED_PRINTS)
        driver = (self.root.folder / "tmp/project/build/compiler").read_text()
        self.assertIn(version(), self.root.do(driver, "--spillway-version"))
        text = PROJECT.replace("Spillway 0.2", "Spillway 0.1")
        self.root.write("/tmp/project/CMakeLists.txt", text)
        self.assertNotEqual(self.root.call("cmake", "-S", "/tmp/project", "-B", "/tmp/project/older").returncode, 0)

    def test_a_project_finds_it_by_pkg_config(self):
        self.root.write("/tmp/client.c", CLIENT_C)
        self.root.shell("clang-19 /tmp/client.c -o /tmp/client $(pkg-config --cflags --libs spillway)")
        self.assertEqual(self.root.do("/tmp/client"), f"{version()} 1\n")
        self.root.shell("clang++-19 /tmp/sums.cc -o /tmp/plain $(pkg-config --cflags --libs spillway-cxx)")
        self.assertEqual(self.root.do("/tmp/plain"), install_test.RECOMPILED_PRINTS)
        for module in ("spillway", "spillway-cxx", "spillway-umap"):
            self.assertEqual(self.root.do("pkg-config", "--modversion", module), f"{version()}\n")

    def test_every_program_and_function_has_a_manual_page(self):
        listed = self.root.do("dpkg", "-L", *PACKAGES).split()
        pages = {pathlib.Path(name).name for name in listed if "/share/man/" in name}
        programs = [pathlib.Path(name).name for name in listed if name.startswith("/usr/bin/")]
        self.assertEqual(sorted(programs), ["spillway", "spillway-clang", "spillway-clang++"])
        for name in (*(f"{program}.1" for program in programs), "spw_map.3", "spillway-regions.7"):
            self.assertIn(f"{name}.gz", pages)
        for name in listed:
            if name.endswith(".gz") and "/share/man/" in name:
                file = self.root.folder / name.lstrip("/")
                self.assertTrue(not file.is_symlink() or "/" not in os.readlink(file), f"{name} leads out of its folder")
                self.assertIn(b".TH", gzip.decompress(file.read_bytes()), name)

    def test_bash_completes(self):
        complete = ("source /usr/share/bash-completion/bash_completion; _completion_loader {0}; COMP_LINE='{1}'; "
                    "COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({1}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
                    "$(complete -p {0} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo ${{COMPREPLY[*]}}")
        for program, line, offered in (("spillway", "spillway run --engine m", "mapped"),
                                       ("spillway-clang", "spillway-clang -fspillway-du", "-fspillway-durable")):
            self.assertEqual(self.root.do("bash", "-c", complete.format(program, line)), f"{offered}\n")
        for file in ("zsh/vendor-completions/_spillway", "fish/vendor_completions.d/spillway.fish"):
            self.assertTrue((self.root.folder / "usr/share" / file).exists(), file)

    def test_the_libraries_need_libc_and_nothing_else(self):
        library = self.root.folder / "usr/lib/x86_64-linux-gnu"
        files = [*library.glob("libspillway*.so.*.*"), self.root.folder / "usr/bin/spillway"]
        self.assertEqual(len(files), 4, files)
        for file in files:
            self.assertEqual(loads_anywhere_test.wrong_in(file), [], file.name)

    def test_the_tarball_works_from_where_it_is(self):
        name = f"spillway-{version()}-linux-x86_64"
        if not (_folder / f"{name}.tar.xz").exists():
            self.skipTest("no tarball was built: ./dev package tarball")
        (self.root.folder / "opt/moved").mkdir()
        subprocess.run(["tar", "-C", self.root.folder / "opt/moved", "-xf", _folder / f"{name}.tar.xz"], check=True)
        binaries = f"/opt/moved/{name}/bin"
        self.assertEqual(self.root.do(f"{binaries}/{RUN[0]}", *RUN[1:], "python3", "/tmp/sum_numbers.py"), NUMPY_PRINTS)
        self.assertIn(f"/opt/moved/{name}/lib/spillway/", self.root.do(f"{binaries}/spillway-clang", "--spillway-version"))
        self.root.do(f"{binaries}/spillway-clang++", "-O2", f"-I/opt/moved/{name}/include", "/tmp/sums.cc", "-o", "/tmp/moved")
        self.assertEqual(self.root.do(f"{binaries}/{RUN[0]}", *RUN[1:], "/tmp/moved"), install_test.RECOMPILED_PRINTS)
        loaded = self.root.do("ldd", "/tmp/moved")
        self.assertIn(f"/opt/moved/{name}/lib/libspillway.so.0", loaded)
        self.root.shell("rm -r /opt/moved")

    def test_the_wheel_works_in_an_environment_of_its_own(self):
        wheels = list(_folder.glob("*.whl"))
        if not wheels:
            self.skipTest("no wheel was built: ./dev package wheel")
        shutil.copy(wheels[0], self.root.folder / "packages")
        began = time.monotonic()
        self.root.do("python3", "-m", "venv", "/opt/environment")
        self.root.do("/opt/environment/bin/pip", "install", "-q", "numpy", f"/packages/{wheels[0].name}", network=True)
        python = "/opt/environment/bin/python"
        out = self.root.do(python, "-m", "spillway", *RUN[1:-1], "/tmp/sum_numbers.py")
        self.assertEqual(out, NUMPY_PRINTS)
        _times["a program with numpy under a cap, by pip"] = time.monotonic() - began, 60
        self.root.shell("rm -r /opt/environment")

    def test_z_nothing_is_left_when_they_are_purged(self):
        self.root.do("apt-get", "purge", "-y", "-qq", *PACKAGES)
        left = {name for name in self.files() - self.before if "spillway" in name or "umap" in name}
        self.assertEqual(left, set())
        self.assertNotRegex(self.root.do("dpkg", "-l"), r"(?m)^[a-z]+ +(lib)?spillway")


class Seccomp(unittest.TestCase):
    def test_the_profile_adds_what_is_needed_and_nothing_else(self):
        default = {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "syscalls": [
            {"names": ["read", "io_setup"], "action": "SCMP_ACT_ALLOW", "args": [], "includes": {}, "excludes": {}},
            {"names": ["userfaultfd", "kexec_load"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
            {"names": ["userfaultfd"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
            {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
            {"names": ["mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
            {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"]}},
            {"names": ["arch_prctl"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64", "x32"]}},
            {"names": ["arm_sync_file_range"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["arm", "arm64"]}},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]}]}
        made = make_seccomp.profile_from(default)
        self.assertEqual((made["defaultAction"], made["defaultErrnoRet"]), ("SCMP_ACT_ERRNO", 38))
        rules = [(rule["names"], rule["action"].removeprefix("SCMP_ACT_")) for rule in made["syscalls"]]
        self.assertEqual(rules, [(["read", "io_setup"], "ALLOW"), (["kexec_load"], "ERRNO"), (["mount"], "ERRNO"),
                                 (["chroot"], "ALLOW"), (["arch_prctl"], "ALLOW"), (["personality"], "ALLOW"),
                                 (list(make_seccomp.ADDED), "ALLOW")])
        self.assertEqual(made["syscalls"][5]["args"], default["syscalls"][8]["args"])
        self.assertFalse(any(key in rule for rule in made["syscalls"] for key in ("includes", "excludes")))


class Image(unittest.TestCase):
    """The recipe, over the fresh Debian 12 in place of debian:12-slim, which would be fetched."""

    def buildah(self, *words):
        places = ["--root", self.storage / "root", "--runroot", self.storage / "run", "--storage-driver", "vfs"]
        done = subprocess.run(list(map(str, ["buildah", *places, *words])), capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, env={**os.environ, "BUILDAH_ISOLATION": "chroot"})
        self.assertEqual(done.returncode, 0, f"buildah {' '.join(map(str, words))}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        return done.stdout.strip()

    def test_programs_run_in_it_by_userfaultfd_and_io_uring(self):
        reason = fresh_root.why_not() or ("" if shutil.which("buildah") else "there is no buildah; apt-get install buildah")
        recipe = _folder / "image"
        if not reason and not (recipe / "spillway-seccomp.json").exists():
            reason = "no recipe was made: ./dev package image"
        if reason:
            self.skipTest(reason)
        base = _folder / "base" / "bookworm.tar"
        try:
            fresh_root.make_base(base)
        except OSError as error:
            self.skipTest(str(error))
        self.storage = _folder / "test" / "images"
        self.addCleanup(shutil.rmtree, self.storage, True)
        scratch = self.buildah("from", "scratch")
        self.buildah("add", "-q", scratch, base, "/")
        self.buildah("commit", "-q", "--rm", scratch, "localhost/base")
        self.buildah("bud", "-q", "--network", "none", "--build-arg", "BASE=localhost/base", "-t", "localhost/spillway", recipe)
        container = self.buildah("from", "--network", "none", "--security-opt", f"seccomp={recipe / 'spillway-seccomp.json'}",
                                 "localhost/spillway")
        self.addCleanup(self.buildah, "rm", container)
        run = "mkdir -p /spill && spillway run --memory 16M --quota 1M --stats text -- python3 -c"
        said = self.buildah("run", container, "--", "sh", "-c", f'{run} "$0" 2>&1', install_test.UNMODIFIED)
        self.assertIn(install_test.UNMODIFIED_PRINTS, said)
        self.assertIn("mapped engine", said)
        self.assertRegex(said, r"store +spill:/spill")
        facts = json.loads(self.buildah("run", container, "--", "spillway", "doctor", "--json"))
        verdicts = {finding["id"]: finding["verdict"] for finding in facts["findings"]}
        self.assertEqual((verdicts["userfaultfd"], verdicts["io_uring"]), ("ok", "ok"))
        if tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups())) >= (6, 13):  # which has the call
            self.assertEqual(verdicts["vectored_release"], "ok")


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    global _folder
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", type=pathlib.Path, required=True, help="where ./dev package left them")
    arguments, rest = parser.parse_known_args()
    _folder = arguments.packages.resolve()
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    done = unittest.main(module="__main__", argv=[sys.argv[0], *rest], testRunner=runner, exit=False).result
    for what, (seconds, target) in _times.items():
        say(f"packages: from nothing to {what}: {seconds:.0f} s (target: {target} s)")
    wrong = len(done.failures) + len(done.errors)
    say(f"packages: {done.passed} passed, {wrong} failed, {len(done.skipped)} skipped")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
