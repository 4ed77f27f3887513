#!/usr/bin/env python3
"""spillway-clang and spillway-clang++: what they add to a command line, what they refuse, and that their output runs.

usage: driver_test.py DRIVER PLUGIN FAKE_HINTS_OBJECTS FAKE_DURABLE_OBJECT RUNTIME_OBJECTS...

FAKE_HINTS_OBJECTS are separated by colons.

The drivers find plugin and runtime beside themselves, so they are copied beside a runtime made of the fake one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  long* p = (long*)malloc(1000 * sizeof *p);
  for (int i = 0; i < 1000; ++i) p[i] = i;
  long s = 0;
  for (int i = 0; i < 1000; ++i) s += p[i];
  printf("%d %ld\n", (int)((unsigned long)p >> 44), s);
}
"""
INSTRUMENTED = "2 499500\n"
PLAIN_ENDS_WITH = " 499500\n"


class DriverTest(unittest.TestCase):
    driver = plugin = durable = ""
    hints: list[str] = []
    objects: list[str] = []

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.directory.name)
        (root / "bin").mkdir()
        (root / "lib").mkdir()
        shutil.copy(cls.driver, root / "bin/spillway-clang")
        os.symlink("spillway-clang", root / "bin/spillway-clang++")
        shutil.copy(cls.plugin, root / "lib/spillway_pass.so")
        cls.c, cls.cxx = str(root / "bin/spillway-clang"), str(root / "bin/spillway-clang++")
        cls.root = root
        (root / "p.c").write_text(PROGRAM)
        (root / "p.cc").write_text("#include <new>\n" + PROGRAM)
        (root / "a.s").write_text(".text\n.globl seven\nseven: mov $7, %eax\nret\n")
        (root / "a.S").write_text(".text\n.globl eight\neight: mov $8, %eax\nret\n")
        for library, objects in [("libspillway.so", cls.objects), ("libhints.so", cls.hints)]:
            subprocess.run([cls.c, "-fno-spillway", "-shared", "-o", root / "lib" / library, *objects], check=True)
        # The stand-in of operator new is in the stand-in runtime; this one is there to be linked.
        (root / "new.c").write_text("void* __spw_stand_in_new(void) { return 0; }\n")
        subprocess.run([cls.c, "-fno-spillway", "-shared", "-o", root / "lib/libspillway_cxx.so", root / "new.c"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def run_driver(self, *arguments, driver=None, env=None, stdin=""):
        # The stand-in runtime is a translated one; a later option wins.
        return subprocess.run([driver or self.c, "-fspillway-engine=translated", *arguments], cwd=self.root, capture_output=True, text=True, timeout=60,
                              input=stdin, env={**os.environ, **(env or {})})

    def compile(self, *arguments, driver=None, stdin=""):
        done = self.run_driver("-Werror", *arguments, driver=driver, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")

    def output(self, program):
        return subprocess.run([self.root / program], capture_output=True, text=True, timeout=60, check=True).stdout

    def test_compiles_and_links_in_one_step(self):
        for level in ["-O0", "-O2"]:
            self.compile(level, "p.c", "-o", "one")
            self.assertEqual(self.output("one"), INSTRUMENTED)

    def test_plus_plus_links_the_cxx_library(self):
        self.compile("-O1", "p.cc", "-o", "cxx", driver=self.cxx)
        self.assertEqual(self.output("cxx"), INSTRUMENTED)

    def test_compiles_then_links_objects_alone(self):
        self.compile("-O2", "-c", "p.c", "-o", "p.o")
        self.compile("p.o", "-o", "two")
        self.assertEqual(self.output("two"), INSTRUMENTED)

    def test_language_from_an_option_and_source_from_standard_input(self):
        self.compile("-O2", "-x", "c", "-", "-o", "piped", stdin=PROGRAM)
        self.assertEqual(self.output("piped"), INSTRUMENTED)

    def test_response_files(self):
        (self.root / "arguments").write_text('-O2 "p.c"\n-o response\n')
        self.compile("@arguments")
        self.assertEqual(self.output("response"), INSTRUMENTED)
        (self.root / "objects").write_text("-c\np.c -o only.o")
        self.compile("@objects")

    def test_double_dash_ends_options(self):
        self.compile("-O2", "-o", "dashed", "--", "p.c")
        self.assertEqual(self.output("dashed"), INSTRUMENTED)

    def test_assembler_inputs_are_left_alone(self):
        self.compile("-c", "a.s")
        self.compile("-fspillway-count", "-c", "a.S")

    def test_steps_that_stop_early_add_no_library(self):
        for stop in ["-c", "-S", "-E", "-fsyntax-only", "-M"]:
            done = self.run_driver("-###", stop, "p.c")
            self.assertNotIn("-lspillway", done.stderr, stop)
        self.compile("-O2", "-c", "-MMD", "-MF", "p.d", "-o", "p2.o", "p.c")
        self.assertIn("p.c", (self.root / "p.d").read_text())

    def test_shared_libraries_link_the_runtime_and_relocatable_objects_do_not(self):
        self.assertIn("-lspillway", self.run_driver("-###", "-shared", "-fPIC", "p.c").stderr)
        self.compile("-O2", "-c", "p.c", "-o", "r.o")
        self.assertNotIn("-lspillway", self.run_driver("-###", "-r", "r.o").stderr)

    def test_runtime_is_linked_even_as_needed(self):
        self.compile("-O2", "-fno-spillway", "-c", "p.c", "-o", "plain.o")
        self.compile("-Wl,--as-needed", "plain.o", "-o", "needed")
        needed = subprocess.run(["readelf", "-d", self.root / "needed"], capture_output=True, text=True, check=True).stdout
        self.assertIn("libspillway.so", needed)

    def needed_by(self, program):
        dynamic = subprocess.run(["readelf", "-d", self.root / program], capture_output=True, text=True, check=True).stdout
        return re.findall(r"\(NEEDED\).*\[([^\]]+)\]", dynamic)

    def test_operator_new_is_linked_to_what_is_in_cxx(self):
        self.compile("-O2", "p.c", "-o", "in_c")
        self.assertNotIn("libspillway_cxx.so", self.needed_by("in_c"))
        for inputs in [["p.cc"], ["--", "p.cc"]]:
            self.compile("-O2", "-o", "in_cxx", *inputs, driver=self.cxx)
            self.assertIn("libspillway_cxx.so", self.needed_by("in_cxx"))
        # Linked by the driver for C, as some build systems do.
        (self.root / "n.c").write_text("void* __spw_stand_in_new(void); int main(void) { return __spw_stand_in_new() != 0; }\n")
        self.compile("-O2", "n.c", "-o", "by_c")
        self.assertIn("libspillway_cxx.so", self.needed_by("by_c"))

    def test_without_inputs_nothing_is_linked(self):
        for option in ["--version", "-v", "-dumpversion", "-print-resource-dir"]:
            self.assertEqual(self.run_driver(option).returncode, 0, option)

    def test_link_time_optimisation_of_both_kinds(self):
        for kind in ["-flto", "-flto=thin"]:
            self.compile("-O2", kind, "p.c", "-o", "lto")
            self.assertEqual(self.output("lto"), INSTRUMENTED)
            symbols = subprocess.run(["nm", "-D", self.root / "lto"], capture_output=True, text=True, check=True).stdout
            self.assertIn("__spw_malloc_v1", symbols)

    def test_no_spillway_is_plain_clang(self):
        self.compile("-O2", "-fno-spillway", "p.c", "-o", "plain")
        self.assertNotEqual(self.output("plain"), INSTRUMENTED)
        self.assertTrue(self.output("plain").endswith(PLAIN_ENDS_WITH))

    def test_count_option_reaches_the_pass(self):
        self.compile("-O1", "-fspillway-count", "-S", "p.c", "-o", "counted.s")  # one version of each function
        self.compile("-O1", "-mllvm", "-spw-versions=0", "-S", "p.c", "-o", "not.s")
        self.assertGreater((self.root / "counted.s").stat().st_size, (self.root / "not.s").stat().st_size)

    def symbols(self, name):
        return subprocess.run(["nm", self.root / name], capture_output=True, text=True, check=True).stdout

    def test_engine_option_chooses_the_code(self):
        self.compile("-O2", "-fspillway-engine=mapped", "-c", "p.c", "-o", "engine.o")
        self.assertIn("__spw_hints_v2", self.symbols("engine.o"))
        self.assertIn("__spw_hint_store_v1", self.symbols("engine.o"))
        self.assertNotIn("__spw_malloc_v1", self.symbols("engine.o"))
        self.compile("-O2", "-fspillway-engine=mapped", "-fspillway-engine=translated", "-c", "p.c", "-o", "engine.o")
        self.assertNotIn("__spw_hint", self.symbols("engine.o"))
        self.assertIn("-lspillway", self.run_driver("-###", "-fspillway-engine=mapped", "p.c").stderr)

    def test_engine_none_writes_nothing_and_links_the_runtime(self):
        self.compile("-O2", "-fspillway-engine=none", "-c", "p.c", "-o", "none.o")
        self.assertNotIn("__spw", self.symbols("none.o"))
        self.assertIn("-lspillway", self.run_driver("-###", "-fspillway-engine=none", "p.c").stderr)

    def test_durable_option_adds_announcements_to_any_engine(self):
        for engine, symbol in [("none", None), ("mapped", "__spw_hints_v2"), ("translated", "__spw_abi_v3")]:
            for level in ["-O0", "-O3"]:
                self.compile(level, "-fspillway-durable", f"-fspillway-engine={engine}", "-c", "p.c", "-o", "durable.o")
                self.assertIn("__spw_durable_store_v1", self.symbols("durable.o"))
                self.assertIn("__spw_durable_range_v1", self.symbols("durable.o"))
                if symbol:
                    self.assertIn(symbol, self.symbols("durable.o"))
                else:
                    self.assertNotIn("__spw_abi", self.symbols("durable.o"))
                    self.assertNotIn("__spw_hint", self.symbols("durable.o"))
        self.compile("-O2", "-fspillway-durable", "-fno-spillway-durable", "-c", "p.c", "-o", "durable.o")
        self.assertNotIn("durable", self.symbols("durable.o"))

    def test_durable_programs_link_the_runtime(self):
        self.assertIn("-lspillway", self.run_driver("-###", "-fspillway-durable", "-fspillway-engine=none", "p.c").stderr)

    def test_link_time_optimisation_announces_where_one_module_was_to(self):
        (self.root / "other.c").write_text("void set(long* p) { *p = 1; }\n")
        for kind in ["-flto", "-flto=thin"]:
            self.compile("-O2", kind, "-fspillway-durable", "-c", "p.c", "-o", "marked.o")
            self.compile("-O2", kind, "-c", "other.c", "-o", "unmarked.o")
            self.compile("-O2", kind, "marked.o", "unmarked.o", self.durable, "-o", "marked")
            calls = subprocess.run(["objdump", "-d", self.root / "marked"], capture_output=True, text=True, check=True).stdout
            self.assertIn("__spw_durable_store_v1", calls.split("<main>:")[1].split("\n\n")[0])

    def test_code_is_for_the_mapped_engine_when_nothing_is_said(self):
        subprocess.run([self.c, "-O2", "-c", "p.c", "-o", "default.o"], cwd=self.root, check=True, timeout=60)
        self.assertIn("__spw_hints_v2", self.symbols("default.o"))

    def test_link_time_optimisation_writes_for_the_engine_of_the_compile_step(self):
        for kind in ["-flto", "-flto=thin"]:
            hints = ["-L" + str(self.root / "lib"), "-lhints"]
            for engine, symbol, libraries in [("mapped", "__spw_hints_v2", hints), ("translated", "__spw_abi_v3", [])]:
                self.compile("-O2", kind, f"-fspillway-engine={engine}", "-c", "p.c", "-o", "marked.o")
                self.compile("-O2", kind, "marked.o", "-o", "marked", *libraries)
                self.assertIn(symbol, self.symbols("marked"))
                self.assertTrue(self.output("marked").endswith(PLAIN_ENDS_WITH))

    def test_what_cannot_work_is_refused_with_one_line(self):
        for arguments in [["-static"], ["-m32"], ["-fsanitize=undefined,address"], ["--target=aarch64-linux-gnu"],
                          ["-target", "riscv64"], ["-flto", "-fuse-ld=bfd"], ["-flto", "-fspillway-count"],
                          ["-fspillway-engine=steam"], ["-fspillway-engine=mapped", "-fspillway-count"],
                          ["-fspillway-engine=none", "-fspillway-count"]]:
            done = self.run_driver(*arguments, "p.c")
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("spillway-clang: "), done.stderr)
        self.compile("-fsanitize=undefined", "-c", "p.c", "-o", "u.o")
        self.compile("-fno-spillway", "-fsanitize=address", "-c", "p.c", "-o", "s.o")

    def test_another_clang_by_environment(self):
        done = self.run_driver("p.c", env={"SPILLWAY_CLANG": "/no/such/clang"})
        self.assertEqual(done.returncode, 127)
        self.assertIn("SPILLWAY_CLANG", done.stderr)

    def test_own_options(self):
        self.assertIn("-fspillway-count", self.run_driver("--spillway-help").stdout)
        self.assertIn("spillway_pass.so", self.run_driver("--spillway-version").stdout)

    def test_own_options_are_completed_and_taken(self):
        """What a shell offers is what --spillway-help lists, and none of it is unknown to the driver."""
        helped = set(re.findall(r"^  (--?[a-z-]*spillway[a-z-]*)", self.run_driver("--spillway-help").stdout, re.MULTILINE))
        self.assertGreater(len(helped), 5)
        for shell in ("bash", "zsh", "fish"):
            script = self.run_driver(f"--spillway-completion={shell}").stdout
            for option in helped:
                name = option.lstrip("-") if shell == "fish" else option
                self.assertIn(name, script, shell)
        offered = re.search(r'offered="(.*?) \$\(', self.run_driver("--spillway-completion=bash").stdout)[1].split()
        for option in offered:
            if "version" in option or "help" in option or "completion" in option:
                continue
            words = ["-fspillway-engine=translated"] if option == "-fspillway-count" else []
            self.compile(*words, option, "-c", "p.c", "-o", "own.o")
        self.assertIn("there are bash, zsh and fish", self.run_driver("--spillway-completion=csh").stderr)

    def test_without_the_pass_the_line_says_where_it_should_be(self):
        alone = self.root / "alone" / "bin"
        alone.mkdir(parents=True)
        shutil.copy(self.root / "bin/spillway-clang", alone)
        done = subprocess.run([alone / "spillway-clang", "-c", "p.c"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^spillway-clang: .*/spillway/spillway_pass\.so: the pass is not there.*-fno-spillway\n$")

    def test_runtime_of_another_abi_does_not_link(self):
        self.compile("-O2", "-ffunction-sections", "-fdata-sections", "-c", "p.c", "-o", "v.o")
        (self.root / "other").mkdir(exist_ok=True)
        renamed = []
        for index, source in enumerate(self.objects):
            renamed.append(str(self.root / f"other/{index}.o"))
            subprocess.run(["objcopy", "--redefine-sym", "__spw_abi_v3=__spw_abi_v4", source, renamed[-1]], check=True)
        for extra in [[], ["-Wl,--gc-sections"], ["-fuse-ld=lld", "-Wl,--gc-sections"]]:
            done = self.run_driver("-fno-spillway", *extra, "v.o", *renamed, "-o", "mismatch")
            self.assertNotEqual(done.returncode, 0, extra)
            self.assertIn("__spw_abi_v3", done.stderr)

    def test_hints_do_not_link_with_a_runtime_that_has_none(self):
        self.compile("-O2", "-fspillway-engine=mapped", "-c", "p.c", "-o", "h.o")
        other = str(self.root / "no_hints.o")
        subprocess.run(["objcopy", "--redefine-sym", "__spw_hints_v2=__spw_hints_v3", self.hints[0], other], check=True)
        for extra in [[], ["-Wl,--gc-sections"], ["-fuse-ld=lld", "-Wl,--gc-sections"]]:
            done = self.run_driver("-fno-spillway", *extra, "h.o", other, *self.hints[1:], "-o", "mismatch")
            self.assertNotEqual(done.returncode, 0, extra)
            self.assertIn("__spw_hints_v2", done.stderr)


if __name__ == "__main__":
    DriverTest.driver, DriverTest.plugin, hints, DriverTest.durable, *DriverTest.objects = sys.argv[1:]
    DriverTest.hints = hints.split(":")
    unittest.main(argv=sys.argv[:1])
