"""The example programs in their builds (`native`, `spillway`, `mapped`, `counted`), and how to start them."""
import json
import pathlib
import subprocess
import sys

from . import process

# OpenMP's threads spin while they wait, which would be counted as their program's processor time.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}
# As builds: the native one with --faults so. Its threads serve their own faults in a handler of SIGBUS, or threads of
# Spillway's do; also in files that are only read, which by default have no such faults (--mapped-reads).
SIGNALS, EVENTS = "signals", "threads"
FAULTS = (SIGNALS, EVENTS)
ALLOWANCE_BYTES = 32 << 20  # on top of a cap, for code, stacks and small allocations; a benchmark may choose another


class Programs:
    """Native and recompiled programs of one build tree. `store`: the directory whose disk is measured."""

    def __init__(self, build: pathlib.Path, store: pathlib.Path, grouped: bool):
        self.build = build
        self.store = store
        self.grouped = grouped
        self.allowance_bytes = ALLOWANCE_BYTES
        self.spillway_command = build / "bin" / "spillway"

    def path(self, build: str, name: str) -> pathlib.Path:
        path = self.build / "examples" / build / name
        if not path.exists():
            sys.exit(f"{path} is missing: ./dev build makes it")
        return path

    def why_not_spillway(self) -> str | None:
        for needed in (self.spillway_command, self.build / "examples" / "spillway" / "terasort"):
            if not needed.exists():
                return f"{needed} was not built"
        return None

    def why_not_build(self, build: str) -> str | None:
        """None where programs can run so, otherwise the reason: not every kernel and `spillway` can serve faults so."""
        if build not in FAULTS:
            return None
        command = [self.spillway_command, "run", "--memory", "64M", "--store", self.store, "--faults", build]
        tried = subprocess.run([*command, "--", "true"], capture_output=True, text=True, check=False)
        return None if tried.returncode == 0 else tried.stderr.strip() or f"exit status {tried.returncode}"

    def limit(self, cap_bytes: int) -> int | None:
        """Of the control group in which each side of a comparison runs; None where there can be no such group. Seen from
        there, --memory is the limit less the allowance, as one chooses it who has that much in all."""
        return cap_bytes + self.allowance_bytes if self.grouped else None

    def file_arrays(self) -> dict:
        """The environment in which a native program's large arrays are mapped files in the store's directory."""
        return {"LD_PRELOAD": str(self.build / "bench" / "file_arrays.so"), "SPILLWAY_BENCH_ARRAYS": str(self.store)}

    def native(self, name: str, *arguments, environment: dict | None = None, **options) -> process.Result:
        return process.run([self.path("native", name), *arguments], self.store, grouped=self.grouped,
                           environment=ENVIRONMENT | (environment or {}), **options)

    def spillway(self, memory_bytes: int, name: str, *arguments, block: str = "auto", build: str = "spillway",
                 map_files: pathlib.Path | None = None, options: tuple = (), **limits) -> tuple[process.Result, dict]:
        """The result, and the runtime's counters. build `native` or of FAULTS: an unmodified program, whose mappings
        of `map_files` are managed too, as those of recompiled programs are. options: more of `spillway run`'s."""
        more = [*options, *(["--faults", build, "--mapped-reads", "cache"] if build in FAULTS else [])]
        build = "native" if build in FAULTS else build
        stats_file = self.store / "stats.json"
        stats_file.unlink(missing_ok=True)
        command = [self.spillway_command, "run", "--memory", memory_bytes, "--store", self.store, "--block", block,
                   f"--stats={stats_file}", *(["--map-files", map_files] if map_files and build == "native" else []), *more, "--",
                   self.path(build, name), *arguments]
        result = process.run(command, self.store, grouped=self.grouped, environment=ENVIRONMENT, **limits)
        try:
            stats = json.loads(stats_file.read_text())
        except (OSError, json.JSONDecodeError):
            stats = {}
        return result, stats.get("counters", stats)
