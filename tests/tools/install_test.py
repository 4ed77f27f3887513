"""`cmake --install`: what it leaves behind works by itself, wherever it is moved, without the tree it was built in."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import tool_case

CAP = ("--memory", "16M", "--quota", "1M")

# 64 MiB in Python: nothing of ours is compiled in.
UNMODIFIED = """
pieces = [bytearray(bytes([i])) * (1 << 20) for i in range(64)]
print(sum(sum(piece[::4096]) for piece in pieces))
"""
UNMODIFIED_PRINTS = f"{sum(range(64)) * 256}\n"

RECOMPILED = """
#include <cstdio>
#include <vector>
#include "spillway/spillway.h"
int main() {
  std::vector<unsigned> words(16 << 20);
  for (unsigned i = 0; i < words.size(); ++i) words[i] = i % 1009;
  unsigned long sum = 0;
  for (unsigned word : words) sum += word;
  std::printf("%lu %d\\n", sum, spw_is_managed(words.data()));
}
"""
RECOMPILED_PRINTS = f"{sum(range(1009)) * ((16 << 20) // 1009) + sum(range((16 << 20) % 1009))} 1\n"

# Tmpfs over the folders named first, in a mount namespace of this command's own.
HIDE = 'while [ "$1" != -- ]; do mount -t tmpfs hidden "$1" || exit 125; shift; done; shift; exec "$@"'


class Install(tool_case.ToolCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # As root, as root of a namespace of users, or not at all.
        ways = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])
        hides = [[*way, "sh", "-c", HIDE, "sh"] for way in ways if shutil.which("unshare")]
        cls.hide = next((hide for hide in hides
                         if subprocess.run([*hide, "/tmp", "--", "true"], capture_output=True).returncode == 0), None)

    def setUp(self):
        super().setUp()
        self.build = pathlib.Path(self.tool).resolve().parents[1]
        first = self.folder / "installed"
        done = subprocess.run(["cmake", "--install", self.build, "--prefix", first], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.prefix = self.folder / "moved" / "elsewhere"
        self.prefix.parent.mkdir()
        first.rename(self.prefix)

    def run_alone(self, *words):
        """Without a library of the build; and where namespaces are to be had, without the trees of build and source."""
        hidden = [*self.hide, self.build, self.source, "--"] if self.hide else []  # the source may hold the build
        log = self.folder / "loaded"
        environment = tool_case.clean_environment(LD_DEBUG="libs,files", LD_DEBUG_OUTPUT=str(log),
                                                  TMPDIR=str(self.folder))
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
            environment.pop(name, None)
        done = subprocess.run(list(map(str, (*hidden, *words))), capture_output=True, text=True, timeout=60,
                              cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")
        logs = list(self.folder.glob("loaded.*"))
        self.assertTrue(logs, "the dynamic linker wrote down nothing")
        for file in logs:
            lines = file.read_text(errors="replace").splitlines()
            self.assertEqual([line for line in lines if f"{self.build}/" in line], [], words)
            file.unlink()
        return done

    def expect_run(self, expected, engine, *program):
        report = self.folder / "report.json"
        done = self.run_alone(self.prefix / "bin" / "spillway", "run", *CAP, "--store", self.folder, "--stats", report,
                              "--", *program)
        self.assertEqual((done.stdout, done.stderr), (expected, ""), program)
        made = json.loads(report.read_text())
        self.assertEqual(made["facts"]["engine"], engine)
        self.assertGreater(made["counters"]["evictions"], 0, "all of it fitted")

    def compiled(self, source, text, *flags):
        (self.folder / source).write_text(text)
        program = self.folder / "program"
        driver = self.prefix / "bin" / ("spillway-clang++" if source.endswith(".cc") else "spillway-clang")
        self.run_alone(driver, "-O2", f"-I{self.prefix / 'include'}", source, "-o", program, *flags)
        return program

    def expect_mapped_engine(self):
        # The programs say so themselves elsewhere; here it would look like an installation that does not work.
        if "userfaultfd is not allowed here" in self.call("run", "--engine", "mapped", "--", "/bin/true").stderr:
            self.skipTest("userfaultfd is not allowed here")

    def test_an_unmodified_program_runs(self):
        self.expect_mapped_engine()
        self.expect_run(UNMODIFIED_PRINTS, "mapped", "/usr/bin/python3", "-c", UNMODIFIED)

    def test_a_recompiled_program_runs(self):
        self.expect_mapped_engine()
        for flags in ((), ("-flto",), ("-fspillway-durable",)):
            self.expect_run(RECOMPILED_PRINTS, "mapped", self.compiled("sums.cc", RECOMPILED, *flags))

    def test_a_program_recompiled_for_the_translated_engine_runs(self):
        program = self.compiled("sums.cc", RECOMPILED, "-fspillway-engine=translated")
        self.expect_run(RECOMPILED_PRINTS, "translated", program)

    def test_umap_is_there_to_link_with(self):
        self.expect_mapped_engine()
        text = (self.source / "tests" / "compat" / "c_program.c").read_text()
        library = self.prefix / "lib"
        program = self.compiled("pages.c", text, "-fno-spillway", f"-L{library}", f"-Wl,-rpath,{library}", "-lumap")
        self.run_alone(program)

    def test_nothing_installed_looks_for_libraries_outside(self):
        """Each library that one of ours needs by a name of ours lies beside it, and is looked for there."""
        library = self.prefix / "lib"
        binaries = [*(self.prefix / "bin").iterdir(), *library.glob("*.so*")]
        for binary in binaries:
            wanted = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True,
                                    env=dict(os.environ, LC_ALL="C")).stdout
            for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", wanted):
                self.assertEqual(path, "$ORIGIN", binary)
            for name in re.findall(r"\(NEEDED\).*\[(lib(?:spillway|umap)[^\]]*)\]", wanted):
                self.assertTrue((library / name).exists(), f"{binary} needs {name}")
                self.assertIn("$ORIGIN", wanted, binary)

    def test_headers_and_manual_pages_are_there(self):
        for header in (self.source / "include" / "spillway").iterdir():
            self.assertEqual((self.prefix / "include" / "spillway" / header.name).read_bytes(), header.read_bytes())
        for page in (self.source / "docs" / "man").iterdir():
            self.assertTrue((self.prefix / "share" / "man" / f"man{page.suffix[1:]}" / page.name).exists(), page)


if __name__ == "__main__":
    tool_case.main()
