"""Where a program's memory calls may do something else than natively, since it is documented: what is left out of the sequences, for each
kind of program, and why. Names are those of operations (the tables in the sources beside this) and of what allowed() is asked for there.

Nothing else is left out or forgiven.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    kinds: tuple[str, ...]
    reason: str


RULES = (
    Rule("have_a_child", ("translated",), "spillway-regions(7), fork: a child that touches managed memory is refused in the translated engine"),
)


def left_out(kind: str) -> list[str]:
    return [rule.name for rule in RULES if kind in rule.kinds]
