"""Looks at a finished site: each link leads to a file of it, and a place in that; nothing is loaded from elsewhere."""

import html.parser
import pathlib
import re
import urllib.parse

# What a browser fetches by itself to show a page; a link that a reader follows may lead anywhere.
LOADS = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("iframe", "src"),
    ("source", "src"),
    ("source", "srcset"),
    ("object", "data"),
    ("video", "src"),
    ("audio", "src"),
    ("image", "href"),
}
COLOURS = re.compile(r'<span(?: class="[^"]*")?>|</span>')  # most of a page of source, and no place to link to
NOT_LOADED_RELATIONS = {"canonical", "next", "prev", "alternate", "edit"}


class Page(html.parser.HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[int, str]] = []  # (line, target)
        self.loads: list[tuple[int, str]] = []
        self.feed(COLOURS.sub("", text))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        relations = set((values.get("rel") or "").split())
        for name, value in attributes:
            if value and (tag, name) in LOADS and not relations & NOT_LOADED_RELATIONS:
                self.loads.append((self.getpos()[0], value))
            elif value and name == "href":
                self.links.append((self.getpos()[0], value))


def problems(site: pathlib.Path) -> tuple[list[str], int]:
    """A line for each thing that is wrong, and how many links were looked at."""
    pages = {file: Page(file.read_text()) for file in sorted(site.rglob("*.html"))}
    wrong, count = [], 0
    for file, page in pages.items():
        for line, target in page.loads + page.links:
            count += 1
            parts = urllib.parse.urlsplit(target)
            where = f"{file.relative_to(site)}:{line}"
            if parts.scheme or parts.netloc:
                if (line, target) in page.loads and parts.scheme != "data":
                    wrong.append(f"{where}: loads {target}")
                continue
            found = place_of(site, file, urllib.parse.unquote(parts.path))
            if found is None:
                wrong.append(f"{where}: {target}: there is no such file in the site")
            elif (
                parts.fragment
                and found in pages
                and urllib.parse.unquote(parts.fragment) not in pages[found].ids | {"__top"}
            ):
                wrong.append(f"{where}: {target}: there is no such place in {found.relative_to(site)}")
    wrong += [
        f"{file.relative_to(site)}: loads from {host}"
        for file in sorted(site.rglob("*.css"))
        for host in ("//fonts.", "//cdn.", "//unpkg.")
        if host in file.read_text()
    ]
    return wrong, count


def place_of(site: pathlib.Path, page: pathlib.Path, path: str) -> pathlib.Path | None:
    """The file that a path in a page leads to."""
    if not path:
        return page
    file = (site / path.lstrip("/") if path.startswith("/") else page.parent / path).resolve()
    file = file / "index.html" if file.is_dir() else file
    return file if file.is_file() else None
