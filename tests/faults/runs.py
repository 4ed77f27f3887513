"""One run with one failure, and whether it ended as it may."""
import dataclasses
import json
import os
import pathlib
import re
import signal
import struct
import subprocess

from cases import Call, Case, LASTING

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 30  # a run takes a tenth of a second
CAP = "8M"
FILE_BYTES, PIECE_BYTES, PAGE_BYTES, VERSIONS = 10 << 20, 64 << 10, 4096, 3
TOLD, NO_INJECTOR = 3, 125
OURS = (2, 74)  # src/base/exit_status.h
TOOL_FAILED = 1
FLAGS = ("-std=c++20", "-O1", "-Wall", "-Wextra", "-pthread")


class Unavailable(Exception):
    """What all of this takes is not here."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """The Nth call of a class fails, once or lastingly. n = 0: none."""
    call: Call
    error: str
    mode: str
    n: int

    def __str__(self) -> str:
        return f"{self.call.name}:{self.error} {self.mode} from {self.n}"


@dataclasses.dataclass
class Run:
    code: int | None  # None: it took too long
    output: str
    errors: str
    failed: int  # calls
    seen: int
    counts: dict  # by call
    first: str  # of those that failed
    stack: str

    def ours(self) -> list[str]:
        """Lines that say why it ended."""
        return [line for line in self.errors.splitlines() if line.startswith("spillway: ") and not line.startswith("spillway: warning: ")]


@dataclasses.dataclass
class Verdict:
    end: str  # how it ended, for the table: "right", "stopped", "told"
    wrong: str = ""  # why it may not end so


def version_of(version: int) -> bytes:
    step, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    count = FILE_BYTES // 8
    return struct.pack(f"<{count}Q", *(((i + 1) * step + version) & mask for i in range(count)))


def programs(build: pathlib.Path, made: pathlib.Path) -> None:
    """Compiles what is run, where that is not fresh."""
    made.mkdir(parents=True, exist_ok=True)
    include = f"-I{HERE.parents[1] / 'include'}"
    library = [f"-L{build / 'lib'}", "-lspillway", f"-Wl,-rpath,{build / 'lib'}"]
    commands = {"fail_nth": ["clang-19", "-O2", "-Wall", "-Wextra", HERE / "fail_nth.c", HERE / "caller.c"],
                "program.native": ["clang++-19", *FLAGS, HERE / "program.cc"],
                "region.native": ["clang++-19", *FLAGS, include, HERE / "region.cc", *library]}
    for engine in ("mapped", "translated"):
        ours = [build / "bin" / "spillway-clang++", *FLAGS, f"-fspillway-engine={engine}"]
        commands[f"program.{engine}"] = [*ours, HERE / "program.cc"]
        commands[f"region.{engine}"] = [*ours, "-fspillway-durable", "-DPLAIN_STORES", include, HERE / "region.cc"]
    newest = max(file.stat().st_mtime for file in (*HERE.glob("*.c*"), *HERE.glob("*.h"), build / "lib" / "spillway_pass.so"))
    for name, command in commands.items():
        target = made / name
        if not target.exists() or target.stat().st_mtime < newest:
            part = target.with_name(f"{name}.{os.getpid()}")  # two that make it at a time
            subprocess.run([*map(str, command), "-o", str(part)], check=True)
            part.rename(target)


class Place:
    """A folder for one run at a time."""

    def __init__(self, build: pathlib.Path, made: pathlib.Path, folder: pathlib.Path, versions: list[bytes]):
        self.build, self.made, self.folder, self.versions = build, made, folder, versions
        self.file_is_new = False
        (folder / "store").mkdir(parents=True)
        self.record, self.file, self.region = folder / "record.json", folder / "file.data", folder / "region"

    def command(self, case: Case, failure: Failure, shows_stack: bool = False) -> list[str]:
        fails = ["--short"] if failure.error == "short" else ["--error", failure.call.number(failure.error)]
        if shows_stack:
            fails.append("--stack")
        injector = [self.made / "fail_nth", "--calls", ",".join(failure.call.calls), "--nth", failure.n,
                    "--times", "all" if failure.mode == LASTING else 1, *fails, "--record", self.record, "--"]
        if case.denied:
            injector[1:1] = ["--deny", ",".join(case.denied)]
        if case.does == "region":
            program = [self.made / f"region.{case.made}", "write", self.region]
        else:
            program = [self.made / f"program.{case.made}", case.does, *([self.file] if case.has_file else [])]
        under = [self.build / "bin" / "spillway", "run", "--memory", CAP, "--quota", "0", "--store", self.folder / "store", "--quiet",
                 *case.options, "--", *program]
        return [str(word) for word in (*injector, *under)]

    def prepare(self, case: Case) -> None:
        self.record.unlink(missing_ok=True)
        if case.makes:
            self.file.unlink(missing_ok=True)
        elif case.has_file and not self.file_is_new:
            self.file.write_bytes(self.versions[0])
        if case.has_file:
            self.file_is_new = not case.writes
        self.region.unlink(missing_ok=True)

    def run(self, case: Case, failure: Failure, shows_stack: bool = False) -> Run:
        self.prepare(case)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        # A full disk is waited for half a minute; here it stays full.
        env = kept | {"SPILLWAY_TEST_FRAME_WAIT_MS": "300"} | dict(case.env)
        if failure.call.name == "allocations":
            env["SPILLWAY_TEST_ALLOCATIONS"] = "ask"
        process = subprocess.Popen(self.command(case, failure, shows_stack), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", cwd=self.folder, env=env, start_new_session=True)
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            code = None
        if code == NO_INJECTOR:
            raise Unavailable(f"nothing can be made to fail here: {errors.strip()}")
        record = json.loads(self.record.read_text()) if self.record.exists() else {"failed": 1, "seen": 0, "first": "?", "stack": ""}
        return Run(code, output, errors, record["failed"], record["seen"], record, record["first"], record["stack"])

    # ---- Whether it ended as it may ----

    def judge(self, case: Case, run: Run, right_output: str, lasting: bool = False) -> Verdict:
        wrong = self._wrong_end(case, run, right_output, lasting)
        if not wrong and case.has_file:
            wrong = self._wrong_file(case, run)
        if not wrong and case.does == "region":
            wrong = self._wrong_region(run)
        end = "right" if run.code == 0 else "told" if run.code == TOLD else "stopped"
        return Verdict(end, wrong)

    @staticmethod
    def _wrong_end(case: Case, run: Run, right_output: str, lasting: bool) -> str:
        if run.code is None:
            return "hangs"
        if run.code > 128:
            return f"ended by {signal.Signals(run.code - 128).name}"
        if run.code == 0:
            return "" if run.output == right_output else "other output, and exit code 0"
        if run.code == TOLD:
            return "" if "program: " in run.errors else "exit code 3 without a word"
        if run.code not in OURS:
            return f"exit code {run.code}"
        lines = [line for line in run.errors.splitlines() if not line.startswith("spillway: warning: ")]
        # Of a program that forks each process may have a line, and the parent says that its child failed.
        most = 1
        if case.does == "fork":
            most, lines = 2, [line for line in lines if not line.startswith("program: the child failed")]
        # What fails lastingly may fail for us as well while the program says that it was told, and is about to end.
        if lasting:
            lines = [line for line in lines if not line.startswith("program: ")]
        if 1 <= len(run.ours()) == len(lines) <= most:
            return ""
        if not lines and "spillway: warning: " in run.errors and run.code == 74:
            return ""  # the files could not be written at the end: a line for each
        return f"exit code {run.code} with {len(lines)} lines"

    def _wrong_file(self, case: Case, run: Run) -> str:
        """What the file must hold: the final version if all went well, no older one than was confirmed, and nothing else ever."""
        allowed = {0}
        if case.writes:
            lines = run.output.splitlines()
            allowed = {2} if run.code == 0 else {1, 2} if "synced 1" in lines else {0, 1, 2}
        if case.makes and not self.file.exists():
            return "" if 0 in allowed else "lost: the file is gone"
        found = self.file.read_bytes()
        # It grew as far as it came, with holes where nothing has been written yet.
        may_be_short = case.makes and 0 in allowed
        if may_be_short and len(found) < FILE_BYTES + PIECE_BYTES:
            found = found[:FILE_BYTES].ljust(FILE_BYTES, b"\0")
        elif case.makes and allowed != {2}:
            found = found[:FILE_BYTES] if len(found) < FILE_BYTES + PIECE_BYTES else found
        if len(found) != FILE_BYTES:
            return f"the file has {len(found)} bytes"
        if any(found == self.versions[version] for version in allowed):
            return ""
        for at in range(0, FILE_BYTES, PAGE_BYTES):
            page = found[at:at + PAGE_BYTES]
            if any(page == self.versions[version][at:at + PAGE_BYTES] for version in allowed):
                continue
            for word in range(at, at + PAGE_BYTES, 8):
                holds = [version for version in range(VERSIONS) if self.versions[version][word:word + 8] == found[word:word + 8]]
                if may_be_short and found[word:word + 8] == bytes(8):
                    continue
                if not set(holds) & allowed:
                    return f"lost: the file has {'version ' + str(holds[0]) if holds else 'something else'} where only {sorted(allowed)} may be"
        return ""

    def _wrong_region(self, run: Run) -> str:
        """It holds as many sections as were confirmed, or one more."""
        confirmed = max([int(line.split()[1]) for line in run.output.splitlines() if line.startswith("committed ")], default=0)
        if not self.region.exists():
            return "" if confirmed == 0 else "lost: the region is gone"
        size = self.region.stat().st_size
        check = subprocess.run([self.build / "bin" / "spillway", "check", self.region], capture_output=True, text=True, errors="replace")
        if check.returncode != 0:
            if confirmed == 0:
                # A region that could not be made may be left half made; the next one to open it has to say so or to make it anew.
                return self._wrong_half_region(size)
            return f"lost: spillway check says {check.returncode}: {(check.stdout + check.stderr).strip()[:300]}"
        read = subprocess.run([self.made / "region.native", "read", self.region], capture_output=True, text=True, errors="replace")
        found = re.match(r"holds (\d+)\n", read.stdout)
        if read.returncode != 0 or found is None:
            return f"lost: the region cannot be opened again: {(read.stdout + read.stderr).strip()[:300]}"
        if int(found[1]) not in (confirmed, confirmed + 1):
            return f"lost: the region holds section {found[1]}, and {confirmed} was confirmed"
        return ""

    def _wrong_half_region(self, size: int) -> str:
        again = subprocess.run([self.made / "region.native", "write", self.region], capture_output=True, text=True, errors="replace")
        if again.returncode == 0:
            return ""
        return f"a region of {size} bytes was left half made: {again.stderr.strip()[:200]}"
