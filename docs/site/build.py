#!/usr/bin/env python3
"""Builds the documentation as a site: build.py [--serve [PORT]]. `./dev docs` calls it; README.md says how it works.

The site is build/site. --serve shows it at http://127.0.0.1:PORT (8000), and builds it again when a page has changed.
Exit status 1, with a line that says why: PyPI cannot be reached, a link leads nowhere, mandoc is missing.
"""

import argparse
import functools
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time
import venv

sys.dont_write_bytecode = True
import check_site  # noqa: E402
import drawing  # noqa: E402
import headers  # noqa: E402
import links  # noqa: E402
import manual  # noqa: E402
import sources  # noqa: E402
import stage  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK, SITE = ROOT / "build/docs", ROOT / "build/site"
ENVIRONMENT = WORK / "environment"
INSTALL_LIMIT_S, MKDOCS_LIMIT_S, LOOK_EVERY_S = 300, 300, 1.0
SHOWN_PROBLEMS_MAX = 20


class Failed(Exception):
    """What ends the build; the text is the line to show."""


def say(text: str) -> None:
    print(f"docs: {text}", flush=True)


def inside_environment() -> bool:
    return pathlib.Path(sys.prefix).resolve() == ENVIRONMENT.resolve()


def prepare() -> pathlib.Path:
    """The Python of an environment that has all that requirements.txt says; made where there is none."""
    wanted = hashlib.sha256((HERE / "requirements.txt").read_bytes() + sys.version.encode()).hexdigest()
    mark, python = ENVIRONMENT / "made-from", ENVIRONMENT / "bin/python"
    if mark.is_file() and mark.read_text() == wanted:
        return python
    say("installing mkdocs-material from PyPI into build/docs/environment, once (some seconds)")
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    try:
        venv.create(ENVIRONMENT, with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        raise Failed(f"cannot make a Python environment ({error}); as root: apt-get install python3-venv") from None
    command = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "15",
        "--only-binary=:all:",
        "-r",
        HERE / "requirements.txt",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise Failed(
            f"PyPI did not give what docs/site/requirements.txt names; is the network there? pip's last line: {last}"
        )
    mark.write_text(wanted)
    return python


def stage_pages(to: pathlib.Path) -> stage.Stage:
    """Every page and picture of the site below `to`, as markdown."""
    files = links.tracked(ROOT)
    broken = links.broken_links(ROOT, files)
    if broken:
        raise Failed("links that lead nowhere:\n  " + "\n  ".join(broken[:SHOWN_PROBLEMS_MAX]))
    folder = ROOT / "docs/man"
    known = manual.pages(folder)
    made = stage.Stage(ROOT, to, files, known)
    made.run()
    for file in (file for file in made.paths if file.startswith("made:include/")):
        path = file.removeprefix("made:")
        made.write(made.paths[file], made.linked(headers.page(path, (ROOT / path).read_text()), path, made.paths[file]))
    for name in sorted(set(known.values())):
        made.write(f"reference/man/{name}.md", manual.page(folder / name, known))
    made.write(made.paths["made:docs/man"], manual.index(folder, known))
    made.write("assets/style.css", (HERE / "style.css").read_text() + drawing.page_style())
    made.write("assets/iframe-worker.js", (HERE / "iframe-worker.js").read_text())
    made.write("assets/source.css", sources.style())
    sources.write(ROOT, to, made.sources, files)
    return made


def settings(made: stage.Stage) -> pathlib.Path:
    """mkdocs' settings with the navigation; JSON is YAML."""
    top = [{title: made.paths[file]} for group, listed in made.groups if not group for title, file in listed]
    groups = [
        {group: [{title: made.paths[file]} for title, file in listed]}
        for group, listed in made.groups
        if group and listed
    ]
    text = (HERE / "mkdocs.yml").read_text()
    for name, value in (("docs_dir", str(WORK / "pages")), ("site_dir", str(WORK / "site")), ("nav", top + groups)):
        text += f"{name}: {json.dumps(value)}\n"
    file = WORK / "mkdocs.yml"
    file.write_text(text)
    return file


def build() -> None:
    """build/site is replaced by a finished site, or stays as it is."""
    began = time.monotonic()
    shutil.rmtree(WORK / "pages", ignore_errors=True)
    say("collecting pages, manual pages, headers and sources")
    made = stage_pages(WORK / "pages")
    pages = sum(1 for _ in (WORK / "pages").rglob("*.md"))
    say(f"{pages} pages and {len(made.sources)} sources; mkdocs makes HTML of them (some 20 s)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", settings(made)],
        text=True,
        capture_output=True,
        timeout=MKDOCS_LIMIT_S,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    if done.returncode != 0:
        raise Failed(f"mkdocs: {(done.stderr + done.stdout).strip()}")
    say("following every link of the site")
    wrong, count = check_site.problems(WORK / "site")
    if wrong:
        more = f"\n  and {len(wrong) - SHOWN_PROBLEMS_MAX} more" if len(wrong) > SHOWN_PROBLEMS_MAX else ""
        raise Failed(f"{len(wrong)} of {count} links are wrong:\n  " + "\n  ".join(wrong[:SHOWN_PROBLEMS_MAX]) + more)
    shutil.rmtree(SITE, ignore_errors=True)
    (WORK / "site").rename(SITE)
    say(f"build/site/index.html: {pages} pages, {count} links that hold, {time.monotonic() - began:.0f} s")


def serve(port: int) -> None:
    """Shows the site until Ctrl-C, and builds it again when a file that pages are made of has changed."""
    handler = functools.partial(QuietHandler, directory=str(SITE))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise Failed(
            f"cannot listen at port {port}: {error.strerror}; name another one: ./dev docs --serve PORT"
        ) from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"http://127.0.0.1:{port} shows it; Ctrl-C ends that")
    seen = newest()
    while True:
        time.sleep(LOOK_EVERY_S)
        if newest() != seen:
            seen = newest()
            try:
                build()
            except (Failed, stage.Broken, OSError, subprocess.SubprocessError) as error:
                say(str(error))  # the site before stays


def newest() -> tuple[int, ...]:
    """When what pages are made of changed last."""
    names = [
        name
        for name in links.tracked(ROOT)
        if name.endswith((".md", ".svg", ".css")) or name.startswith(("docs/", "include/"))
    ]
    return tuple((ROOT / name).stat().st_mtime_ns for name in names if (ROOT / name).is_file())


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev docs", description="Builds the documentation as a site in build/site.")
    parser.add_argument(
        "--serve",
        nargs="?",
        type=int,
        const=8000,
        metavar="PORT",
        help="show it at http://127.0.0.1:PORT (8000) until Ctrl-C",
    )
    words = parser.parse_args()
    try:
        if manual.why_not():
            raise Failed(manual.why_not())
        WORK.mkdir(parents=True, exist_ok=True)
        if not inside_environment():
            python = prepare()
            os.execv(python, [python, "-B", __file__, *sys.argv[1:]])
        build()
        if words.serve is not None:
            serve(words.serve)
    except (Failed, stage.Broken, OSError, subprocess.SubprocessError) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
