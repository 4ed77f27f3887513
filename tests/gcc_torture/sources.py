"""GCC's execute torture suite: what it consists of, and how to get it by apt. It is GPL, and never committed."""
import lzma
import pathlib
import re
import shutil
import subprocess
import tarfile

PACKAGE = "gcc-12"
FOLDER = "gcc/testsuite/gcc.c-torture/execute/"
KEYRINGS = "usr/share/keyrings/*-archive-keyring.gpg"
TARGETS = "Created-By: Packages"  # the lists of packages among all that apt has
ORIGINS = (["Debian"], ["Ubuntu"])
APT_LIMIT_S = 900


class NoSources(Exception):
    """Why there are none."""


def programs(folder: pathlib.Path) -> list[str]:
    """Paths within the folder: its own programs and those of `ieee`. Those of `builtins` are of several files each, and
    test which functions of the C library GCC calls."""
    found = sorted(path.relative_to(folder).as_posix() for path in (*folder.glob("*.c"), *folder.glob("ieee/*.c")))
    if not found:
        raise NoSources(f"no *.c in {folder}; it is to be gcc/testsuite/gcc.c-torture/execute of GCC's sources")
    return found


def set_up(cache: pathlib.Path) -> pathlib.Path:
    """Downloads the source package with lists and caches of our own, and unpacks the suite from it; nothing
    where that has been done. Some 90 MB, which are removed afterwards."""
    target = cache / "execute"
    if target.is_dir():
        return target
    work = cache / "download"
    shutil.rmtree(work, ignore_errors=True)
    try:
        download(work)
        unpack(next(work.glob("*.orig.tar.*")), work / "execute")
        (work / "execute").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def download(work: pathlib.Path) -> None:
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    (work / "sources.list").write_text("".join(f"{line}\n" for line in source_lines()))
    options = [f"Dir::Etc::sourcelist={work / 'sources.list'}", "Dir::Etc::sourceparts=-",
               f"Dir::State::lists={work / 'lists'}", f"Dir::Cache={work / 'cache'}", "APT::Sandbox::User=root",
               "APT::Update::Error-Mode=any"]
    apt = ["apt-get", "-q", *(word for option in options for word in ("-o", option))]
    call([*apt, "update"], work)
    call([*apt, "source", "--download-only", PACKAGE], work)


def source_lines() -> list[str]:
    """Where the machine gets its packages from, it gets their sources: of the release, without what came after it."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)", TARGETS]
    signed = ",".join(str(path) for path in sorted(pathlib.Path("/").glob(KEYRINGS)))
    option = f"[signed-by={signed}] " if signed else ""
    lines = set()
    for line in call(command, pathlib.Path("/")).splitlines():
        address, release, component, *origin = line.split()
        if origin in ORIGINS and "-" not in release:
            lines.add(f"deb-src {option}{address} {release} {component}")
    if not lines:
        raise NoSources(f"apt has no lists of Debian's or Ubuntu's packages; apt-get update, or --sources .../{FOLDER}")
    return sorted(lines)


def call(command: list[str], folder: pathlib.Path) -> str:
    """What it prints."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=APT_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSources(f"{command[0]}: {error}") from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
        raise NoSources(f"{command[0]} {command[-1]}: {errors[0] if errors else f'exit status {done.returncode}'}")
    return done.stdout


def unpack(archive: pathlib.Path, target: pathlib.Path) -> None:
    """Debian's tarball has GCC's own in it."""
    with tarfile.open(archive) as outer:
        for member in outer:
            if not re.search(r"/gcc-\d[^/]*\.tar\.xz$", member.name):
                continue
            unpacked = lzma.open(outer.extractfile(member))
            with unpacked, tarfile.open(fileobj=unpacked, mode="r|") as inner:
                for file in inner:
                    _, found, name = file.name.partition(f"/{FOLDER}")
                    if found and file.isfile() and ".." not in name:
                        (target / name).parent.mkdir(parents=True, exist_ok=True)
                        (target / name).write_bytes(inner.extractfile(file).read())
            if target.is_dir():
                return
    raise NoSources(f"there is no {FOLDER} in {archive.name}")
