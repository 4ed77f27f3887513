"""What a markdown file of ours links to and what it can be linked by, as code hosts understand it.

Found in prose only: what stands in fenced code, and in code spans, is no link.
"""

import dataclasses
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

# In this order, at each place of the text: fenced code, a link or picture, a code span. A link's text may hold code
# spans and a picture.
FENCE = r"(?P<fence>^(?P<tick>```+|~~~+)[^\n]*\n.*?^(?P=tick)[ \t]*$)"
LINK = r"(?P<link>(?P<picture>!?)\[(?P<text>(?:[^\[\]`]|`[^`\n]*`|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\))"
CODE = r"(?P<code>(?P<ticks>`+)(?P<inner>.+?)(?P=ticks))"
TOKEN = re.compile("|".join((FENCE, LINK, CODE)), re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +#+)?(?: +\{#([\w.-]+)\})?$", re.MULTILINE)
EXTERNAL = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Link:
    line: int
    target: str

    @property
    def path(self) -> str:
        return self.target.partition("#")[0]

    @property
    def anchor(self) -> str:
        return self.target.partition("#")[2]

    @property
    def external(self) -> bool:
        return bool(EXTERNAL.match(self.target))


def rewritten(text: str, change: Callable[[re.Match], str]) -> str:
    """The text with each token (a match of TOKEN) replaced by what `change` makes of it."""
    return TOKEN.sub(change, text)


def links(text: str) -> Iterator[Link]:
    """Links and pictures of a text, also those in the text of a link; lines count from 1."""
    for token in TOKEN.finditer(text):
        if token["link"]:
            line = text.count("\n", 0, token.start()) + 1
            yield Link(line, token["target"])
            yield from (Link(line, inner.target) for inner in links(token["text"]))


def slug(heading: str) -> str:
    """The anchor of a heading."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", plain.strip().lower()))


def without_code(text: str) -> str:
    """With fenced code left out; lines keep their numbers."""
    return TOKEN.sub(lambda token: "\n" * token[0].count("\n") if token["fence"] else token[0], text)


def anchors(text: str) -> set[str]:
    """Of all headings; one that comes twice gets a number."""
    found: set[str] = set()
    for heading in HEADING.finditer(without_code(text)):
        name = heading[3] or slug(heading[2])
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}-{number}"
        found.add(unique)
    return found


def tracked(root: pathlib.Path) -> list[str]:
    """Files of the repository that are there, by their path from its root."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(name for name in set(listing.split("\0")) if name and (root / name).is_file())


def broken_links(root: pathlib.Path, files: list[str]) -> list[str]:
    """A line for each link in a markdown file to a file or heading that is not there; none for addresses in the web."""
    known = set(files) | {parent.as_posix() for name in files for parent in pathlib.PurePosixPath(name).parents}
    texts = {name: (root / name).read_text() for name in files if name.endswith(".md")}
    headings = {name: anchors(text) for name, text in texts.items()}
    broken = []
    for name, text in texts.items():
        for link in links(text):
            if link.external:
                continue
            target = resolved(name, link.path)
            if target not in known:
                broken.append(f"{name}:{link.line}: {link.target}: no such file in the repository")
            elif (
                link.anchor
                and link.anchor not in headings.get(target, ())
                and not re.fullmatch(r"L\d+(-L\d+)?", link.anchor)
            ):
                broken.append(f"{name}:{link.line}: {link.target}: {target} has no such heading")
    return broken


def resolved(source: str, path: str) -> str:
    """What a path in the file `source` names, from the repository's root; "" for what lies outside of it."""
    if not path:
        return source
    parts: list[str] = []
    for part in [*pathlib.PurePosixPath(source).parent.parts, *path.split("/")]:
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."
