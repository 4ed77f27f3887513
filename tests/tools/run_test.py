"""`spillway run`: every bad input gets its line and exit code 2; a good one becomes the program."""
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess

import tool_case

CUT_EVERY_BYTES = 97
MUTANTS = 300


class RefusesBadValues(tool_case.ToolCase):
    def refused_value(self, option, value, accepted):
        self.expect_refused(f"--{option}={value}: accepted: {accepted}", "run", f"--{option}", value, "--", self.program)
        self.expect_refused(f"--{option}={value}: accepted: {accepted}", "run", f"--{option}={value}", self.program)
        variable = f"SPILLWAY_{option.upper().replace('-', '_')}"
        self.expect_refused(f"{variable}={value}: accepted: {accepted}", "run", self.program, env={variable: value})

    def test_sizes(self):
        for value in ("4X", "lots", "-1", "1K", "99T", "0"):
            self.refused_value("memory", value, "a size from 8.0 MiB to 16.0 TiB, such as")
        for value in ("3K", "12K", "4M"):
            self.refused_value("block", value, "a power of two from 4.0 KiB to 2.0 MiB, such as")
        self.refused_value("threshold", "0", "a size from 1 B to 1.0 TiB")
        self.refused_value("quota", "all", "a size from 0 B to 16.0 TiB")

    def test_counts(self):
        for value in ("65", "two", "1.5", "-1", "4K"):
            self.refused_value("servers", value, "a number from 0 to 64")
        self.refused_value("readahead", "1025", "a number from 0 to 1024")

    def test_choices(self):
        self.refused_value("engine", "fast", "one of auto, translated, mapped")
        self.refused_value("policy", "random", "one of clock")
        self.refused_value("delegation", "yes", "one of auto, combining, dedicated")
        self.refused_value("on-refused-child", "stay", "one of end, go-on")
        self.refused_value("io", "aio", "one of auto, io_uring, libaio, threads")


    def test_values_that_do_not_fit_together(self):
        self.expect_refused("SPILLWAY_MEMORY=64.0 MiB: too little for blocks of 2.0 MiB; accepted: at least 512.0 MiB",
                            "run", "--memory", "64M", "--block", "2M", "--", self.program)
        self.expect_refused("SPILLWAY_QUOTA=2.0 GiB: more than SPILLWAY_MEMORY, which is 1.0 GiB",
                            "run", "--memory", "1G", "--quota", "2G", "--", self.program)

    def test_store(self):
        self.expect_refused("the store directory /nowhere/at/all: it does not exist; name another one with --store",
                            "run", "--store", "/nowhere/at/all", "--", self.program)
        file = self.folder / "file"
        file.write_text("")
        self.expect_refused(f"the store directory {file}: it is not a directory", "run", "--store", file, "--", self.program)
        self.expect_refused("the store directory /proc: no file can be made there", "run", "--store", "/proc", self.program)
        self.expect_refused("the store directory /nowhere: it does not exist", "run", self.program, env={"TMPDIR": "/nowhere"})

    def test_store_that_is_too_small(self):
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", self.folder], capture_output=True)
        if mount.returncode != 0:
            self.skipTest("mounting a small filesystem needs root")
        try:
            line = self.expect_refused(f"the store directory {self.folder}: it has ", "run", "--store", self.folder,
                                       "--", self.program)
            self.assertIn("at least 64.0 MiB are needed", line)
        finally:
            subprocess.run(["umount", self.folder], check=True)

    def test_stats_file(self):
        self.expect_refused("--stats=/: it is a directory", "run", "--stats", "/", "--", self.program)
        self.expect_refused("--stats=/nowhere/run.json: no file can be made there (No such file or directory)",
                            "run", "--stats", "/nowhere/run.json", "--", self.program)


class RefusesBadWords(tool_case.ToolCase):
    def test_unknown_options(self):
        self.expect_refused("--memroy: unknown option; did you mean --memory?", "run", "--memroy", "4G", "--", self.program)
        self.expect_refused("--memroy: unknown option; did you mean --memory?", "run", "--memroy=4G", self.program)
        self.expect_refused("--mem: unknown option; did you mean --memory?", "run", "--mem", "1G", "--", self.program)
        self.expect_refused("-mem: unknown option; did you mean --memory?", "run", "-mem=1G", self.program)
        self.expect_refused("--pro: unknown option or argument; spillway run --help", "run", "--pro")  # PROGRAM is none
        self.expect_refused("--zzzzzzzzz: unknown option or argument; spillway run --help", "run", "--zzzzzzzzz")
        self.expect_refused("--frobnicate: unknown option or argument; spillway --help", "--frobnicate")

    def test_missing_values(self):
        self.expect_refused("--memory=: accepted: a size", "run", "--memory", "", "--", self.program)
        self.expect_refused("--memory: it needs a value", "run", "--memory=", "--", self.program)
        self.expect_refused("--memory: it needs a value", "run", "--memory")
        self.expect_refused("--store: it needs a value", "run", "--store", "--", self.program)

    def test_commands_that_do_not_exist(self):
        for word in ("bench", "rnu"):
            self.expect_refused(f"{word}: no such command; there are run, advise, doctor, stats, check, top, options", word)
        self.expect_refused("no command is named; spillway --help", )


class RefusesBadPrograms(tool_case.ToolCase):
    def test_missing_programs(self):
        self.expect_refused("no program is named", "run")
        self.expect_refused("no program is named", "run", "--memory", "1G", "--")
        self.expect_refused("no-such-program-anywhere: there is no such program", "run", "no-such-program-anywhere")
        self.expect_refused("./gone: there is no such program", "run", "--", "./gone")

    def test_what_is_no_program(self):
        self.expect_refused(f"{self.folder}: it is a directory, not a program", "run", self.folder)
        text = self.folder / "text"
        text.write_text("hello\n")
        self.expect_refused(f"{text}: it may not be executed", "run", text)
        text.chmod(0o755)
        self.expect_refused(f"{text}: it is no ELF file, so Spillway cannot run it", "run", text)
        text.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(200))
        self.expect_refused(f"{text}: it is made for another processor than x86-64", "run", text)

    def test_unmodified_programs(self):
        self.expect_refused("ls: it is not recompiled, which --engine=translated needs", "run", "--engine", "translated", "--",
                            "ls", "-l")

    def test_programs_that_nothing_can_be_loaded_into(self):
        source = self.folder / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-static", source, "-o", self.folder / "static"], check=True)
        self.expect_refused(f"{self.folder}/static: it is linked statically", "run", self.folder / "static")

    def test_programs_with_rights_of_their_own(self):
        """Recompiled ones too: they would take no options from what `run` starts them with."""
        for number, original in enumerate(("/bin/true", self.program)):
            program = self.folder / f"privileged{number}"
            shutil.copy(original, program)
            for mode in (0o4755, 0o2755):
                program.chmod(mode)
                self.expect_refused(f"{program}: it runs with rights of its own (set-user-ID or the like), so it takes neither "
                                    "a library nor options from its environment", "run", program)
            program.chmod(0o755)
            self.expect_done("run", program)
            self.assertEqual(self.call("run", "--no-check", program).returncode, 0)

    def test_programs_with_file_capabilities(self):
        program = self.folder / "capable"
        shutil.copy(self.program, program)
        net_raw = struct.pack("<5I", 0x02000000, 1 << 13, 0, 0, 0)  # struct vfs_cap_data, permitted: CAP_NET_RAW
        try:
            os.setxattr(program, "security.capability", net_raw)
        except OSError as error:
            self.skipTest(f"file capabilities cannot be set: {error.strerror}")
        self.expect_refused(f"{program}: it runs with rights of its own", "run", program)

    def test_another_version(self):
        other = self.programs / "marked_by_other_version"
        self.expect_refused(f"{other}: it was recompiled with another version of Spillway (__spw_abi_v999", "run", other)

    def test_broken_elf_files(self):
        whole = (self.programs / "marked_by_symbol").read_bytes()
        broken = self.folder / "broken"
        for length in (20, 64, 1000, len(whole) // 2):
            broken.write_bytes(whole[:length])
            broken.chmod(0o755)
            self.assertEqual(self.call("run", broken).returncode, 2)
        huge_sections = bytearray(whole)
        huge_sections[40:48] = b"\xff" * 8  # e_shoff
        broken.write_bytes(huge_sections)
        self.assertEqual(self.call("run", broken).returncode, 0)  # sections are not what it is loaded by

    def test_programs_that_are_cut_anywhere(self):
        """Refused, until all that is loaded is there. What is left of the end then, where symbols are, is read as far as it goes."""
        whole, codes = (self.programs / "marked_by_symbol").read_bytes(), []
        cut = self.folder / "cut"
        for length in range(0, len(whole), CUT_EVERY_BYTES):
            cut.unlink(missing_ok=True)
            cut.write_bytes(whole[:length])
            cut.chmod(0o755)
            done = self.call("run", cut)
            self.assertTrue(done.returncode == 0 or done.stderr.startswith("spillway: "), f"{length}: {done.returncode} {done.stderr}")
            codes.append(done.returncode)
        self.assertEqual(codes, sorted(codes, reverse=True))
        self.assertEqual({0, 2}, set(codes))

    def test_programs_with_wrong_bytes(self):
        """None of them is started, since none is recompiled. The seed is fixed: a failure comes again."""
        whole, bad = pathlib.Path("/bin/true").resolve().read_bytes(), random.Random(1)
        headers = [*range(64 + 13 * 56), *range(len(whole) - 30 * 64, len(whole))]  # of segments and of sections
        broken, said = self.folder / "broken", set()
        for number in range(MUTANTS):
            contents = bytearray(whole)
            for _ in range(bad.choice((1, 5, 50, 500))):
                at = bad.choice(headers) if number % 2 else bad.randrange(len(contents))
                contents[at] = bad.choice((0, 1, 0x7f, 0x80, 0xff, bad.randrange(256)))
            broken.write_bytes(contents)
            broken.chmod(0o755)
            said.add(self.expect_refused(f"{broken}: it ", "run", "--engine", "translated", "--", broken))
        for kind in ("is no ELF file", "is made for another processor", "is cut short or damaged", "is not recompiled"):
            self.assertTrue(any(kind in line for line in said), f"{kind}: {said}")


class BecomesTheProgram(tool_case.ToolCase):
    def test_recompiled_programs_are_known_by_symbol_and_by_library(self):
        for name in ("marked_by_symbol", "marked_by_library"):
            self.expect_done("run", "--", self.programs / name)

    def test_values_become_environment_and_win_over_it(self):
        done = self.expect_done("run", "--memory", "1G", "--memory=2G", "--readahead", "8", "--store", self.folder, "--",
                                self.program, "env", "SPILLWAY_MEMORY", "SPILLWAY_READAHEAD", "SPILLWAY_IO", "SPILLWAY_STORE",
                                "SPILLWAY_POLICY", env={"SPILLWAY_MEMORY": "9G", "SPILLWAY_IO": "threads"})
        self.assertEqual(done.stdout.splitlines(),
                         ["SPILLWAY_MEMORY=2G", "SPILLWAY_READAHEAD=8", "SPILLWAY_IO=threads",
                          f"SPILLWAY_STORE={self.folder}", "SPILLWAY_POLICY=(unset)"])

    def test_arguments_reach_the_program_as_they_are(self):
        words = ["args", "--memory", "--", "[a,b]", "%%", "", "--help", "x y"]
        for separator in ([], ["--"]):
            done = self.expect_done("run", "--memory", "1G", *separator, self.program, *words)
            self.assertEqual(done.stdout.splitlines(), [self.program, *words])

    def test_the_path_is_searched(self):
        done = self.expect_done("run", "marked_by_symbol", "args", env={"PATH": f"/nowhere:{self.programs}"})
        self.assertEqual(done.stdout.splitlines(), ["marked_by_symbol", "args"])

    def test_exit_codes_and_signals_are_the_programs_own(self):
        self.assertEqual(self.call("run", "--", self.program, "exit", "2").returncode, 2)
        self.assertEqual(self.call("run", "--", self.program, "exit", "77").returncode, 77)
        self.assertEqual(self.call("run", "--", self.program, "kill", "15").returncode, -signal.SIGTERM)

    def test_an_interrupt_reaches_the_program(self):
        running = subprocess.Popen([self.tool, "run", "--", self.program, "wait"], stdout=subprocess.PIPE, text=True,
                                   env=tool_case.clean_environment())
        self.assertEqual(running.stdout.readline(), "ready\n")
        running.send_signal(signal.SIGINT)
        self.assertEqual(running.wait(timeout=10), -signal.SIGINT)
        running.stdout.close()

    def test_a_store_in_memory_is_warned_about(self):
        if not os.path.ismount("/dev/shm"):
            self.skipTest("no tmpfs at /dev/shm")
        done = self.expect_done("run", "--store", "/dev/shm", "--", self.program)
        self.assertIn("/dev/shm is on a tmpfs, which is memory itself", done.stderr)

    def test_unmodified_programs_and_scripts_get_the_library(self):
        self.assertEqual(self.expect_done("run", "--", "/bin/echo", "hello").stdout, "hello\n")
        script = self.folder / "script"
        script.write_text("#!/bin/sh -e\necho $LD_PRELOAD\n")
        script.chmod(0o755)
        done = self.expect_done("run", script, env={"LD_PRELOAD": ""})
        self.assertTrue(done.stdout.endswith("/lib/libspillway.so.0\n"), done.stdout)

    def test_nothing_is_left_in_the_store(self):
        self.expect_done("run", "--store", self.folder, "--", self.program)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    tool_case.main()
