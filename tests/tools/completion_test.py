"""`spillway completion SHELL`: what a shell offers for a command line. Asked of bash, and of zsh and fish where they are."""
import shutil
import subprocess

import tool_case

# What bash does before it calls a completion: '=' is a word by itself.
BASH = r"""
source /dev/stdin <<<"$1"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra COMP_WORDS <<<"${2//=/ = }"
case $2 in *' ') COMP_WORDS+=('') ;; esac
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
_spillway
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"""


class Completion(tool_case.ToolCase):
    def offered_by_bash(self, line):
        script = self.expect_done("completion", "bash").stdout
        done = subprocess.run(["bash", "--norc", "-c", BASH, "bash", script, line], capture_output=True, text=True,
                              timeout=30, cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_commands(self):
        listed = {line.split()[0] for line in self.expect_done("--help").stdout.partition("Subcommands:")[2].splitlines()
                  if line.startswith("  ") and line[2] != " "} - {"spillway", "spillway-clang++"}
        self.assertGreater(len(listed), 6)
        self.assertLessEqual(listed, set(self.offered_by_bash("spillway ")))
        self.assertEqual(self.offered_by_bash("spillway ru"), ["run"])

    def test_every_option_of_the_list(self):
        listed = [line.split()[0] for line in self.expect_done("options").stdout.splitlines() if line.startswith("--")]
        self.assertGreater(len(listed), 20)
        for command in ("run", "advise"):
            self.assertLessEqual(set(listed), set(self.offered_by_bash(f"spillway {command} --")))
        for shell in ("zsh", "fish"):
            script = self.expect_done("completion", shell).stdout
            for option in listed:
                self.assertIn(option if shell == "zsh" else f"-l {option[2:]} ", script)

    def test_values(self):
        for line in ("spillway run --engine ", "spillway run --engine=", "spillway advise --memory 1G --engine "):
            self.assertEqual(self.offered_by_bash(line), ["auto", "translated", "mapped"], line)
        self.assertEqual(self.offered_by_bash("spillway run --engine=m"), ["mapped"])
        self.assertEqual(self.offered_by_bash("spillway options t"), ["tuning"])
        (self.folder / "disk").mkdir()
        (self.folder / "report").touch()
        self.assertEqual(self.offered_by_bash("spillway run --store "), ["disk"])
        self.assertCountEqual(self.offered_by_bash("spillway stats "), ["disk", "report"])

    def test_the_program_has_its_own(self):
        self.assertIn("env", self.offered_by_bash("spillway run --memory 4G en"))
        (self.folder / "data").touch()
        for line in ("spillway run --memory 4G env d", "spillway run -- env d", "spillway run --engine=mapped -- env d"):
            self.assertEqual(self.offered_by_bash(line), ["data"], line)

    def test_other_shells_can_read_theirs(self):
        shells = [shell for shell in ("zsh", "fish") if shutil.which(shell)]
        if not shells:
            self.skipTest("neither zsh nor fish is installed")
        for shell in shells:
            file = self.folder / shell
            file.write_text(self.expect_done("completion", shell).stdout)
            done = subprocess.run([shell, "-n", file], capture_output=True, text=True, timeout=30)
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_other_shells_are_refused(self):
        self.assertIn("bash", self.expect_refused("SHELL: csh not in {bash,zsh,fish}", "completion", "csh"))


if __name__ == "__main__":
    tool_case.main()
