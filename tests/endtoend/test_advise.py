"""`spillway advise`: what more memory would be worth."""
import json
import re
import subprocess

import pytest
from kit import EXIT_USAGE, HERE, MIB, SMALL, Kit, expect

pytestmark = pytest.mark.engines("translated", "mapped", "unmodified")


def _advise(kit: Kit, *words) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in kit.environment({}).items() if not name.startswith("SPILLWAY_")}
    return subprocess.run([kit.build / "bin" / "spillway", "advise", *map(str, words)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env=environment, cwd=kit.place)


# 24 MiB, walked through three times: with less nearly all is read again, with as much nothing is.
def test_a_loop_wants_all_of_its_memory(kit: Kit) -> None:
    program = kit.compile("watched.cc", *SMALL.flags)
    files = ("--json", kit.place / "curve.json", "--svg", kit.place / "curve.svg")
    ran = _advise(kit, "--memory", "8M", "--threshold", 1, "--quota", 0, "--store", kit.store, *files, "--", program)
    expect(ran.returncode == 0 and ran.stdout.startswith("filled "), f"{ran.returncode} {ran.stdout} {ran.stderr}")
    advice = json.loads((kit.place / "curve.json").read_text())
    first, last = advice["curve"][0], advice["curve"][-1]
    expect(first["memory_bytes"] == 8 * MIB and first["reads"] > 3000, f"{first}")
    expect(last["reads"] < first["reads"] / 10 and 18 * MIB < last["memory_bytes"] < 34 * MIB, f"{first} {last}")
    middle = [point for point in advice["curve"] if point["memory_bytes"] < 16 * MIB][-1]
    expect(middle["reads"] > first["reads"] / 2, f"half the memory is of little use to a loop: {middle}")
    reads = [point["reads"] for point in advice["curve"]]
    expect(reads == sorted(reads, reverse=True), f"{reads}")
    expect("blocks read" in ran.stderr and "is enough" in ran.stderr, ran.stderr)
    expect((kit.place / "curve.svg").read_text().endswith("</svg>\n"), "no picture")


def test_each_allocation_has_its_own_advice(kit: Kit) -> None:
    program = kit.compile("two_arrays.cc", *SMALL.flags)
    ran = _advise(kit, "--memory", "8M", "--threshold", 1, "--quota", 0, "--store", kit.store, "--json", kit.place / "curve.json", "--", program)
    expect(ran.returncode == 0 and ran.stdout.startswith("sum "), f"{ran.returncode} {ran.stdout} {ran.stderr}")
    advice = json.loads((kit.place / "curve.json").read_text())
    of = {name: [area["curve"] for area in advice["areas"] if name in area["name"]] for name in ("make_looped()", "make_random()")}
    expect(all(len(curves) == 1 for curves in of.values()), f"{advice['areas']}")
    looped, random = of["make_looped()"][0], of["make_random()"][0]
    expect(looped[0]["reads"] > 2 * random[0]["reads"] > 0, f"the loop reads four times as often: {looped[0]} {random[0]}")
    total = sum(area["curve"][0]["reads"] for area in advice["areas"])
    expect(abs(total - advice["curve"][0]["reads"]) <= len(advice["areas"]), f"{total} of {advice['curve'][0]}")
    expect(looped[-1]["reads"] < looped[0]["reads"] / 4, f"{looped}")
    place = rf"allocated in .*make_looped\(\) \({re.escape(program.name)}\+0x[0-9a-f]+\)$"
    expect(re.search(place, ran.stderr, re.M), ran.stderr)


def test_each_allocation_is_named_with_its_line_of_source(kit: Kit) -> None:
    program = kit.compile("two_arrays.cc", *SMALL.flags, "-g")
    ran = _advise(kit, "--memory", "8M", "--threshold", 1, "--quota", 0, "--store", kit.store, "--", program)
    named = re.findall(r"allocated in .*(make_\w+)\(\) \(two_arrays.cc:(\d+)\)$", ran.stderr, re.M)
    source = (HERE / "programs" / "two_arrays.cc").read_text().splitlines()
    expect(sorted(function for function, _ in named) == ["make_looped", "make_random"], ran.stderr)
    expect(all(f"{function}() {{ return new" in source[int(line) - 1] for function, line in named), f"{named}")


@pytest.mark.engines("unmodified")
def test_a_program_that_takes_long_is_said_to_be_watched(kit: Kit) -> None:
    ran = _advise(kit, "--memory", "24M", "--store", kit.store, "--", "/usr/bin/python3", "-c",
                  "import time; data = bytearray(64 << 20); time.sleep(11)")
    expect(ran.returncode == 0 and ran.stderr.startswith("spillway: /usr/bin/python3 has been watched for 10 s;"), ran.stderr[:400])


def test_a_program_that_fits_needs_no_more(kit: Kit) -> None:
    program = kit.compile("watched.cc", *SMALL.flags)
    ran = _advise(kit, "--memory", "64M", "--threshold", 1, "--quota", 0, "--store", kit.store, "--", program)
    expect(ran.returncode == 0 and "more memory would save no reads" in ran.stderr, ran.stderr)


def test_what_cannot_be_advised_is_refused_with_a_line(kit: Kit) -> None:
    program = kit.compile("watched.cc", *SMALL.flags)
    native = ("--store", kit.store, "--threshold", "1T", "--quota", "64M", "--memory", "64M", "--", program)
    wrong = [(("--stats", "text", "--", program), "--stats: spillway advise sets it itself"), (("--memory", "8M"), "no program is named"),
             (("--json", kit.place / "nowhere" / "x", "--", program), "cannot be written"), (("--memory", "auto", "--", program), "--memory=auto"),
             (("--memory", "never", "--", program), "--memory=never")]
    # Code for the translated engine starts the runtime, whatever it allocates.
    wrong += [(native, "nothing to advise")] if kit.engine != "translated" else []
    for words, complaint in wrong:
        ran = _advise(kit, *words)
        expect(ran.returncode == EXIT_USAGE and complaint in ran.stderr and ran.stderr.count("\n") == 1, f"{words}: {ran.returncode} {ran.stderr}")


@pytest.mark.engines("mapped", "unmodified")
def test_what_compressed_memory_would_be_worth_is_said(kit: Kit) -> None:
    program = kit.compile("compress.cc", *SMALL.flags)
    for part, least, most in (("rounds", 0.75, 0.95), ("noise", 0, 0.02)):
        ran = _advise(kit, "--memory", "24M", "--store", kit.store, "--json", kit.place / "curve.json", "--", program, part, 112)
        expect((ran.returncode, ran.stdout) == (0, "wrong 0\n"), f"{ran.returncode} {ran.stdout} {ran.stderr}")
        found = json.loads((kit.place / "curve.json").read_text())["compress"]
        expect(least <= found["fits"] <= most, f"{found}")
        if part == "noise":
            expect(found["pool_bytes"] == 0 and re.search(r"--compress auto: 0 % .* gain nothing here$", ran.stderr, re.M), ran.stderr)
        else:
            expect(found["ratio"] > 2 and re.search(r"--compress auto: 8\d % of the pages compress, ", ran.stderr), f"{found} {ran.stderr}")


@pytest.mark.engines("mapped")
def test_nothing_is_said_where_pages_are_compressed_already(kit: Kit) -> None:
    program = kit.compile("compress.cc", *SMALL.flags)
    ran = _advise(kit, "--memory", "24M", "--compress", "lz4", "--store", kit.store, "--", program, "rounds", 112)
    expect(ran.returncode == 0 and "of the pages compress" not in ran.stderr, f"{ran.returncode} {ran.stderr}")
