"""scripts/clang_tidy.py in a small repository: which files it looks at, and how it names what it finds."""
import json
import shutil
import subprocess
import sys
import unittest

import tool_case

CLEAN = "int twice(int n) { return 2 * n; }\n"
WRONG = "void wait(int n) { int i = 0; while (i < n) { } }\n"
WRONG_HEADER = '// A header.\n#pragma once\ninline void wait(int n) { int i = 0; while (i < n) { } }\n'


@unittest.skipUnless(shutil.which("clang-tidy-19"), "clang-tidy-19 is not installed")
class ClangTidy(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        (self.folder / "scripts").mkdir()
        shutil.copy(self.source / "scripts" / "clang_tidy.py", self.folder / "scripts")
        shutil.copy(self.source / ".clang-tidy", self.folder)
        build = self.folder / "build" / "release"
        (build / "layers" / "store").mkdir(parents=True)
        (self.folder / "src" / "store").mkdir(parents=True)
        (build / "layers" / "store" / "store").symlink_to(self.folder / "src" / "store")
        names = ("src/store/old.cc", "src/store/new.cc", "src/store/user.cc")
        (build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(build), "file": str(self.folder / name),
             "command": f"clang++-19 -I{build}/layers/store -c {self.folder / name}"} for name in names]))
        self.write("src/store/old.cc", WRONG)
        self.write("src/store/new.cc", CLEAN)
        self.write("src/store/user.cc", '#include "store/store.h"\nvoid use() { wait(3); }\n')
        self.write("src/store/store.h", "// A header.\n#pragma once\nvoid wait(int n);\n")
        (self.folder / ".gitignore").write_text("build\n")
        self.git("init", "-q")
        self.commit()
        self.write("README", "more\n")
        self.commit()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def git(self, *words):
        subprocess.run(["git", "-C", self.folder, "-c", "user.name=t", "-c", "user.email=t@example.com", *words], check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "more")

    def look(self, which):
        return subprocess.run([sys.executable, self.folder / "scripts" / "clang_tidy.py", which], capture_output=True, text=True)

    def test_only_what_has_changed_is_looked_at(self):
        done = self.look("--changed")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "clang-tidy: 0 of 3 files, 0 findings\n", ""))
        self.write("src/store/new.cc", WRONG)
        done = self.look("--changed")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("src/store/new.cc:1:"), done.stderr)
        self.assertIn("bugprone-infinite-loop", done.stderr)

    def test_a_header_is_looked_at_by_who_includes_it_and_has_its_own_name(self):
        self.write("src/store/store.h", WRONG_HEADER)
        done = self.look("--changed")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("src/store/store.h:3:"), done.stderr)

    def test_all_are_looked_at_on_demand(self):
        done = self.look("--all")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("src/store/old.cc:1:"), done.stderr)


if __name__ == "__main__":
    tool_case.main()
