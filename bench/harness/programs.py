"""The example programs in both builds, and how to start them."""
import json
import pathlib
import sys

from . import process

# OpenMP's threads spin while they wait, which would be counted as their program's processor time.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}


class Programs:
    """Native and recompiled programs of one build tree. `store`: the directory whose disk is measured."""

    def __init__(self, build: pathlib.Path, store: pathlib.Path, grouped: bool):
        self.build = build
        self.store = store
        self.grouped = grouped
        self.spillway_command = build / "bin" / "spillway"

    def path(self, variant: str, name: str) -> pathlib.Path:
        path = self.build / "examples" / variant / name
        if not path.exists():
            sys.exit(f"{path} is missing: ./dev build makes it")
        return path

    def why_not_spillway(self) -> str | None:
        for needed in (self.spillway_command, self.build / "examples" / "spillway" / "terasort"):
            if not needed.exists():
                return f"{needed} was not built"
        return None

    def native(self, name: str, *arguments, **options) -> process.Result:
        return process.run([self.path("native", name), *arguments], self.store, grouped=self.grouped,
                           environment=ENVIRONMENT, **options)

    def spillway(self, memory_bytes: int, name: str, *arguments, block: str = "4K", **options
                 ) -> tuple[process.Result, dict]:
        """The result, and the runtime's counters."""
        stats_file = self.store / "stats.json"
        stats_file.unlink(missing_ok=True)
        command = [self.spillway_command, "run", "--memory", memory_bytes, "--store", self.store, "--block", block,
                   f"--stats={stats_file}", "--", self.path("spillway", name), *arguments]
        result = process.run(command, self.store, grouped=self.grouped, environment=ENVIRONMENT, **options)
        try:
            stats = json.loads(stats_file.read_text())
        except (OSError, json.JSONDecodeError):
            stats = {}
        return result, stats.get("counters", stats)
