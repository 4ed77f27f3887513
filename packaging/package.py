#!/usr/bin/env python3
"""Builds packages into build/packages: package.py [--test] [deb|tarball|wheel|image]...; all four if none is named.

Builds stay in build/package-*, so that a second call compiles what has changed. packaging/README.md says what each
package is.
"""
import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

from common import PACKAGES, SOURCE, TREES, Failed, cache_environment, jobs, run, say, version

SECCOMP_DEFAULT = pathlib.Path("/usr/share/containers/seccomp.json")


def show(paths):
    for path in paths:
        say(f"package: {path.relative_to(SOURCE)} ({path.stat().st_size / 1e6:.1f} MB)")


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def build_deb():
    """Debian's own tools, over packaging/debian. There is nothing but that folder where they run: the source is this one."""
    base = fresh(PACKAGES / "deb")
    folder = base / f"spillway-{version()}"
    shutil.copytree(SOURCE / "packaging" / "debian", folder / "debian")
    run("deb", ["dpkg-buildpackage", "-b", "-us", "-uc", "-nc"], PACKAGES / "log" / "deb", cwd=folder, env={
        **cache_environment(), "SPW_SOURCE": str(SOURCE), "SPW_BUILD": str(TREES / "package-deb"),
        "DEB_BUILD_OPTIONS": f"parallel={jobs()}"})
    made = sorted(base.glob("*.deb"))
    for old in PACKAGES.glob("*.deb"):
        old.unlink()
    for file in made:
        shutil.copy2(file, PACKAGES)
    show(PACKAGES / file.name for file in made)


def build_tarball():
    """An installation of everything, without what debuggers want: wherever it is unpacked, it works."""
    tree = TREES / "package-portable"
    if shutil.which("clang-19") is None:
        raise Failed("tarball: there is no clang-19; `./dev setup` installs it")
    environment = cache_environment()
    run("tarball: configure", ["cmake", "-G", "Ninja", "-S", SOURCE, "-B", tree, "-C", SOURCE / "packaging/release.cmake",
                               "-DCMAKE_INSTALL_LIBDIR=lib"], PACKAGES / "log" / "tarball-configure", env=environment)
    run("tarball: build", ["ninja", "-C", tree, "-j", jobs()], PACKAGES / "log" / "tarball-build", env=environment)
    name = f"spillway-{version()}-linux-x86_64"
    base = fresh(PACKAGES / "tarball")
    run("tarball: install", ["cmake", "--install", tree, "--strip", "--prefix", base / name],
        PACKAGES / "log" / "tarball-install")
    for text in ("README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy2(SOURCE / text, base / name / ("share" if text != "LICENSE" else "") / text)
    shutil.copy2(SOURCE / "packaging" / "INSTALL.txt", base / name)
    file = PACKAGES / f"{name}.tar.xz"
    # Sorted, nobody's, and of the time of the last commit, so that the same source makes the same archive.
    when = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True)
    run("tarball: pack", ["tar", "-C", base, "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-I", "xz -6 -T0",
                          f"--mtime=@{when.stdout.strip()}", "-cf", file, name], PACKAGES / "log" / "tarball-pack")
    show([file])


def build_wheel():
    """By what pyproject.toml says of how it is built."""
    if not (SOURCE / "pyproject.toml").exists():
        raise Failed("wheel: there is no pyproject.toml in this source, so no wheel can be built of it")
    folder = fresh(PACKAGES / "wheel")
    if importlib.util.find_spec("build") is not None:
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, SOURCE]
    elif importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, SOURCE]
    else:
        raise Failed("wheel: this Python has neither pip nor build; apt-get install python3-pip python3-venv")
    run("wheel", command, PACKAGES / "log" / "wheel", env={**cache_environment(), "CMAKE_BUILD_PARALLEL_LEVEL": jobs()})
    made = sorted(folder.glob("*.whl"))
    if not made:
        raise Failed(f"wheel: {command[2]} left no wheel in {folder.relative_to(SOURCE)}")
    for old in PACKAGES.glob("*.whl"):
        old.unlink()
    for file in made:
        shutil.copy2(file, PACKAGES)
    show(PACKAGES / file.name for file in made)


def build_image():
    """What `docker build`, `podman build` and `buildah bud` take: the recipe, the .debs beside it, and the seccomp profile."""
    debs = [file for file in sorted(PACKAGES.glob(f"*_{version()}_amd64.deb")) if "-dbgsym_" not in file.name]
    if not debs:
        raise Failed("image: it is made of the .debs, and there are none; `./dev package deb image` builds both")
    if not SECCOMP_DEFAULT.exists():
        raise Failed(f"image: there is no {SECCOMP_DEFAULT}, the profile that ours adds to; "
                     "apt-get install golang-github-containers-common")
    folder = fresh(PACKAGES / "image")
    for file in (*debs, SOURCE / "packaging/container/Containerfile"):
        shutil.copy2(file, folder)
    run("image: seccomp profile", [sys.executable, SOURCE / "packaging/container/make_seccomp.py", SECCOMP_DEFAULT,
                                   folder / "spillway-seccomp.json"], PACKAGES / "log" / "image-seccomp")
    file = PACKAGES / f"spillway-{version()}-container.tar.gz"
    run("image: pack the recipe", ["tar", "-C", PACKAGES, "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-czf",
                                   file, "image"], PACKAGES / "log" / "image-pack")
    show([file])
    say(f"package: an image is made of it by: podman build -t spillway:{version()} {folder.relative_to(SOURCE)}")


BUILDERS = {"deb": build_deb, "tarball": build_tarball, "wheel": build_wheel, "image": build_image}


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description="Builds packages into build/packages.")
    parser.add_argument("--test", action="store_true", help="then test them in a fresh Debian 12 (root and network needed)")
    parser.add_argument("what", nargs="*", metavar="deb|tarball|wheel|image", help="all four if none is named")
    arguments = parser.parse_args()
    for what in arguments.what:
        if what not in BUILDERS:
            parser.error(f"no such package: {what} (there are {', '.join(BUILDERS)})")
    wanted = [what for what in BUILDERS if what in arguments.what or not arguments.what]
    if not arguments.what and not (SOURCE / "pyproject.toml").exists():
        say("package: no wheel: there is no pyproject.toml in this source")
        wanted.remove("wheel")
    try:
        for what in wanted:
            BUILDERS[what]()
        if arguments.test:
            os.execv(sys.executable, [sys.executable, "-B", str(SOURCE / "tests/packages/packages_test.py"),
                                      "--packages", str(PACKAGES)])
    except Failed as failed:
        sys.exit(f"package: {failed}")
    except KeyboardInterrupt:
        sys.exit("package: stopped; what was built so far serves the next call")


if __name__ == "__main__":
    main()
