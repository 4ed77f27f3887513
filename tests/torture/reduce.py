"""Taking out of a sequence what a difference does not need."""
import dataclasses
import re
from collections.abc import Callable

from runs import Difference, Sequence, Torture

SLOT = re.compile(r"\b(?:slot|to)=(\d+)")
TRIALS_MAX = 120
LINES_SHOWN = 30


@dataclasses.dataclass
class Found:
    difference: Difference
    sequence: Sequence
    operations: list[str]


class Reduction:
    def __init__(self, torture: Torture, sequence: Sequence, wanted: Difference):
        self.torture, self.sequence, self.wanted = torture, sequence, wanted
        self.trials = 0
        self.best: Difference = wanted

    def shows(self, sequence: Sequence) -> bool:
        """Whether these operations alone show the same difference, at the same operation."""
        self.trials += 1
        found = self.torture.first_difference(sequence)
        same = found is not None and found.signature() == self.wanted.signature() and found.key == self.wanted.key
        if same:
            self.best, self.sequence = found, sequence
        return same

    def without_chunks(self, numbers: tuple[int, ...], sequence_of: Callable[[tuple[int, ...]], Sequence]) -> None:
        """Zeller's delta debugging, with complements only: the last operation is the one that shows it, and stays."""
        parts = 2
        while len(numbers) > 1 and self.trials < TRIALS_MAX:
            size = max(1, (len(numbers) - 1 + parts - 1) // parts)
            for begin in range(0, len(numbers) - 1, size):
                kept = numbers[:begin] + numbers[min(begin + size, len(numbers) - 1):]
                if self.trials < TRIALS_MAX and self.shows(sequence_of(kept)):
                    numbers, parts = kept, max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts *= 2

    def only(self, numbers: tuple[int, ...]) -> Sequence:
        return dataclasses.replace(self.sequence, count=len(numbers), only=numbers)

    def within(self) -> None:
        """Of threads or a child, if one of their operations shows it."""
        number, _, rest = self.wanted.key.partition(".")
        who, _, last = rest.partition(".")
        if last.isdigit():
            def sequence_of(kept: tuple[int, ...]) -> Sequence:
                return dataclasses.replace(self.sequence, inner=(int(number), who, kept))
            everything = tuple(range(int(last) + 1))
            if self.shows(sequence_of(everything)):
                self.without_chunks(everything, sequence_of)


def reduced(torture: Torture, sequence: Sequence, difference: Difference) -> Found:
    if difference.key == "end":
        return Found(difference, sequence, [])
    last = int(difference.key.split(".")[0])
    numbers = tuple(range(last + 1))
    reduction = Reduction(torture, sequence, difference)
    if not reduction.shows(reduction.only(numbers)):
        return Found(difference, Sequence(sequence.seed, last + 1), ["not every time; not reduced"])
    # Mostly only what was done to the same slots matters.
    asked = torture.operations(False)
    slots = set(SLOT.findall(difference.native.asked))
    likely = tuple(number for number in numbers if number == last or slots & set(SLOT.findall(asked[str(number)].asked)))
    if len(likely) < len(numbers) and slots and reduction.shows(reduction.only(likely)):
        numbers = likely
    reduction.within()
    reduction.without_chunks(numbers, reduction.only)
    reduction.within()
    reduction.shows(reduction.sequence)
    asked, ours = torture.operations(False), torture.operations(True)
    lines = []
    for key, done in asked.items():
        other = ours.get(key)
        lines.append(f"{key} {done.asked} -> {done.returned}" + ("" if other == done else f"   OURS {other.returned if other else None}"))
    if len(lines) > LINES_SHOWN:
        lines = [*lines[:LINES_SHOWN], f"... and {len(lines) - LINES_SHOWN} more"]
    return Found(reduction.best, reduction.sequence, lines)
