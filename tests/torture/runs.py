"""Running a seed natively and under Spillway, and telling where the two differ."""
import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import subprocess

import documented

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = sorted(HERE.glob("*.cc"))
# Options of spillway run, and what else is in the environment. The first three run the native program: page faults come by userfaultfd
# and are served by the threads that have them, by threads of the runtime, or they are of access rights.
KINDS = {"unmodified": ([], {}), "threads": (["--faults", "threads"], {}), "rights": ([], {"SPILLWAY_TEST_USERFAULT": "none"}),
         "mapped": ([], {}), "translated": ([], {})}
RECOMPILED = ("mapped", "translated")
FLAGS = ("-std=c++20", "-O2", "-g", "-Wall", "-Wextra", "-pthread")
# What takes longer does not end; a machine with much other work does some hundred operations a second.
LIMIT_S, OPERATIONS_PER_S_MIN = 60, 100
TEXT_SHOWN = 600


@dataclasses.dataclass(frozen=True)
class Sequence:
    """Operations: the first `count` of a seed, or only those of `only`. Of one with threads or a child perhaps only some of one of them:
    (NUMBER, who, their numbers)."""
    seed: int
    count: int
    only: tuple[int, ...] | None = None
    inner: tuple[int, str, tuple[int, ...]] | None = None


@dataclasses.dataclass
class Run:
    code: int  # negative: the signal that ended it; None: it took too long
    lines: list[str]
    errors: str

    def ended(self) -> bool:
        return self.code == 0 and self.lines[-1:] == ["end"]


@dataclasses.dataclass
class Done:
    """One operation of a text: what was asked, and what came back."""
    asked: str = ""
    returned: str | None = None  # None: it did not return


@dataclasses.dataclass
class Difference:
    key: str
    native: Done
    ours: Done
    errors: str

    def signature(self) -> tuple:
        """Two of one signature are probably the same mistake."""
        name = self.native.asked.split(" ")[0]
        if self.ours.returned is None:
            return name, "did not return", *(re.sub(r"0x[0-9a-f]+|\d\d+", "N", line) for line in self.errors.splitlines()[-1:])
        one, other = (self.native.returned or "").split(), self.ours.returned.split()
        at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
        advice = [word for word in one if word.startswith("advice=")]
        def kind(words: list[str]) -> str:
            word = words[at] if at < len(words) else "nothing"
            name, _, value = word.partition("=")
            return name if value.lstrip("-").isdigit() and len(value) > 3 or name in ("sum", "value", "child", "thread") else word
        return name, *advice[:1], kind(one), kind(other)


class Torture:
    def __init__(self, build: pathlib.Path, place: pathlib.Path, kind: str, memory: str, more: list[str], without: list[str]):
        self.build, self.place, self.kind = build, place, kind
        self.made = build / "tests" / "torture"
        self.made.mkdir(parents=True, exist_ok=True)
        self.without = sorted({*without, *documented.left_out(kind)})
        self.native = self._compile("clang++-19", "native")
        program = self.native
        if kind in RECOMPILED:
            program = self._compile(str(build / "bin" / "spillway-clang++"), kind, f"-fspillway-engine={kind}")
        (place / "store").mkdir(exist_ok=True)
        self.under = [build / "bin" / "spillway", "run", "--memory", memory, "--store", place / "store", "--stats", place / "stats.json",
                      *KINDS[kind][0], *more, "--", program]

    def _compile(self, compiler: str, name: str, *flags: str) -> pathlib.Path:
        target = self.made / f"mmtorture_{name}"
        newest = max(file.stat().st_mtime for file in [*SOURCES, *HERE.glob("*.h")])
        if name != "native":
            newest = max(newest, (self.build / "lib" / "spillway_pass.so").stat().st_mtime)
        if not target.exists() or target.stat().st_mtime < newest:
            part = target.with_suffix(f".{os.getpid()}")  # two that make it at a time
            subprocess.run([compiler, *FLAGS, *flags, *map(str, SOURCES), "-o", str(part)], check=True)
            part.rename(target)
        return target

    def run(self, sequence: Sequence, ours: bool, every: int, text_from: int | None = None) -> Run:
        """Text goes to the file text_of(ours)."""
        command = [*(self.under if ours else [self.native]), "--seed", sequence.seed, "--operations", sequence.count, "--every", every,
                   "--directory", self.place]
        if self.without:
            command += ["--without", ",".join(self.without)]
        if sequence.only is not None:
            only = self.place / "only"
            only.write_text("\n".join(map(str, sequence.only)))
            command += ["--only", only]
        if sequence.inner is not None:
            number, who, kept = sequence.inner
            command += ["--inner", f"{number}:{who}:{','.join(map(str, kept))}"]
        if text_from is not None:
            command += ["--text", self.text_of(ours), "--text-from", text_from]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace", cwd=self.place, env=kept | (KINDS[self.kind][1] if ours else {}), start_new_session=True)
        try:
            output, errors = process.communicate(timeout=LIMIT_S + sequence.count / OPERATIONS_PER_S_MIN)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            code, errors = None, errors + "mmtorture: took too long"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # children that were left behind
        return Run(code, output.splitlines(), errors)

    def text_of(self, ours: bool) -> pathlib.Path:
        return self.place / ("ours.text" if ours else "native.text")

    def operations(self, ours: bool) -> dict[str, Done]:
        """Of the latest run with text."""
        found: dict[str, Done] = {}
        for line in self.text_of(ours).read_text(errors="replace").splitlines():
            key, _, rest = line[1:].partition(" ")
            operation = found.setdefault(key, Done())
            if line.startswith(">"):
                operation.asked = rest
            else:
                operation.returned = rest
        return found

    def differing_hash(self, sequence: Sequence, every: int) -> tuple[int | None, Run]:
        """How many operations have been carried out when the hashes first differ; None: they are the same."""
        native, ours = self.run(sequence, False, every), self.run(sequence, True, every)
        if not native.ended():
            raise RuntimeError(f"the native program failed: exit code {native.code}: {native.errors[-TEXT_SHOWN:]}")
        if native.lines == ours.lines and ours.ended():
            return None, ours
        same = next((at for at, line in enumerate(native.lines) if ours.lines[at:at + 1] != [line]), len(native.lines))
        return min((same + 1) * every, sequence.count), ours

    def first_difference(self, sequence: Sequence, text_from: int = 0) -> Difference | None:
        """By text, of another run."""
        native, ours = self.run(sequence, False, 1 << 60, text_from), self.run(sequence, True, 1 << 60, text_from)
        ours_by_key = self.operations(True)
        differing = [(key, done, ours_by_key.get(key, Done())) for key, done in self.operations(False).items()
                     if done != ours_by_key.get(key, Done(done.asked))]
        # What threads and children do is written before what waits for them, whose result is only their sum.
        inner = [one for one in differing if one[2].returned is None or not one[1].asked.startswith(("start_threads", "have_a_child", "fork_beside"))]
        for key, one, other in sorted(inner or differing, key=lambda found: order_of(found[0])):
            if other.returned is None and other.asked == "":
                continue  # never begun: something before it ended the program
            return Difference(key, one, other, ours.errors[-TEXT_SHOWN:])
        if not ours.ended():
            return Difference("end", Done("end", "0"), Done("end", str(ours.code)), ours.errors[-TEXT_SHOWN:])
        return None


def order_of(key: str) -> tuple:
    return tuple(int(part) if part.isdigit() else 0 for part in key.replace("t", "").split("."))
