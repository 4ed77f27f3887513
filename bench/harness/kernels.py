"""Times of programs whose data fits in memory, variant against variant, by turns."""
import dataclasses
import statistics

from . import process


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: str
    arguments: tuple
    data_bytes: int
    target: float = 0
    phases: tuple = ()  # of the program's report, each compared by itself; (): there is only one


@dataclasses.dataclass
class Times:
    wall_s: list[float] = dataclasses.field(default_factory=list)
    processor_s: list[float] = dataclasses.field(default_factory=list)

    @property
    def wall(self) -> float:
        return statistics.median(self.wall_s)

    @property
    def processor(self) -> float:
        return statistics.median(self.processor_s)

    def wall_ratio(self, other: "Times") -> float:
        """Turn by turn, so that what changes from turn to turn is on both sides."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.wall_s, other.wall_s, strict=True))

    def processor_ratio(self, other: "Times") -> float:
        return statistics.median(mine / theirs for mine, theirs in zip(self.processor_s, other.processor_s, strict=True))


class Failed(Exception):
    pass


def _time(report: dict, phase: str) -> tuple[float, float]:
    """(wall, processor) of the part that is compared: a phase, or all timed rounds of a micro benchmark."""
    if phase:
        return report["seconds"][phase], report["processor"][phase]
    return report["seconds"], report["processor_s"] / report["rounds"]


def compare(case: Case, variants: dict, repetitions: int) -> dict[tuple[str, str], Times]:
    """Runs the case by turns with each of `variants` (name to function of a case that returns a process.Result).
    Times by (variant, phase). Raises Failed where a run fails or two differ in their result."""
    times: dict[tuple[str, str], Times] = {}
    checksums = set()
    for _ in range(repetitions):
        for variant, run in variants.items():
            result: process.Result = run(case)
            if not result.ok:
                raise Failed(f"{variant}: {result.why_failed()}")
            checksums.add(result.report["checksum"])
            for phase in case.phases or ("",):
                wall_s, processor_s = _time(result.report, phase)
                of_phase = times.setdefault((variant, phase), Times())
                of_phase.wall_s.append(wall_s)
                of_phase.processor_s.append(processor_s)
    if len(checksums) != 1:
        raise Failed(f"different results: {sorted(checksums)}")
    return times
