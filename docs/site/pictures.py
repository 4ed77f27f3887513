#!/usr/bin/env python3
"""The drawings of docs/guide: pictures.py [--check]. Writes docs/guide/pictures; --check: says which are stale."""

import pathlib
import sys

sys.dont_write_bytecode = True
from drawing import Drawing  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "guide/pictures"


def one_access() -> Drawing:
    picture = Drawing(
        "access",
        560,
        "One access: found in the program's own code, in the thread's table, in the shared cache, or on the "
        "store, each slower than the one before.",
    )
    picture.box(20, 16, 470, 44, "c", "sum += a[i]", "a load, a store or an atomic of the program")
    rows = [
        (
            104,
            "c",
            "Is it at hand?",
            "mapped: the page table, or a hint of one byte",
            "translated: the direct SATC, compiled in line",
            62,
        ),
        (206, "c", "Does this thread hold it?", "a raw address from before, or a pin in its private SATC", "", 48),
        (294, "a", "Is it in a frame?", "block table: a probe without a lock, one compare-and-swap to pin", "", 48),
        (382, "a", "Take a frame", "the partition's owner: a free one, or a clean victim from the reserve", "", 48),
        (470, "b", "Read the block", "by the thread that missed; never written before: zeros, no read", "", 48),
    ]
    answers = [
        ("yes: a load and a test", "or the instruction alone"),
        ("yes: a call", "no lock, no line that others write"),
        ("yes: a reference is counted", "nothing is copied"),
        None,
        ("one system call, one sleep", "4.5 us of a processor in all"),
    ]
    for (y, kind, head, first, second, height), answer in zip(rows, answers):
        lines = [line for line in (head, first, second) if line]
        picture.box(20, y, 470, height, kind, *lines)
        if answer:
            picture.arrow((490, y + height / 2), (560, y + height / 2), kind="a-line")
            picture.text(570, y + height / 2 - 3, answer[0], size=12.5)
            picture.text(570, y + height / 2 + 13, answer[1], soft=True, size=11.5)
    for y1, y2, label in (
        (60, 104, ""),
        (166, 206, "no"),
        (254, 294, "no"),
        (342, 382, "no: a miss"),
        (430, 470, "outside of every lock"),
    ):
        picture.arrow((255, y1), (255, y2), label=label)
    picture.text(
        20,
        545,
        "What asks (indigo) is the thread's own; memory (green) is shared; the store (orange) is the disk.",
        soft=True,
        size=11.5,
    )
    return picture


def placed_loose() -> Drawing:
    picture = Drawing(
        "placed",
        418,
        "Blocks that are placed lie at their own address, loose ones in the pool, where recompiled code reaches "
        "them; all others are on the store.",
    )
    left, width = 160, 72
    rows = (
        (84, "Managed space", "16 TiB of addresses"),
        (214, "Pool of frames", "one memory file"),
        (344, "Store", "a place for each block"),
    )
    for y, name, about in rows:
        picture.text(20, y + 15, name, bold=True)
        picture.text(20, y + 31, about, soft=True, size=11.5)
    placed, none, loose = "a", "none-", "a"
    picture.cells(left, 84, width, [placed, none, placed, none, none, placed, none, none], list("ABCDEFGH"), 34)
    picture.cells(left, 214, width, [none, loose, none, loose, none, none, none, none], ["", "B", "", "D"], 34)
    picture.cells(left, 344, width, ["b"] * 8, list("ABCDEFGH"), 34)
    picture.box(100, 14, 140, 42, "c", "any code", "libc, wheels, kernel")
    picture.arrow((190, 56), (190, 84), label="a plain load", at=(115, 75), kind="c-line")
    picture.box(256, 14, 230, 42, "c", "recompiled code", "asks: the hint says “not here”")
    picture.arrow((280, 56), (280, 214), label="gets a raw address:", at=(288, 150), kind="c-line")
    picture.text(288, 165, "nothing is mapped", soft=True, size=11.5)
    picture.arrow((412, 214), (412, 118), label="used 16 times, or a fault: placed", at=(420, 202), kind="a-line")
    picture.arrow((484, 344), (484, 248), label="a miss reads E: loose, or at", at=(492, 290), kind="b-line")
    picture.text(492, 305, "once placed for a fault", soft=True, size=11.5)
    picture.arrow(
        (196, 118), (196, 344), label="dirty blocks are written back", at=(204, 290), kind="b-line", dashed=True
    )
    picture.text(
        20,
        404,
        "A, C and F are placed, B and D are loose: together, what the cap allows. A dashed cell takes no memory.",
        soft=True,
        size=11.5,
    )
    return picture


def eviction() -> Drawing:
    picture = Drawing(
        "evict",
        386,
        "Clock2Q+: new blocks prove themselves before they enter main; dirty candidates are written behind, "
        "clean ones wait in the reserve until a miss takes their frame.",
    )
    picture.text(20, 24, "Who leaves (Clock2Q+, one bit of use a frame)", bold=True)
    picture.box(20, 48, 100, 52, "d", "a miss", "fills a frame")
    picture.box(170, 48, 120, 52, "a", "new", "the window")
    picture.box(350, 48, 120, 52, "a", "old", "still on trial")
    picture.box(560, 48, 180, 52, "a", "main", "a CLOCK: used lately stays")
    picture.arrow((120, 74), (170, 74))
    picture.arrow((290, 74), (350, 74), label="uses forgotten", at=(294, 40))
    picture.arrow((470, 74), (560, 74), label="used again", middle=True)
    picture.arrow(
        (410, 100),
        (410, 160),
        (95, 160),
        (95, 206),
        label="not used, while trial has more than its share",
        at=(110, 152),
        kind="a-line",
    )
    picture.arrow(
        (650, 100),
        (650, 180),
        (125, 180),
        (125, 206),
        label="else: the hand finds one not used",
        at=(440, 172),
        kind="a-line",
    )
    picture.box(20, 206, 150, 56, "a", "candidates", "offered ahead of need")
    picture.box(220, 206, 170, 56, "b", "dirty: written behind", "with dirty neighbours")
    picture.box(440, 206, 120, 56, "a", "reserve", "clean, can go now")
    picture.box(610, 206, 110, 56, "d", "the next miss", "takes the frame")
    picture.arrow((170, 234), (220, 234))
    picture.arrow((390, 234), (440, 234), label="done")
    picture.arrow((560, 234), (610, 234))
    picture.arrow((95, 262), (95, 290), (500, 290), (500, 262), label="clean: at once", at=(250, 284))
    picture.box(610, 300, 110, 44, "none", "ghosts", "numbers only", dashed=True)
    picture.arrow((665, 262), (665, 300), label="remembered", at=(658, 285), end=True)
    picture.arrow((720, 322), (750, 322), (750, 74), (740, 74), kind="soft", dashed=True)
    picture.text(602, 326, "missed again soon: straight to main", end=True, soft=True, size=11.5)
    picture.text(
        20,
        372,
        "A scan passes through window and trial and leaves; what main holds survives. Misses seldom wait for a write.",
        soft=True,
        size=11.5,
    )
    return picture


def two_ways() -> Drawing:
    picture = Drawing(
        "ways",
        434,
        "Two engines: in the mapped one an address is memory, found by the page table; in the other it is a name, "
        "which compiled-in code looks up. Below them everything is shared.",
    )
    for x, head, sub in ((20, "Mapped", "an address is memory"), (395, "Translated", "an address is a name")):
        picture.text(x, 24, head, bold=True, size=15)
        picture.text(x + (76 if head == "Mapped" else 100), 24, sub, soft=True)
    picture.box(20, 40, 160, 44, "c", "as it is", "any binary")
    picture.box(200, 40, 145, 44, "c", "recompiled", "spillway-clang")
    picture.box(395, 40, 180, 44, "c", "recompiled", "spillway-clang")
    picture.box(595, 40, 145, 44, "c", "other libraries", "not recompiled")
    picture.box(20, 130, 160, 58, "d", "page table", "a miss is a fault", "SIGBUS, userfaultfd")
    picture.box(200, 130, 145, 58, "a", "hint byte", "per 4 KiB: is it here?", "else a call, no fault")
    picture.box(395, 130, 180, 58, "a", "direct SATC", "inline, per thread", "then a private SATC of pins")
    picture.box(595, 130, 145, 58, "d", "aliases", "a fault maps the frame", "a second time")
    for x in (100, 272, 485, 667):
        picture.arrow((x, 84), (x, 130), kind="c-line")
    for x, label in ((100, "11.5 us"), (272, "4.5 us"), (485, "a call"), (667, "a fault")):
        picture.arrow((x, 188), (x, 238), label=label, at=(x + 8, 218))
    picture.box(
        20,
        238,
        720,
        62,
        "a",
        "shared cache",
        "block table, pin words, partitions with one owner each, Clock2Q+, write-back, read-ahead",
    )
    picture.arrow((380, 300), (380, 336), both=True)
    picture.box(
        20, 336, 720, 44, "b", "store", "a spill file, your files, striped or sparse stores, network block devices"
    )
    picture.text(
        20,
        402,
        "Microseconds: a processor's for a miss of 4 KiB, 3.3 of them the read itself (docs/SCALING.md).",
        soft=True,
        size=11.5,
    )
    picture.text(
        20,
        420,
        "While everything fits neither is in the way: memory is the kernel's, and code runs as it was optimised.",
        soft=True,
        size=11.5,
    )
    return picture


def process_tree() -> Drawing:
    picture = Drawing(
        "tree",
        408,
        "All processes below one spillway run share one cap, by a ledger; what was spilled before a fork is shared "
        "by both sides, what is spilled later is each one's own.",
    )
    picture.box(230, 14, 300, 40, "c", "spillway run --memory 4G -- prog", bold=True)
    picture.box(300, 96, 160, 44, "c", "parent", "granted 2.6 G")
    picture.box(60, 186, 160, 44, "c", "worker 1", "granted 0.9 G")
    picture.box(300, 186, 160, 44, "c", "worker 2", "granted 0.4 G")
    picture.box(540, 186, 160, 44, "c", "worker 3", "has touched nothing yet", dashed=True)
    picture.arrow((380, 54), (380, 96), label="exec", kind="c-line")
    picture.arrow((300, 118), (140, 118), (140, 186), label="fork", at=(200, 110), kind="c-line")
    picture.arrow((380, 140), (380, 186), label="fork", kind="c-line")
    picture.arrow((460, 118), (620, 118), (620, 186), label="fork", at=(540, 110), kind="c-line")
    picture.box(
        20,
        264,
        720,
        50,
        "a",
        "ledger: cap = free + what all are granted",
        "who needs more takes what is free; who needs less, or has the older pages, gives",
    )
    for x in (140, 380):
        picture.arrow((x, 230), (x, 264), both=True, kind="a-line")
    picture.box(20, 340, 340, 40, "b", "layers from before a fork", "read by all sides, written by none")
    picture.box(400, 340, 100, 40, "b", "parent's", "own layer")
    picture.box(520, 340, 100, 40, "b", "worker 1's", "own layer")
    picture.box(640, 340, 100, 40, "b", "worker 2's", "own layer")
    picture.text(
        20,
        400,
        "A process that ends, however it ends, gives back its grant (a lock on its slot goes with it) and its layers.",
        soft=True,
        size=11.5,
    )
    return picture


PICTURES = (one_access, placed_loose, eviction, two_ways, process_tree)


def stale() -> list[str]:
    """Names of drawings that are not what this file makes."""
    names = []
    for make in PICTURES:
        file = FOLDER / f"{make.__name__}.svg"
        if not file.is_file() or file.read_text() != make().svg():
            names.append(file.name)
    return names


def main() -> int:
    if "--check" in sys.argv:
        print("\n".join(stale()) or "all drawings are current")
        return bool(stale())
    FOLDER.mkdir(parents=True, exist_ok=True)
    for make in PICTURES:
        (FOLDER / f"{make.__name__}.svg").write_text(make().svg())
    return 0


if __name__ == "__main__":
    sys.exit(main())
