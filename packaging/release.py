#!/usr/bin/env python3
"""Checks that the source is ready to be released, builds all packages and writes build/release-VERSION: release.py [--quick] [--draft].

What is there afterwards: the packages, the source, SHA256SUMS, an SBOM, and UPLOAD.md, which says what to upload and how.
Nothing is uploaded and nothing is tagged.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import sbom
from common import PACKAGES, SOURCE, TREES, Failed, run, say, version

TEST_PARTS = ("release", "asan", "tsan", "gcc", "llvm22")
VALIDATOR = "spdx-tools"  # from PyPI, for this alone


def said(*command):
    return subprocess.run(list(map(str, command)), cwd=SOURCE, capture_output=True, text=True, check=True).stdout.strip()


def version_problems():
    """Places that name another version than the header does."""
    wanted, problems = version(), []
    changelog = re.search(r"^## (\d+\.\d+\.\d+)(.*)$", (SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)
    debian = re.match(r"spillway \(([\d.]+)\)", (SOURCE / "packaging/debian/changelog").read_text())
    for place, found in (("CHANGELOG.md", changelog), ("packaging/debian/changelog", debian)):
        if found is None or found[1] != wanted:
            problems.append(f"{place}: its newest version is {found[1] if found else 'none'}, spillway.h's is {wanted}")
    if changelog and "not released" in changelog[2]:
        problems.append(f"CHANGELOG.md: {changelog[0][3:]}; the day of the release belongs there")
    # The wheel's is read from the header when it is built.
    for project in ("rust/spillway/Cargo.toml", "rust/cargo-spillway/Cargo.toml"):
        written = re.search(r'^version = "(.*)"', (SOURCE / project).read_text(), re.MULTILINE)
        if written is None or written[1] != wanted:
            problems.append(f"{project}: its version is {written[1] if written else 'none'}, spillway.h's is {wanted}")
    for page in sorted((SOURCE / "docs/man").iterdir()):
        named = re.search(r'^\.TH .*"Spillway ([\d.]+)"', page.read_text())
        if named and named[1] != wanted:
            problems.append(f"docs/man/{page.name}: it names version {named[1]}, spillway.h's is {wanted}")
    return problems


def test_problems():
    """What speaks against the last `./dev test`: parts not run since the last commit, or failures."""
    committed = int(said("git", "log", "-1", "--format=%ct"))
    marks = {part: SOURCE / "build" / part / "test-results" / "finished" for part in TEST_PARTS}
    late = [part for part, mark in marks.items() if not mark.exists() or mark.stat().st_mtime < committed]
    if late:
        return [f"tests: {', '.join(late)} not run since the last commit; `./dev test`, or --quick here"]
    summary = subprocess.run([sys.executable, "scripts/test_summary.py", *TEST_PARTS], cwd=SOURCE, capture_output=True, text=True)
    say(f"release: tests: {summary.stdout.strip().splitlines()[-1]}")
    return [] if summary.returncode == 0 else ["tests: some failed; `./dev test` says which"]


def quick_test_problems():
    """Those of the release build that are not slow, run now."""
    say("release: ./dev test release")
    done = subprocess.run(["./dev", "test", "release"], cwd=SOURCE)
    return [] if done.returncode == 0 else ["tests: some failed"]


def problems(quick):
    found = []
    dirty = said("git", "status", "--porcelain")
    if dirty:
        found.append(f"the tree is not clean: {dirty.splitlines()[0].strip()}" + (" and more" if "\n" in dirty else ""))
    found += version_problems()
    found += quick_test_problems() if quick else test_problems()
    return found


def pack_source(folder):
    name = f"spillway-{version()}"
    file = folder / f"{name}.tar.xz"
    run("source", ["sh", "-c", f"git archive --prefix={name}/ HEAD | xz -6 > {file}"], PACKAGES / "log" / "source")
    return file


def write_sbom(folder, artifacts):
    tree = TREES / "package-deb"
    made = sbom.document(version(), tree, artifacts, int(said("git", "log", "-1", "--format=%ct")))
    file = folder / f"spillway-{version()}.spdx.json"
    file.write_text(json.dumps(made, indent=1) + "\n")
    unknown = [part["name"] for part in made["packages"][1:] if part["licenseDeclared"] == "NOASSERTION"]
    if unknown:
        raise Failed(f"SBOM: no license is known of {', '.join(unknown)}; packaging/sbom.py has the others")
    environment = PACKAGES / "validator"
    try:
        if not (environment / "bin" / "pyspdxtools").exists():
            run("SBOM: get its validator", ["sh", "-c", f"python3 -m venv {environment} && {environment}/bin/pip install -q {VALIDATOR}"],
                PACKAGES / "log" / "validator")
    except Failed:
        say(f"release: the SBOM was not validated: {VALIDATOR} cannot be had here")
    else:
        run("SBOM: validate", [environment / "bin" / "pyspdxtools", "-i", file], PACKAGES / "log" / "sbom")
    say(f"release: SBOM: {len(made['packages']) - 1} parts from elsewhere")
    return file


def notes():
    """This version's part of the changelog."""
    text = (SOURCE / "CHANGELOG.md").read_text()
    return re.search(rf"^## {re.escape(version())}.*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1].strip()


def upload_text(files, remarks):
    names = [file.name for file in files]
    listed = "\n".join(f"- `{name}`" for name in names)
    wheel = next((name for name in names if name.endswith(".whl")), None)
    draft = "".join(f"\n> **Not ready:** {line}" for line in remarks)
    steps = [f"1. `git tag -s v{version()} -m 'Spillway {version()}' {said('git', 'rev-parse', '--short', 'HEAD')}` and push the tag.",
             "2. `sha256sum -c SHA256SUMS` here, then sign that file: `gpg --armor --detach-sign SHA256SUMS`.",
             "3. A release of that tag, with all files of this folder but this one, and the notes below.",
             f"4. .debs: into an apt repository (`reprepro includedeb bookworm *_{version()}_amd64.deb`), or as files: "
             f"`apt install ./spillway_{version()}_amd64.deb ./libspillway0_{version()}_amd64.deb`.",
             f"5. The image: unpack `spillway-{version()}-container.tar.gz`; `podman build -t REGISTRY/spillway:{version()} image` and "
             f"`--target compiler -t REGISTRY/spillway:{version()}-clang`, then `podman push` of both."]
    if wheel:
        steps.append(f"6. The wheel: `twine check {wheel}` and `twine upload {wheel}`.")
    return (f"# Spillway {version()}: what to upload\n{draft}\n\n" + "\n".join(steps) +
            f"\n\n## Files\n\n{listed}\n- `SHA256SUMS`\n\n## Notes\n\n{notes()}\n")


def make_release(remarks, draft):
    subprocess.run([sys.executable, "-B", "packaging/package.py"], cwd=SOURCE, check=True)
    # The packages as they are installed and used; skipped with the reason where that is not possible.
    tested = subprocess.run([sys.executable, "-B", "tests/packages/packages_test.py", "--packages", PACKAGES], cwd=SOURCE)
    if tested.returncode != 0:
        raise Failed("the packages' tests failed (./dev package --test)")
    folder = SOURCE / "build" / (f"release-{version()}" + ("-draft" if draft else ""))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    patterns = (f"*_{version()}_amd64.deb", f"spillway-{version()}-*.tar.?z", f"*-{version()}-*.whl")
    files = [copied(file, folder) for pattern in patterns for file in sorted(PACKAGES.glob(pattern))]
    files.append(pack_source(folder))
    files.append(write_sbom(folder, files))
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums)
    (folder / "UPLOAD.md").write_text(upload_text(files, remarks))
    say(f"release: {len(files)} files in {folder.relative_to(SOURCE)}; UPLOAD.md there says what comes next")


def copied(file, folder):
    shutil.copy2(file, folder)
    return folder / file.name


def main():
    parser = argparse.ArgumentParser(prog="./dev release", description="Checks, builds all packages, and writes what to upload.")
    parser.add_argument("--quick", action="store_true", help="run the release build's tests now, those that are not slow, instead "
                        "of asking for the last result of all")
    parser.add_argument("--draft", action="store_true", help="go on where something is not ready, and say so in UPLOAD.md")
    arguments = parser.parse_args()
    os.chdir(SOURCE)
    try:
        found = problems(arguments.quick)
        for line in found:
            say(f"release: {'not ready: ' if arguments.draft else ''}{line}")
        if found and not arguments.draft:
            raise Failed(f"{len(found)} things are to be mended first; --draft builds it all the same")
        make_release(found, arguments.draft)
    except Failed as failed:
        sys.exit(f"release: {failed}")
    except subprocess.CalledProcessError as failed:
        sys.exit(f"release: {failed.cmd[-1] if isinstance(failed.cmd, list) else failed.cmd} failed; its lines above say why")
    except KeyboardInterrupt:
        sys.exit("release: stopped; nothing was released, and what was built serves the next call")


if __name__ == "__main__":
    main()
