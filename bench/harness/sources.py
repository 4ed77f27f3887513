"""Debian's source packages: fetched from where the machine gets its packages, and built in trees of their own.

All is kept in the build directory's sources/. A tree's kind is `native` or the engine it is compiled for, `none` among them.
"""
import collections.abc
import fcntl
import pathlib
import shutil
import subprocess
import time

BUILD_TIME_LIMIT_S = 900
# Below the limits of the tests, so that a network that does not answer is a reason to skip them. What could not be had is not asked for again for a while.
FETCH_TIME_LIMIT_S, ANSWER_LIMIT_S = 60, 15
UNAVAILABLE_FOR_S = 600
# Lists of apt that hooks of the machine add to, which are for its own package lists and caches.
APT_HOOKS = ("APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success")


class Unavailable(Exception):
    """The package cannot be had here; the text says why."""


class BuildFailed(Exception):
    """Its build ended with what the text says."""


def run(command: list, where: pathlib.Path) -> None:
    try:
        done = subprocess.run([str(word) for word in command], cwd=where, capture_output=True, text=True, errors="replace",
                              timeout=BUILD_TIME_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise BuildFailed(str(late)) from None
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(map(str, command))}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def _apt_settings(place: pathlib.Path) -> pathlib.Path:
    """A configuration of apt with the machine's own package sources, as sources of source packages; nothing of the machine changes."""
    parts = place / "parts"
    for folder in (parts, place / "lists/partial", place / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    own = pathlib.Path("/etc/apt")
    files = [*own.glob("sources.list"), *own.glob("sources.list.d/*.list"), *own.glob("sources.list.d/*.sources")]
    for number, file in enumerate(files):
        lines = file.read_text().splitlines()
        if file.suffix == ".sources":
            lines = ["Types: deb-src" if line.startswith("Types:") else line for line in lines]
        else:
            lines = ["deb-src " + line[4:] for line in lines if line.startswith("deb ")]
        (parts / f"{number}{file.suffix}").write_text("\n".join(lines) + "\n")
    values = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": parts, "Dir::State::lists": place / "lists",
              "Dir::Cache": place / "cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none",
              "Acquire::Retries": 0, "Acquire::http::Timeout": ANSWER_LIMIT_S, "Acquire::https::Timeout": ANSWER_LIMIT_S}
    settings = place / "apt.conf"
    settings.write_text("".join(f"#clear {hook};\n" for hook in APT_HOOKS) +
                        "".join(f'{name} "{value}";\n' for name, value in values.items()))
    return settings


def _fetch(place: pathlib.Path, package: str, to: pathlib.Path) -> None:
    to.mkdir()
    apt_get = ["apt-get", "-qq", "-c", str(_apt_settings(place))]
    try:
        # An update fails when one of several sources has no source packages, and that may be one we do not need.
        subprocess.run([*apt_get, "update"], cwd=to, capture_output=True, timeout=FETCH_TIME_LIMIT_S)
        done = subprocess.run([*apt_get, "source", package], cwd=to, capture_output=True, text=True, timeout=FETCH_TIME_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"the source package {package} cannot be had here: {late}") from None
    if done.returncode != 0:
        raise Unavailable(f"the source package {package} cannot be had here: {done.stderr[-300:].strip()}")


def _fetched(place: pathlib.Path, package: str) -> pathlib.Path:
    """The unpacked source package, fetched once for a build directory."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-source"):
        raise Unavailable("apt-get and dpkg-source are needed for source packages")
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        target, refused = place / package, place / f"{package}.unavailable"
        if not target.exists():
            if refused.exists() and time.time() - refused.stat().st_mtime < UNAVAILABLE_FOR_S:
                raise Unavailable(refused.read_text())
            fetched = place / f"{package}.part"
            shutil.rmtree(fetched, ignore_errors=True)
            try:
                _fetch(place, package, fetched)
            except Unavailable as why:
                refused.write_text(str(why))
                raise
            fetched.rename(target)
        return next(file for file in target.iterdir() if file.is_dir())


def built(build: pathlib.Path, package: str, kind: str, make: collections.abc.Callable[[pathlib.Path, list[str]], None],
          depends: tuple[pathlib.Path, ...] = ()) -> pathlib.Path:
    """The tree that make(tree, compiler) has built in; kept while the compiler and what else it depends on are the same."""
    place = build / "sources"
    place.mkdir(parents=True, exist_ok=True)
    source = _fetched(place, package)
    compiler = ["clang-19"]
    if kind != "native":
        compiler = [str(build / "bin" / "spillway-clang"), f"-fspillway-engine={kind}"]
        depends = (*depends, build / "lib" / "spillway_pass.so", pathlib.Path(compiler[0]))
    tree = place / f"{package}-{kind}"
    done = tree / "built"
    with open(f"{tree}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists() or any(done.stat().st_mtime < file.stat().st_mtime for file in depends):
            shutil.rmtree(tree, ignore_errors=True)
            shutil.copytree(source, tree, symlinks=True)
            make(tree, compiler)
            done.touch()
    return tree
