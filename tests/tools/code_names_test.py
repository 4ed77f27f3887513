"""Names of places in code: functions and lines of real programs with more and less debug information, and of files that are broken."""
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess

import tool_case

FUNCTIONS = {1: "static_function(int)", 2: "int template_function<int>(std::vector<int, std::allocator<int> > const&)", 3: "around_inlined(int)",
             4: "calls_through_library(int)"}
CUT_EVERY_BYTES = 97
MUTANTS = 300
COMPILERS = ("g++", "clang++-19")


class Case(tool_case.ToolCase):
    def setUp(self):
        super().setUp()
        self.of = self.programs / "code_names_of"
        self.sources = (self.source / "tests/tools").resolve()

    def compile(self, *flags, compiler="c++", name="named"):
        program = self.folder / name
        subprocess.run([compiler, "-std=c++20", "-O2", *flags, self.sources / "named_program.cc", "-o", program], check=True, cwd=self.folder)
        return program

    def lines(self):
        """LINE's name: "file:number" of both sources."""
        return {found[1]: f"{file}:{number}" for file in ("named_program.cc", "named_program.h")
                for number, text in enumerate((self.sources / file).read_text().splitlines(), 1) if (found := re.search(r"// LINE (\w+)$", text))}

    def ask(self, questions, *mode, **more):
        """Answers, a line each; fails when the process that answers does."""
        done = subprocess.run([self.of, *map(str, mode)], input="".join(f"{question}\n" for question in questions), capture_output=True, text=True,
                              errors="replace", timeout=100, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{questions[:3]}...")
        answers = done.stdout.splitlines()
        self.assertEqual(len(answers), len(questions), done.stdout[-500:])
        return answers

    def places_of(self, program):
        """By number: what is said of each place of the program while it runs, and the place as a question about the file."""
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            addresses = dict(process.stdout.readline().split() for _ in FUNCTIONS)
            maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
            answers = self.ask(list(addresses.values()), "--process", process.pid)
            process.stdin.close()
        begin = int(next(line for line in maps.splitlines() if line.endswith(str(program))).split("-")[0], 16)
        return {int(number): (answer, f"{program}\t{int(address, 16) - begin:#x}") for (number, address), answer in zip(addresses.items(), answers)}

    def expect_lines(self, program):
        """Everything is known: from a running process, from the file, and by a process of its own as well as without one."""
        line = self.lines()
        places = self.places_of(program)
        expected = {1: f"{FUNCTIONS[1]} ({line['static']})", 2: f"{FUNCTIONS[2]} ({line['template']})",
                    3: f"inlined_helper(int) ({line['inlined']}), in {FUNCTIONS[3]}", 4: f"{FUNCTIONS[4]} ({line['library']})"}
        self.assertEqual({number: answer for number, (answer, _) in places.items()}, expected)
        questions = [question for _, question in places.values()]
        self.assertEqual(self.ask(questions), list(expected.values()))
        self.assertEqual(self.ask(questions, "--here")[2].split("\t"), ["inlined_helper(int)", FUNCTIONS[3], line["inlined"]])
        return questions

    def expect_functions(self, program):
        """Without lines: the functions that the symbol table has, and where in the file."""
        for number, (answer, question) in self.places_of(program).items():
            self.assertEqual(answer, f"{FUNCTIONS[number]} ({program.name}+{question.split(chr(9))[1]})")

    def expect_places(self, program):
        for answer, question in self.places_of(program).values():
            self.assertEqual(answer, f"{program.name}+{question.split(chr(9))[1]}")


class NamesPlaces(Case):
    def test_by_debug_information_of_each_compiler_and_kind(self):
        for compiler in COMPILERS:
            if not shutil.which(compiler):
                print(f"without {compiler}, which is not here")
                continue
            for flags in (("-g",), ("-g", "-no-pie"), ("-g", "-gdwarf-4"), ("-g", "-gsplit-dwarf"), ("-g", "-gz")):
                with self.subTest(compiler=compiler, flags=flags):
                    self.expect_lines(self.compile(*flags, compiler=compiler))

    def test_without_debug_information(self):
        self.expect_functions(self.compile("-g0"))
        self.expect_functions(self.compile("-g0", "-no-pie"))

    def test_without_symbols(self):
        self.expect_places(self.compile("-g", "-s"))

    def test_by_debug_information_in_a_file_beside(self):
        program = self.compile("-g")
        debug = self.folder / ".debug" / "apart"
        debug.parent.mkdir()
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["strip", program], check=True)
        self.expect_places(program)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
        self.expect_lines(program)

    def test_of_libraries_without_debug_information_by_their_own_symbols(self):
        library = self.folder / "libnamed.so"
        (self.folder / "library.c").write_text("int exported(int number) { return number + 1; }\n")
        subprocess.run(["cc", "-g0", "-shared", "-fPIC", "-s", self.folder / "library.c", "-o", library], check=True)
        symbols = subprocess.run(["nm", "-D", library], check=True, capture_output=True, text=True).stdout
        offset = int(re.search(r"^(\w+) T exported$", symbols, re.M)[1], 16)
        self.assertEqual(self.ask([f"{library}\t{offset:#x}"]), [f"exported (libnamed.so+{offset:#x})"])

    def test_names_are_fit_for_a_terminal(self):
        source = self.folder / "odd\033[2J.cc"
        source.write_text((self.sources / "named_program.cc").read_text())
        program = self.folder / "na\033med"
        subprocess.run(["c++", "-std=c++20", "-O2", "-g", f"-I{self.sources}", source, "-o", program], check=True)
        question = f"{program}\t{self.offset_of(program, 'around_inlined'):#x}"
        self.assertRegex(self.ask([question])[0], r"^around_inlined\(int\) \(odd\?\[2J\.cc:\d+\)$")

    def offset_of(self, program, function):
        symbols = subprocess.run(["nm", "-C", program], check=True, capture_output=True, text=True).stdout
        return int(re.search(rf"^(\w+) [tT] {function}\(", symbols, re.M)[1], 16)


class IsNotBroken(Case):
    def test_by_what_is_no_program(self):
        text, pipe = self.folder / "text", self.folder / "pipe"
        text.write_text("hello\n")
        os.mkfifo(pipe)
        for file in (text, pipe, self.folder, self.folder / "gone", "/dev/zero", self.folder / ("long" * 60)):
            self.assertEqual(self.ask([f"{file}\t0x10"]), [f"{pathlib.Path(file).name}+0x10"])

    def test_by_files_that_are_cut_short(self):
        program = self.compile("-g")
        _, question = self.places_of(program)[3]
        whole, offset = program.read_bytes(), question.split("\t")[1]
        cut, asked = [], []
        for length in range(0, len(whole), CUT_EVERY_BYTES):
            cut.append(self.folder / f"cut{length}")
            cut[-1].write_bytes(whole[:length])
            asked += [f"{cut[-1]}\t{offset}", f"{cut[-1]}\t0x0", f"{cut[-1]}\t{2**64 - 1:#x}"]
        self.assertGreater(len(cut), 100)
        self.ask(asked, "--here")

    def test_by_files_with_wrong_bytes(self):
        """Whatever such a file does to what reads it, the next question has its answer. The seed is fixed: a failure comes again."""
        program = self.compile("-g")
        good, questions = self.expect_lines(program), []
        whole, bad = program.read_bytes(), random.Random(1)
        for number in range(MUTANTS):
            contents = bytearray(whole)
            for _ in range(bad.choice((1, 5, 50, 500))):
                contents[bad.randrange(64 if bad.random() < 0.1 else 0, len(contents))] = bad.choice((0, 1, 0x7f, 0x80, 0xff, bad.randrange(256)))
            file = self.folder / f"mutant{number}"
            file.write_bytes(contents)
            questions += [question.replace(str(program), str(file)) for question in good]
        answers = self.ask([*questions, *good])
        self.assertTrue(all(answers[number].isprintable() for number in range(len(answers))), "control characters")
        self.assertEqual(answers[len(questions):], self.ask(good))

    def test_by_the_death_of_the_process_that_reads(self):
        program = self.compile("-g")
        question = self.expect_lines(program)[0]
        with subprocess.Popen([self.of], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            def answer(place):
                process.stdin.write(f"{place}\n")
                process.stdin.flush()
                return process.stdout.readline()
            self.assertIn(self.lines()["static"], answer(question))
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
            reader = int(children.read_text())
            os.kill(reader, signal.SIGKILL)
            self.assertIn(self.lines()["inlined"], answer(self.expect_lines(program)[2]))
            self.assertNotEqual(int(children.read_text()), reader)
            last = int(children.read_text())
            process.stdin.close()
        self.assertFalse(pathlib.Path(f"/proc/{last}").exists(), "the process that reads has stayed")


class AsksNobody(Case):
    def asked(self, program, *mode):
        """Whether the server of debug information that the environment names was spoken to."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(2)
            environment = {**os.environ, "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.getsockname()[1]}/", "DEBUGINFOD_TIMEOUT": "1",
                           "DEBUGINFOD_CACHE_PATH": str(self.folder / "cache")}
            with subprocess.Popen([self.of, *mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
                process.stdin.write(f"{program}\t0x1000\n")
                process.stdin.close()
                try:
                    server.accept()[0].close()
                    return True
                except TimeoutError:
                    return False
                finally:
                    process.stdout.read()

    def test_no_server_is_asked_for_debug_information(self):
        program = self.compile("-g", "-s", "-Wl,--build-id")
        if not self.asked(program, "--here"):
            self.skipTest("libdw asks no server here: libdebuginfod is not installed")
        self.assertFalse(self.asked(program))


if __name__ == "__main__":
    tool_case.main()
