#!/usr/bin/env python3
"""GCC's execute torture suite, recompiled with all data managed, beside native runs: gcc_torture_test.py --setup

1,650 small programs, each about a bug that a compiler once had; one that finds something wrong in itself ends by
abort(). What is compared is a program at a level (-O0, -O2), for an engine (translated, mapped), and with its data
either `declared` as it is, or in the `heap`: they keep their data in globals and on the stack, which are not managed,
and a plugin (data_in_heap.cc) moves all of it to the heap at the start of the compilation. A thread beside it (churn.c)
has it evicted before main() and from then on. Each run has to end as the native one of the same flags, and to print the
same, unless that prints something else each time.

Left out, counted and printed with the reason: what clang does not compile, or what does not end with 0 natively (nested
functions, GCC's own features, what GCC leaves out on this target); what ends otherwise natively, too, once its data is
in the heap; and the programs of UNDEFINED below. The sources come from --sources, $GCC_TORTURE_SOURCES or what --setup
downloaded once by apt.

Exit status: 0 all equal, 1 a difference, 2 wrong usage, 77 no sources (the reason is printed).
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import sources  # noqa: E402

COMPILER = "clang-19"
LEVELS, ENGINES, DATA = ("-O0", "-O2"), ("translated", "mapped"), ("heap", "declared")
# GCC 12 takes what was C before 1999 with warnings, and -w silences them.
FLAGS = ("-std=gnu17", "-w", "-Wno-implicit-int", "-Wno-implicit-function-declaration", "-Wno-int-conversion",
         "-Wno-return-mismatch", "-Wno-incompatible-function-pointer-types", "-pthread", "-lm")
ENVIRONMENT = {"SPILLWAY_MEMORY": "8M", "SPILLWAY_THRESHOLD": "1", "SPILLWAY_QUOTA": "0", "SPILLWAY_QUIET": "on"}
COMPILE_LIMIT_S, NATIVE_LIMIT_S, RUN_LIMIT_S = 60, 10, 60
NOT_USED = 77
WORDS_SHOWN = 300
# Programs whose behaviour is undefined, or not the language's to define, and differs by right: name, and why.
UNDEFINED = {}
# What of clang's words is told apart among what it does not compile.
REFUSALS = (("function definition is not allowed here", "nested functions"),
            ("fields must have a constant size", "members of variable size"),
            ("undefined reference", "does not link: calls that only GCC optimises away"),
            ("unsupported option", "options of GCC's"))
# Options that a program asks for, and the target it asks them for.
ASKED = re.compile(r'dg-(?:additional-)?options\s+(?:{\s*)?"([^"]*)"\s*}?\s*({[^\n]*target[^\n]*)?')
# Of these, what names a level, or a step of GCC's optimiser that clang does not have.
DROPPED = re.compile(r"-O|-f(no-)?(tree|expensive|modulo|optimize|ira|vect)-|-mpc64")


class Left(Exception):
    """The program says nothing about us; the text says why."""


class Stopped(Exception):
    """Ctrl-C."""


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    level: str
    engine: str
    data: str

    def __str__(self) -> str:
        return f"{self.name} {self.level} {self.engine} {self.data}"

    def again(self) -> str:
        return (f"tests/gcc_torture/gcc_torture_test.py --only '^{re.escape(self.name)}$' --level={self.level} "
                f"--engine={self.engine} --data={self.data} --keep")


@dataclasses.dataclass(frozen=True)
class Ended:
    code: int | None  # negative: the signal that ended it; None: it took too long
    output: str = ""
    errors: str = ""

    def __str__(self) -> str:
        if self.code is None:
            return "takes too long"
        code = f"signal {-self.code}" if self.code < 0 else f"exit status {self.code}"
        words = " ".join((self.errors or self.output).split())[:WORDS_SHOWN]
        return f"{code}: {words}" if words else code


class Processes:
    """Runs commands, each in a process group of its own that is gone when it has ended; after stop() all are."""

    def __init__(self):
        self._lock = threading.Lock()
        self._groups, self._stopped = set(), False

    def run(self, command: list, limit_s: float, **options) -> Ended:
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                       start_new_session=True, **options)
            self._groups.add(process.pid)
        try:
            output, errors = process.communicate(timeout=limit_s)
            return Ended(process.returncode, output, errors)
        except subprocess.TimeoutExpired:
            self._kill(process.pid)
            process.communicate()
            return Ended(None)
        finally:
            with self._lock:
                self._groups.discard(process.pid)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for group in self._groups:
                self._kill(group)

    @staticmethod
    def _kill(group: int) -> None:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Suite:
    """What is the same for all programs: where they lie, and what is linked to them."""

    def __init__(self, folder: pathlib.Path, build: pathlib.Path, place: pathlib.Path, keep: bool):
        self.folder, self.build, self.place, self.keep = folder, build, place, keep
        self.processes = Processes()
        self.plugin = build / "tests" / "gcc_torture" / "data_in_heap.so"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
        self.environment["TMPDIR"] = str(place)  # of compilers that are ended, too

    def prepare(self, engines: list[str]) -> None:
        for engine in engines:
            made = self.processes.run([*self.spillway_clang(engine), "-O2", "-c", HERE / "churn.c", "-o",
                                       self.churn(engine)], COMPILE_LIMIT_S)
            if made.code != 0:
                sys.exit(f"gcc_torture_test: churn.c for {engine}: {made}")

    def spillway_clang(self, engine: str) -> list:
        return [self.build / "bin" / "spillway-clang", f"-fspillway-engine={engine}"]

    def churn(self, engine: str) -> pathlib.Path:
        return self.place / f"churn_{engine}.o"

    def options_of(self, source: pathlib.Path, level: str) -> list[str]:
        """Flags for the program. What it asks for itself by dg-options is among them, unless it is for another target,
        a level, or unknown to clang."""
        text = source.read_text(errors="replace")
        asked = []
        for words, target in ASKED.findall(text):
            if not target or ("x86_64" in target and "ia32" not in target):
                asked += words.split()
        if source.parent.name == "ieee":
            asked.append("-fno-inline")
        return [*FLAGS, level, *(word for word in asked if not DROPPED.match(word))]

    def compile(self, compiler: list, name: str, level: str, target: pathlib.Path, in_heap: bool = False) -> Ended:
        source = self.folder / name
        plugin = [f"-fpass-plugin={self.plugin}"] if in_heap else []
        return self.processes.run([*compiler, source, *self.options_of(source, level), *plugin, "-o", target],
                                  COMPILE_LIMIT_S, env=self.environment)

    def check(self, name: str, level: str, cases: list[Case]) -> list[tuple[Case, str, str]]:
        """Of each case: it, why it is left out or nothing, what differs or nothing."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self.place))
        try:
            if name in UNDEFINED:
                return [(case, UNDEFINED[name], "") for case in cases]
            try:
                native = self.native(name, level, place)
            except Left as left:
                return [(case, str(left), "") for case in cases]
            return [(case, *self.compare(case, native, place)) for case in cases]
        finally:
            if not self.keep:
                shutil.rmtree(place, ignore_errors=True)

    def native(self, name: str, level: str, place: pathlib.Path) -> Ended:
        made = self.compile([COMPILER], name, level, place / "native")
        if made.code != 0:
            reasons = (f"clang: {reason}" for words, reason in REFUSALS if words in made.errors)
            raise Left(next(reasons, "clang does not compile it"))
        ended = self.processes.run([place / "native"], NATIVE_LIMIT_S, cwd=place, env=self.environment)
        if ended.code != 0:
            raise Left("the native program " + ("takes too long" if ended.code is None else "does not end with 0"))
        return ended

    def compare(self, case: Case, native: Ended, place: pathlib.Path) -> tuple[str, str]:
        program = place / f"{case.engine}_{case.data}"
        compiler = [*self.spillway_clang(case.engine), self.churn(case.engine)]
        in_heap = case.data == "heap"
        made = self.compile(compiler, case.name, case.level, program, in_heap)
        if made.code == 0:
            store = place / "store"
            store.mkdir(exist_ok=True)
            ended = self.processes.run([program], RUN_LIMIT_S, cwd=place,
                                       env=self.environment | ENVIRONMENT | {"SPILLWAY_STORE": str(store)})
            if ended.code == native.code and self.is_output(ended.output, native, place):
                return "", ""
        different = f"does not compile: {made}" if made.code != 0 else str(ended)
        if in_heap and not self.is_same_in_heap(case, native, place):
            return "ends otherwise natively, too, with its data in the heap", ""
        return "", different

    def is_output(self, output: str, native: Ended, place: pathlib.Path) -> bool:
        """Whether it is the native program's, or that prints something else each time: addresses, mostly."""
        if output == native.output:
            return True
        again = self.processes.run([place / "native"], NATIVE_LIMIT_S, cwd=place, env=self.environment)
        return again.output != native.output

    def is_same_in_heap(self, case: Case, native: Ended, place: pathlib.Path) -> bool:
        """Whether the native program with its data in the heap does what the one does that was written."""
        made = self.compile([COMPILER], case.name, case.level, place / "native_heap", in_heap=True)
        if made.code != 0:
            return False
        ended = self.processes.run([place / "native_heap"], NATIVE_LIMIT_S, cwd=place, env=self.environment)
        return ended.code == native.code and self.is_output(ended.output, native, place)


def slice_of(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text}: K/N with 1 <= K <= N, the Kth of every N programs")
    return int(match[1]), int(match[2])


def pattern(text: str) -> re.Pattern:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: no regular expression: {error}") from None


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                        help="build directory [build/release]")
    parser.add_argument("--sources", type=pathlib.Path, help="GCC's gcc/testsuite/gcc.c-torture/execute")
    parser.add_argument("--setup", action="store_true", help="download the sources by apt first, if they are not there")
    parser.add_argument("--only", type=pattern, default="", metavar="REGEX",
                        help="programs of such names, like ieee/ or ^va-arg")
    parser.add_argument("--engine", choices=ENGINES, help="[both]")
    parser.add_argument("--level", choices=LEVELS, help="written as --level=-O2 [both]")
    parser.add_argument("--data", choices=DATA, help="where the program has it [both]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="programs at a time [one for each processor]")
    parser.add_argument("--slice", type=slice_of, default=(1, 1), metavar="K/N", help="the Kth of every N programs")
    parser.add_argument("--keep", action="store_true", help="keep what is compiled, and say where")
    parser.add_argument("--list", action="store_true", help="print every program that is left out, too")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs {arguments.jobs}: at least one")
    for needed in ("bin/spillway-clang", "tests/gcc_torture/data_in_heap.so"):
        if not (arguments.build / needed).exists():
            parser.error(f"there is no {arguments.build / needed}: ./dev build first, or --build")
    return arguments


def folder_of(arguments: argparse.Namespace) -> pathlib.Path:
    cache = ROOT / "build" / "gcc_torture"
    said = arguments.sources or os.environ.get("GCC_TORTURE_SOURCES")
    if said:
        return pathlib.Path(said).resolve()
    if arguments.setup:
        return sources.set_up(cache)
    if not (cache / "execute").is_dir():
        raise sources.NoSources("no sources of GCC's: --setup downloads them (90 MB, by apt), --sources names them")
    return cache / "execute"


def run(suite: Suite, names: list[str], arguments: argparse.Namespace) -> int:
    levels, engines, data = ([one] if one else list(all_of_them) for one, all_of_them in (
        (arguments.level, LEVELS), (arguments.engine, ENGINES), (arguments.data, DATA)))
    suite.prepare(engines)
    left, counts = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        try:
            works = [pool.submit(suite.check, name, level,
                                 [Case(name, level, *rest) for rest in itertools.product(engines, data)])
                     for name in names for level in levels]
            for work in concurrent.futures.as_completed(works):
                for case, why_left, different in work.result():
                    left[why_left] += bool(why_left)
                    counts["left" if why_left else "different" if different else "equal"] += 1
                    if different:
                        print(f"{case}: {different}; to see it: {case.again()}", flush=True)
                    elif why_left and arguments.list:
                        print(f"left out: {case}: {why_left}", flush=True)
        finally:
            suite.processes.stop()
            pool.shutdown(cancel_futures=True)
    reasons = ", ".join(f"{why}: {left[why]}" for why in sorted(left, key=lambda why: (-left[why], why)) if why)
    print(f"{len(names)} program{'' if len(names) == 1 else 's'}, {counts.total()} comparisons: {counts['equal']} equal"
          f", {counts['left']} left out{f' ({reasons})' if reasons else ''}, {counts['different']} different")
    return 1 if counts["different"] or not counts["equal"] else 0


def compare_all(arguments: argparse.Namespace) -> int:
    try:
        folder = folder_of(arguments)
        names = [name for name in sources.programs(folder) if re.search(arguments.only, name)]
    except sources.NoSources as reason:
        print(f"skipped: {reason}")
        return NOT_USED
    first, step = arguments.slice
    names = names[first - 1::step]
    if not names:
        print("gcc_torture_test: no program has such a name", file=sys.stderr)
        return 2
    kept = arguments.build.resolve() / "tests" / "gcc_torture"
    kept.mkdir(parents=True, exist_ok=True)
    place = pathlib.Path(tempfile.mkdtemp(dir=kept))
    try:
        return run(Suite(folder, arguments.build.resolve(), place, arguments.keep), names, arguments)
    finally:
        if arguments.keep:
            print(f"kept: {place}")
        else:
            shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    arguments = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return compare_all(arguments)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    except OSError as error:  # no room, no rights
        print(f"gcc_torture_test: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
