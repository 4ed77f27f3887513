#!/usr/bin/env python3
"""Cuts the power of a disk at any moment: power_cuts.py BUILD [--points N] [--case NAME ...] [--seed N] [--jobs N].

A program runs on an ext4 whose disk is recorded, and says what it knows to be durable. Then the disk is made again as it could be
when the power goes: at each flush, and between, with all, some or none of the sectors that were written since the flush before.
Each time the filesystem is mounted, and what had been said by then has to be there. A line a recording; with what is missing the
lines below say where, the recording is kept, and the exit code is 1. 77: it cannot run here (no root, no FUSE, no loop device).

A kept recording again: --again LOG --case NAME --at RECORD --keeps SHARE --seed N, all of which that line says.
"""
import argparse
import dataclasses
import multiprocessing
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cases import CASES, Case  # noqa: E402
from disks import FLUSHED, SAID, Record, Replay, Unavailable, loop_device, read_log, recording  # noqa: E402
from kit import Kit  # noqa: E402

DISK_BYTES = 32 << 20
RECORDED_S = (0.2, 1.5)
BEGUN_S = 20
POINTS_OF_ONE = 400
KEEPS = (0.0, 0.5, 1.0, 0.1, 0.9)
SKIPPED = 77


@dataclasses.dataclass
class Task:
    build: pathlib.Path
    case: str
    seed: int
    points: int
    lag: int


@dataclasses.dataclass
class Result:
    task: Task
    points: int = 0
    flushes: int = 0
    confirmed: int = 0  # by the end of the recording
    seconds: float = 0
    problems: tuple[str, ...] = ()


def record_one(kit: Kit, case: Case, dice: random.Random, log: pathlib.Path, scratch: pathlib.Path) -> None:
    program = kit.build / "tests" / "recording_disk"
    with recording(program, log, scratch, DISK_BYTES) as (directory, said):
        words, environment = case.words(kit, directory, dice)
        with open(said, "ab", buffering=0) as output, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([str(word) for word in words], cwd=kit.place, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                       env=kit.environment(environment))
            wait_until_begun(said, process)
            time.sleep(dice.uniform(*RECORDED_S))
            ended = process.poll()
            process.kill()
            process.wait()
            if ended is not None:
                errors.seek(0)
                raise AssertionError(f"the program ended by itself, exit code {ended}: {errors.read().decode(errors='replace')[-500:]}")


def wait_until_begun(said: pathlib.Path, process: subprocess.Popen) -> None:
    end = time.monotonic() + BEGUN_S
    while said.stat().st_size == 0 and process.poll() is None:
        if time.monotonic() > end:
            process.kill()
            raise AssertionError(f"the program said nothing for {BEGUN_S} s")
        time.sleep(0.01)


def moments(records: list[Record], case: Case, count: int, dice: random.Random) -> list[tuple[int, float]]:
    """(before which record, the share of sectors that are kept), in order: half of them at flushes, if there are as many."""
    said, first = b"", len(records)
    for i, record in enumerate(records):
        if record.kind == SAID:
            said += record.data
            if case.begun.encode() in said:
                first = i + 1
                break
    if first >= len(records):
        raise AssertionError("nothing was recorded after the program began")
    flushes = [i for i in range(first, len(records)) if records[i].kind == FLUSHED]
    at_flushes = dice.sample(flushes, min(len(flushes), count // 2))
    between = [dice.randrange(first, len(records) + 1) for _ in range(count - len(at_flushes))]
    return sorted((at, dice.choice(KEEPS)) for at in at_flushes + between)


def check_one(kit: Kit, case: Case, replay: Replay, device: str, directory: pathlib.Path, moment: tuple[int, float], seed: int) -> int:
    replay.cut(*moment, random.Random(seed))
    with replay.mounted(device, directory):
        return case.check(kit, directory, replay.said.decode())


def run_one(task: Task) -> Result:
    result, began = Result(task), time.monotonic()
    case, dice = CASES[task.case], random.Random(task.seed)
    kept = task.build / "power"
    kept.mkdir(exist_ok=True)
    log = kept / f"{task.case}-{task.seed}.log"
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="spillway-power-") as name, tempfile.TemporaryDirectory(dir=memory) as image_directory:
        scratch = pathlib.Path(name)
        (scratch / "place").mkdir()
        kit = Kit(task.build, scratch / "place", case.engine)
        try:
            record_one(kit, case, dice, log, scratch)
            records = read_log(log)
            chosen = moments(records, case, task.points, dice)
            result.flushes = sum(record.kind == FLUSHED for record in records)
        except AssertionError as wrong:
            result.problems = (f"  {log}: {wrong}",)
            return result
        image = pathlib.Path(image_directory) / "image"
        replay = Replay(records, image, DISK_BYTES, task.lag)
        with loop_device(image) as device:
            for moment in chosen:
                try:
                    result.confirmed = check_one(kit, case, replay, device, scratch / "mounted", moment, task.seed)
                except Exception as wrong:  # whatever cannot be read back is lost
                    result.problems += (f"  --again {log} --case {task.case} --at {moment[0]} --keeps {moment[1]} --seed {task.seed}: {wrong}",)
                result.points += 1
    if not result.problems:
        log.unlink()
    result.seconds = time.monotonic() - began
    return result


def again(arguments: argparse.Namespace) -> int:
    case = CASES[arguments.case[0]]
    with tempfile.TemporaryDirectory(prefix="spillway-power-") as name:
        scratch = pathlib.Path(name)
        for each in ("place", "mounted"):
            (scratch / each).mkdir()
        replay = Replay(read_log(arguments.again), scratch / "image", DISK_BYTES, arguments.lag)
        with loop_device(scratch / "image") as device:
            kit = Kit(arguments.build, scratch / "place", case.engine)
            try:
                check_one(kit, case, replay, device, scratch / "mounted", (arguments.at, arguments.keeps), arguments.seed)
            except Exception as wrong:  # as in run_one()
                print(f"lost: {wrong}")
                return 1
    print("all that was said is there")
    return 0


def run_all(arguments: argparse.Namespace) -> int:
    names = arguments.case or list(CASES)
    each = min(POINTS_OF_ONE, max(1, arguments.points // len(names)))
    tasks = [Task(arguments.build, names[i % len(names)], arguments.seed + i, each, arguments.lag) for i in range(-(-arguments.points // each))]
    points, flushes, failed = 0, 0, 0
    with multiprocessing.Pool(arguments.jobs, maxtasksperchild=1) as pool:
        for result in pool.imap_unordered(run_one, tasks):
            points, flushes, failed = points + result.points, flushes + result.flushes, failed + len(result.problems)
            print(f"{result.task.case:20} seed {result.task.seed}: {result.points} cuts, {result.flushes} flushes, "
                  f"{result.confirmed} steps confirmed by the last, {len(result.problems)} lost, {result.seconds:.0f} s", flush=True)
            for problem in result.problems[:5]:
                print(problem, flush=True)
    print(f"{points} cuts, {flushes} flushes recorded, {failed} lost")
    return 1 if failed else 0


def propagation() -> str:
    """How a namespace of mounts is kept apart. In a root that is no mount the kernel does not change that of all mounts; there it
    has to be so already."""
    tried = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True, text=True)
    if tried.returncode == 0:
        return "private"
    if " shared:" in pathlib.Path("/proc/self/mountinfo").read_text():
        raise Unavailable(f"mounts would not be this process's own: {tried.stderr.strip()}")
    return "unchanged"


def in_own_mounts(words: list[str]) -> None:
    """Begins anew where mounts are nobody else's, and end with this process."""
    if os.geteuid() != 0:
        raise Unavailable("mounting needs root")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in ("unshare", "losetup", "mkfs.ext4"):
        if not shutil.which(program):
            raise Unavailable(f"there is no {program}")
    os.environ["SPW_OWN_MOUNTS"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", propagation(), sys.executable, "-B", *words])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--points", type=int, default=2000, help="how often the power is cut (2000)")
    parser.add_argument("--case", action="append", choices=CASES, help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first recording")
    parser.add_argument("--jobs", type=int, default=1, help="recordings at a time (1)")
    parser.add_argument("--again", type=pathlib.Path, metavar="LOG", help="one cut of a recording that was kept")
    parser.add_argument("--at", type=int, default=0, help="before which record")
    parser.add_argument("--keeps", type=float, default=1.0, help="the share of sectors that are kept")
    parser.add_argument("--lag", type=int, default=0, help="a disk that lies: the last so many flushes did nothing. What is lost then has to be found")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    if arguments.points < 1 or arguments.jobs < 1:
        parser.error("--points and --jobs: at least 1")
    if arguments.again and len(arguments.case or ()) != 1:
        parser.error("--again: which --case?")
    try:
        if "SPW_OWN_MOUNTS" not in os.environ:
            in_own_mounts(sys.argv)
        if not (arguments.build / "tests" / "recording_disk").exists():
            raise Unavailable(f"{arguments.build} has no recording_disk: it is not built where libfuse3-dev is missing")
        return again(arguments) if arguments.again else run_all(arguments)
    except Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIPPED


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
