"""What building packages and making a release share: where things are, what is said, commands whose output goes to a file."""
import os
import pathlib
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = SOURCE / "build" / "packages"
# Where trees are built in, as deep as everybody's: the compiler's cache knows sources by their way from there.
TREES = SOURCE / "build"
SAY_EVERY_S = 30
LOG_LINES_SHOWN = 30
# "[12/345] Building ...", as ninja writes it.
NINJA_STATUS = re.compile(r"\[(\d+)/(\d+)\]")


class Failed(Exception):
    """One line for the user: what, where, and how to mend it."""


def say(line):
    print(line, flush=True)


def version():
    """Of the public header, which CMake takes it from, too."""
    header = (SOURCE / "include/spillway/spillway.h").read_text()
    return ".".join(re.search(rf"^#define SPW_VERSION_{part} (\d+)", header, re.MULTILINE)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


def jobs():
    return os.environ.get("SPW_JOBS") or str(len(os.sched_getaffinity(0)))


def run(what, command, log, cwd=SOURCE, env=None):
    """Runs `command` with its output in the file `log`. Says `what` when it begins, each tenth of a build by ninja, every
    SAY_EVERY_S, and how long it took. Raises Failed, after the end of its output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{what} ...")
    began = said = time.monotonic()
    tenth = 0
    with open(log, "w") as file:
        try:
            process = subprocess.Popen(list(map(str, command)), cwd=cwd, env={**os.environ, **(env or {})}, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       errors="replace")
        except FileNotFoundError:
            raise Failed(f"{what}: there is no {command[0]}; `./dev setup` installs what is missing") from None
        for line in process.stdout:
            file.write(line)
            status = NINJA_STATUS.match(line)
            now = time.monotonic()
            if status and int(status[1]) * 10 // int(status[2]) != tenth or now - said > SAY_EVERY_S:
                tenth = int(status[1]) * 10 // int(status[2]) if status else tenth
                say(f"{what}: {status[1]} of {status[2]}" if status else f"{what}: {int(now - began)} s so far")
                said = now
        code = process.wait()
    if code != 0:
        for line in log.read_text().splitlines()[-LOG_LINES_SHOWN:]:
            print(f"  {line}", file=sys.stderr)
        raise Failed(f"{what}: {command[0]} failed with exit code {code}; all of its output: {log.relative_to(SOURCE)}")
    say(f"{what}: {time.monotonic() - began:.0f} s")


def cache_environment():
    """For compilers below debhelper, which changes HOME: the same cache as everybody's."""
    given = {"CCACHE_BASEDIR": str(SOURCE), "CCACHE_NOHASHDIR": "1"}
    if "CCACHE_DIR" not in os.environ:
        done = subprocess.run(["sh", "-c", "ccache -k cache_dir"], capture_output=True, text=True)
        if done.returncode == 0:
            given["CCACHE_DIR"] = done.stdout.strip()
    return given
