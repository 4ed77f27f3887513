"""What it costs that the store is not believed. `./dev bench trust`, or see --help. A fast device shows the most: --store.

  checksums    the share of the processor's samples (perf) that are in their functions
  encryption   the same of --encrypt, with the library's
  beside       both as whole runs, processor time beside --checksums off: turns of both sides by turns, the median of ratios;
               `spread`: half of the turns lie within it

Random reads and updates of four times the cap, recompiled and not. A share by samples has the time that a function waits
for memory which whoever uses the page next finds in the processor's caches, so it is rather too large.
"""
import dataclasses
import re
import sys

from harness import command, process, shares
from harness.programs import Programs
from harness.report import Report

MIB = 1 << 20
CAP = 128 * MIB
TURNS = 25
CHECKSUMS_MAX, ENCRYPTION_MAX = 0.03, 0.15
# Kernels of examples/micro: name, operations a run.
KERNELS = (("random-read", 400_000), ("random-update", 200_000))
VARIANTS = (("native", "as it is"), ("mapped", "recompiled"))
CHECKSUMS = re.compile(r"\b(checksum_\w+|PageSums|CheckedStore)\b")
ENCRYPTION = re.compile(r"\b(aes_gcm_\w+|EncryptedStore|PageCipher|PageTable)\b")


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1
    turns: int = TURNS

    def words(self, variant: str, kernel: str, operations: int, *options: str) -> list:
        return [self.programs.spillway_command, "run", "--quiet", "--memory", CAP // self.scale, "--store", self.programs.store,
                *options, "--", self.programs.build / "examples" / variant / "micro", kernel, "--bytes", 4 * CAP // self.scale,
                "--ops", operations, "--rounds", 1, "--warmups", 1, "--threads", 1]


def _shares(bench: Bench, section: str, pattern: re.Pattern, target: float, *options: str) -> None:
    if why_not := shares.why_not():
        return bench.skip(section, why_not)

    def one(name: str, words: list) -> float | None:
        run, by_function = shares.samples(words, bench.programs.store, bench.programs.grouped)
        if not run.ok:
            return bench.failure(section, name, run.why_failed())
        return shares.share_of(pattern, by_function) or bench.failure(section, name, "no sample is there: are there other names now?")

    for variant, name in VARIANTS:
        for kernel, operations in KERNELS:
            words = bench.words(variant, kernel, operations, *options)
            shares.add_median(bench, section, f"{name}, {kernel}", lambda: one(f"{name}, {kernel}", words), target)


def checksums(bench: Bench) -> None:
    _shares(bench, "checksums", CHECKSUMS, CHECKSUMS_MAX)


def encryption(bench: Bench) -> None:
    _shares(bench, "encryption", ENCRYPTION, ENCRYPTION_MAX, "--encrypt=on")


def beside(bench: Bench) -> None:
    for what, options, target in (("checksums", "--checksums=on", 1 + CHECKSUMS_MAX), ("encryption", "--encrypt=on", 1 + ENCRYPTION_MAX)):
        for variant, name in VARIANTS:
            for kernel, operations in KERNELS:
                words = {True: bench.words(variant, kernel, operations, options),
                         False: bench.words(variant, kernel, operations, "--checksums=off")}
                shares.add_compared(bench, "beside", f"{what}: {name}, {kernel}",
                                    lambda has_it: process.run(words[has_it], bench.programs.store, grouped=bench.programs.grouped),
                                    bench.turns, target)


SECTIONS = {"checksums": checksums, "encryption": encryption, "beside": beside}


def main(arguments: list[str]) -> int:
    made = command.parser("trust", __doc__, SECTIONS, None)
    command.add_scale(made)
    made.add_argument("--turns", type=int, default=TURNS, metavar="N", help=f"turns of both sides [{TURNS}]")
    options = made.parse_args(arguments)
    if options.turns < 2:
        made.error("--turns: at least 2, or there is no spread")
    return command.run(options, {"trust": f"{options.turns} turns"}, 8 * CAP // options.scale,
                       lambda programs: Bench("trust", programs=programs, scale=options.scale, turns=options.turns), SECTIONS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
