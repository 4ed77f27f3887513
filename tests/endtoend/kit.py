"""Building a program natively and with spillway-clang, running it, and comparing the runs."""
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest
from harness import sources

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
TIME_LIMIT_S = 90
ENGINES = ("translated", "mapped", "unmodified")
THREADS = "threads"
PRELOADED = ("unmodified", THREADS)
# How the runtime ends a program that cannot go on (src/process/fatal.h).
EXIT_USAGE, EXIT_FAILURE = 2, 74


class Wrong(AssertionError):
    """The behaviour under test is not there."""


def expect(condition: bool, what: str) -> None:
    """What an assert says, and no more: pytest adds both values to the text of that one, and here they are what programs print."""
    __tracebackhide__ = True
    if not condition:
        raise Wrong(what)


@contextlib.contextmanager
def skipped_when_unavailable() -> Iterator[None]:
    """Around what needs source packages of Debian."""
    try:
        yield
    except sources.Unavailable as reason:
        pytest.skip(str(reason))


@dataclasses.dataclass(frozen=True)
class Config:
    """One way to compile and to limit a program. Every allocation is managed unless `everything` is off."""
    flags: tuple[str, ...]
    memory: str
    block: str
    delegation: str
    everything: bool = True
    levels: str = "view"

    def environment(self) -> dict[str, str]:
        return {"SPILLWAY_LEVELS": self.levels,
                "SPILLWAY_MEMORY": self.memory, "SPILLWAY_BLOCK": self.block, "SPILLWAY_DELEGATION": self.delegation,
                "SPILLWAY_THRESHOLD": "1" if self.everything else "4K",
                "SPILLWAY_QUOTA": "0" if self.everything else "256K"}

    def __str__(self) -> str:
        return f"{' '.join(self.flags)} memory={self.memory} block={self.block} {self.delegation}" + (
            "" if self.everything else " small objects native") + ("" if self.levels == "view" else f" levels={self.levels}")


SMALL = Config(("-O2",), "8M", "auto", "combining")
UNOPTIMISED = Config(("-O0",), "8M", "4K", "dedicated", levels="all")
MEDIUM = Config(("-O2",), "24M", "64K", "dedicated")
LARGE = Config(("-O2",), "544M", "2M", "combining", levels="all")
WIDE = Config(("-O3", "-march=native"), "8M", "auto", "combining", everything=False)
CONFIGS = (SMALL, UNOPTIMISED, MEDIUM, LARGE)
FITS = Config(("-O2",), "256M", "4K", "combining")
FITS_UNOPTIMISED = Config(("-O0",), "256M", "4K", "dedicated")


@dataclasses.dataclass
class Run:
    code: int  # negative: the signal that ended it
    output: str
    errors: str

    def last_words(self) -> str:
        tail = "\n".join((self.output[-800:], self.errors[-800:])).strip()
        return f"exit code {self.code}, last output:\n{tail}"


class Kit:
    """`place`: this test's own directory, empty at first, on the disk that holds the build. `engine`: how programs are made and
    run: translated and mapped recompile them for that engine, unmodified preloads the library into native ones, and so does threads,
    where threads of the runtime serve the faults instead of those that have them."""

    def __init__(self, build: pathlib.Path, place: pathlib.Path, engine: str):
        self.build = build
        self.engine = engine
        self.place = place
        self.store = place / "store"
        self.store.mkdir()
        self.report_file = place / "report.json"
        self.wants_report = {"SPILLWAY_STATS": str(self.report_file)}
        self.made = build / "tests" / "endtoend" / "programs"
        self.made.mkdir(parents=True, exist_ok=True)

    def needs_userfaultfd(self) -> None:
        if os.environ.get("SPW_USERFAULT") == "none":
            pytest.skip("SPW_USERFAULT=none: this is about userfaultfd")

    def compiler(self, source: str, spillway: bool) -> str:
        cxx = source.endswith(".cc")
        if spillway:
            return str(self.build / "bin" / ("spillway-clang++" if cxx else "spillway-clang"))
        return "clang++-19" if cxx else "clang-19"

    def compile(self, source: str, *flags: str, spillway: bool = True, inputs: tuple[pathlib.Path, ...] = (),
                suffix: str = "") -> pathlib.Path:
        """programs/SOURCE compiled to a program, or with `suffix` .o or .so; kept for later tests while it is fresh."""
        path = HERE / "programs" / source
        # What is linked with several others is compiled once.
        compiled = self.compile(source, *flags, spillway=spillway, suffix=".o") if inputs and not suffix else path
        if self.engine in PRELOADED:
            spillway = False
        if spillway:
            flags = (*flags, f"-fspillway-engine={self.engine}")
        words = ["spillway" if spillway else "native", *flags, *(file.name for file in inputs)]
        target = self.made / ("_".join([path.stem, *words]).replace("/", "_").replace("=", "_") + suffix)
        depends = [path, compiled, *inputs, *(HERE / "programs").glob("*.h")]
        if spillway:
            depends += [self.build / "lib" / "spillway_pass.so", self.build / "bin" / "spillway-clang"]
        with open(self.made / (target.name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.exists() and all(file.stat().st_mtime < target.stat().st_mtime for file in depends):
                return target
            kind = {".o": ["-c"], ".so": ["-shared", "-fPIC"]}.get(suffix, ["-pthread"])
            standard = ["-std=c++20"] if source.endswith(".cc") else ["-std=gnu17"]
            command = [self.compiler(source, spillway), *standard, "-Wall", "-Wno-unused-result", *flags, *kind, str(compiled),
                       *map(str, inputs), "-o", str(target)]
            if "-fopenmp" in flags and suffix != ".o":
                command.append("-Wl,-rpath,/usr/lib/llvm-19/lib")
            done = subprocess.run(command, capture_output=True, text=True)
            expect(done.returncode == 0, f"{' '.join(command)}:\n{done.stderr[-3000:]}")
        return target

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        kept["SPILLWAY_QUIET"] = "on"  # what is on standard error are warnings
        if self.engine in PRELOADED and "SPILLWAY_MEMORY" in more:
            kept |= {"LD_PRELOAD": str(self.build / "lib" / "libspillway.so"), "SPILLWAY_MAP_FILES": "*"}
            if self.engine == THREADS:
                kept["SPILLWAY_FAULTS"] = "threads"
        # SPW_USERFAULT=none pytest …: all of them as where userfaultfd is forbidden.
        if "SPW_USERFAULT" in os.environ:
            kept["SPILLWAY_TEST_USERFAULT"] = os.environ["SPW_USERFAULT"]
        return kept | {"SPILLWAY_STORE": str(self.store), "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "4"} | more

    def run(self, program: pathlib.Path, *arguments, env: dict[str, str] | None = None,
            time_limit_s: float = TIME_LIMIT_S, stdin: str = "") -> Run:
        """Runs the program in `place`; it and what it started are gone afterwards."""
        with start(self, program, *arguments, env=env) as process:
            try:
                output, errors = process.communicate(stdin, timeout=time_limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                raise Wrong(f"{program.name} {' '.join(map(str, arguments))} took longer than {time_limit_s} s; "
                            f"{output[-500:]}{errors[-500:]}") from None
        return Run(process.returncode, output, errors)

    def report(self) -> dict:
        """What the latest run with `wants_report` in its environment wrote when it ended."""
        return json.loads(self.report_file.read_text())

    def _children_that_touch(self, configs: tuple[Config, ...], choice: dict[str, str]) -> Iterator[tuple[Run, str]]:
        """Runs with a forked child that touches managed memory, each in another way, and what they are called."""
        for config in configs:
            program = self.compile("processes.cc", *config.flags)
            for how in (0, 1, 3, 4):
                run = self.run(program, "touch_in_a_child", how, env=config.environment() | choice)
                yield run, f"{how} with {config}: {run.last_words()}"

    def expect_children_end_the_run(self, *configs: Config) -> None:
        """A forked child that touches managed memory ends its parent, too, which does not even see the child end."""
        for run, where in self._children_that_touch(configs, {}):
            expect(run.code == EXIT_FAILURE and "code" not in run.output, where)
            lines = run.errors.splitlines()
            expect(len(lines) == 2 and lines[0].startswith("spillway: a forked child touched managed memory"), where)
            expect(lines[1].startswith("spillway: to go on: ") and "--on-refused-child=go-on" in lines[1], where)

    def expect_children_are_stopped(self, *configs: Config) -> None:
        """A forked child that touches managed memory ends with one line that says so, and its parent goes on if told."""
        for run, where in self._children_that_touch(configs, {"SPILLWAY_ON_REFUSED_CHILD": "go-on"}):
            lines = run.output.splitlines()
            expect(run.code == 0 and len(lines) == 3 and lines[1] == f"code {EXIT_FAILURE}", where)
            expect(lines[0] != lines[2] and lines[2].startswith("words "), where)
            expect(run.errors.count("\n") == 1 and run.errors.startswith("spillway: a forked child touched managed memory"), where)

    def expect_spilled(self, what: str) -> dict:
        """The latest report, of a run whose data did not fit."""
        report = self.report()
        counters = report["counters"]
        expect(all(counters[name] > 0 for name in ("evictions", "fills", "writebacks")), f"{what} fitted: {counters}")
        return report

    def same_as_native(self, source: str, *arguments, configs: tuple[Config, ...] = CONFIGS, flags: tuple[str, ...] = (),
                       inputs: tuple[pathlib.Path, ...] = (), env: dict[str, str] | None = None) -> None:
        """The program prints the same and ends the same in every configuration as natively."""
        native = self.run(self.compile(source, "-O2", *flags, spillway=False, inputs=inputs), *arguments)
        expect(native.code >= 0, f"the native program failed: {native.last_words()}")
        for config in configs:
            program = self.compile(source, *config.flags, *flags, inputs=inputs)
            ours = self.run(program, *arguments, env=config.environment() | (env or {}))
            where = f"{source} {' '.join(map(str, arguments))} with {config}"
            expect(ours.code == native.code, f"{where}: {ours.last_words()}\nnatively {native.code}")
            expect(ours.output == native.output, f"{where} printed\n{ours.output[-1500:]}{ours.errors[-500:]}\n"
                   f"natively\n{native.output[-1500:]}")
            expect(ours.errors == native.errors, f"{where} wrote to standard error\n{ours.errors[-1500:]}")


def program_of(name: str) -> str:
    """The path of somebody else's program, on which the test depends."""
    found = shutil.which(name)
    if not found:
        pytest.skip(f"there is no {name} here")
    return found


@contextlib.contextmanager
def start(kit: Kit, program: pathlib.Path, *arguments, env: dict[str, str] | None = None, group=None):
    """A process group of its own, killed at the end; in the control group `group`, if there is one."""
    process = subprocess.Popen([str(program), *map(str, arguments)], cwd=kit.place, text=True, errors="replace",
                               env=kit.environment(env or {}), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, preexec_fn=group.enter if group else None)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
