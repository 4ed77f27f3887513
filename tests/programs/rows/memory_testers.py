"""Programs that test memory: they say themselves whether every byte is what it was."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from row import Needs, Row  # noqa: E402

STRESS_MIB = 144
SECONDS = "8"  # then it ends, after what it is at
# Each goes through all memory many times; these are different ways of doing so.
METHODS = ("flip", "gray", "incdec", "mscan", "prime-gray-0", "rand-set", "ror", "swap", "walk-1a", "zero-one")


def stress(name: str, about: str, *stressor: str, cap_mib: int = 32, **of_row) -> Row:
    return Row(name=f"stress_ng_{name}", about=about, command=("stress-ng", *stressor, "--verify", "--quiet", "--timeout", SECONDS),
               needs=Needs(debian=("stress-ng",)), version=("stress-ng", "--version"), cap_mib=cap_mib, data_mib=STRESS_MIB,
               **of_row)


ROWS = [
    *(stress(method.replace("-", "_"), f"method {method} on {STRESS_MIB} MiB, with --verify", "--vm", "1", "--vm-bytes",
             f"{STRESS_MIB}M", "--vm-keep", "--vm-method", method, short=method == "zero-one")
      for method in METHODS),
    stress("mmap", f"maps, protects, advises and unmaps {STRESS_MIB} MiB, with --verify", "--mmap", "1", "--mmap-bytes",
           f"{STRESS_MIB}M"),
    stress("malloc", f"allocates, resizes and frees up to {STRESS_MIB} MiB, with --verify", "--malloc", "1", "--malloc-bytes",
           f"{STRESS_MIB}M", "--malloc-max", "256", "--malloc-touch"),
    stress("mremap", f"moves and resizes {STRESS_MIB} MiB, with --verify", "--mremap", "1", "--mremap-bytes",
           f"{STRESS_MIB}M"),
    # The mask: random values and one kind of sums, after stuck addresses; others go through it hundreds of times.
    Row(name="memtester", about="tests 96 MiB for stuck addresses, random values and sums",
        command=("sh", "-c", "\"$@\" > all && grep -c ok all", "sh", "{spillway}", "memtester", "96M", "1"), environment=(("MEMTESTER_TEST_MASK", "9"),),
        needs=Needs(debian=("memtester",)), version=("memtester", "--version"), cap_mib=24, data_mib=96,
        remark="it locks what it tests, of which half the cap may be locked: it takes as much as it gets (9 MiB), and tests that"),
]
