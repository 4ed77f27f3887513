"""Taking out of a sequence what a difference does not need."""
import dataclasses
import re

from runs import Difference, Sequence, Torture

SLOT = re.compile(r"\b(?:slot|to)=(\d+)")
TRIALS_MAX = 300


@dataclasses.dataclass
class Found:
    difference: Difference
    sequence: Sequence
    operations: list[str]


class Reduction:
    def __init__(self, torture: Torture, seed: int, wanted: Difference):
        self.torture, self.seed, self.wanted = torture, seed, wanted
        self.trials = 0
        self.best: Difference = wanted

    def shows(self, numbers: list[int]) -> bool:
        """Whether these operations alone show the same difference, at the same operation."""
        self.trials += 1
        found = self.torture.first_difference(Sequence(self.seed, len(numbers), tuple(numbers)))
        same = found is not None and found.signature() == self.wanted.signature() and found.key == self.wanted.key
        if same:
            self.best = found
        return same

    def without_chunks(self, numbers: list[int]) -> list[int]:
        """Zeller's delta debugging, with complements only: the last operation is the one that shows it, and stays."""
        parts = 2
        while len(numbers) > 1 and self.trials < TRIALS_MAX:
            size = max(1, (len(numbers) - 1 + parts - 1) // parts)
            for begin in range(0, len(numbers) - 1, size):
                kept = numbers[:begin] + numbers[min(begin + size, len(numbers) - 1):]
                if self.trials < TRIALS_MAX and self.shows(kept):
                    numbers, parts = kept, max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts *= 2
        return numbers


def reduced(torture: Torture, sequence: Sequence, difference: Difference) -> Found:
    if difference.key == "end":
        return Found(difference, sequence, [])
    last = int(difference.key.split(".")[0])
    numbers = list(range(last + 1))
    reduction = Reduction(torture, sequence.seed, difference)
    if not reduction.shows(numbers):
        return Found(difference, Sequence(sequence.seed, last + 1), ["not every time; not reduced"])
    # Mostly only what was done to the same slots matters.
    asked = torture.operations(False)
    slots = set(SLOT.findall(difference.native.asked))
    likely = [number for number in numbers if number == last or slots & set(SLOT.findall(asked[str(number)].asked))]
    if len(likely) < len(numbers) and slots and reduction.shows(likely):
        numbers = likely
    numbers = reduction.without_chunks(numbers)
    reduction.shows(numbers)
    asked, ours = torture.operations(False), torture.operations(True)
    lines = []
    for key, done in asked.items():
        other = ours.get(key)
        lines.append(f"{key} {done.asked} -> {done.returned}" + ("" if other == done else f"   OURS {other.returned if other else None}"))
    return Found(reduction.best, Sequence(sequence.seed, len(numbers), tuple(numbers)), lines)
