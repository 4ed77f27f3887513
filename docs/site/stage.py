"""Turns the repository's markdown into the site's pages.

Every link to a file leads to its page, or to a page of its source; one to a file that is not in the repository is an
error. A code span that names a file by enough of its path to tell it apart becomes a link.
"""

import os
import pathlib
import re

import links
import pages

MANUAL = re.compile(r"(?<![\w`/.-])(spw_\w+|spillway(?:-\w+)?(?:\.hpp)?)(?:\((\d)\))")
MANUAL_REFERENCE = re.compile(r"^(?:spw_\w+|spillway(?:-\w+)?(?:\.hpp)?)\(\d\)$")
FILE_SPAN = re.compile(r"^[\w.+-]+(?:/[\w.+-]+)*/?$")
SOURCE_SUFFIXES = (
    ".h",
    ".hpp",
    ".cc",
    ".cpp",
    ".c",
    ".inc",
    ".S",
    ".py",
    ".sh",
    ".ll",
    ".def",
    ".md",
    ".rs",
    ".toml",
    ".json",
    ".cmake",
    ".txt",
)
PICTURES = (".svg", ".png")


class Broken(Exception):
    """A link that leads nowhere; the text says where it stands."""


class Stage:
    """One build of the pages. `root`: the repository; `to`: an empty folder for pages."""

    def __init__(self, root: pathlib.Path, to: pathlib.Path, files: list[str], manual: dict[str, str]):
        self.root, self.to, self.files, self.manual = root, to, files, manual
        self.known = set(files)
        self.folders = {parent.as_posix() for name in files for parent in pathlib.PurePosixPath(name).parents}
        self.by_ending: dict[str, list[str]] = {}
        for name in files:
            for skipped in range(name.count("/") + 1):
                self.by_ending.setdefault(name.split("/", skipped)[-1], []).append(name)
        self.groups = pages.chosen(files)
        self.paths = {file: pages.site_path(file) for _, group in self.groups for _, file in group}
        self.paths |= {file: self.paths[page] for file, page in pages.INCLUDED.items() if file in self.known}
        self.sources: set[str] = set()  # files and folders that pages link to
        self.pictures: set[str] = set()

    def run(self) -> None:
        for file in [file for file in self.paths if not file.startswith("made:") and file not in pages.INCLUDED]:
            self.write(self.paths[file], self.page(file, self.paths[file]))
        for name in sorted(self.pictures):
            self.write("pictures/" + name.rpartition("/")[2], (self.root / name).read_bytes())

    def write(self, path: str, content: str | bytes) -> None:
        file = self.to / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def page(self, file: str, at: str) -> str:
        """The text of a page from its file, with what it includes. Links of an included file start from that file."""
        text = (self.root / file).read_text()
        pieces = re.split(pages.INCLUDE, text, flags=re.MULTILINE)
        made = [self.linked(pieces[0], file, at)]
        for included, rest in zip(pieces[1::2], pieces[2::2]):
            if included in self.known:
                made.append(demoted(self.linked((self.root / included).read_text(), included, at)))
            made.append(self.linked(rest, file, at))
        return "".join(made)

    def linked(self, text: str, file: str, at: str) -> str:
        """`text` of `file` with links that are right in the page `at`."""

        def change(token: re.Match) -> str:
            if token["fence"] or self.in_heading(text, token.start()):
                return token[0]
            if token["code"]:
                return self.code_span(token, file, at)
            return self.link(token, file, at)

        return self.with_manual(links.rewritten(text, change), at)

    @staticmethod
    def in_heading(text: str, place: int) -> bool:
        return text.startswith("#", text.rfind("\n", 0, place) + 1)

    def link(self, token: re.Match, file: str, at: str) -> str:
        target = links.Link(0, token["target"])
        inner = links.rewritten(token["text"], lambda t: self.link(t, file, at) if t["link"] else t[0])
        if target.external or not target.path:
            return f"{token['picture']}[{inner}]({target.target})"
        name = links.resolved(file, target.path)
        if token["picture"] and name.endswith(PICTURES) and name in self.known:
            return self.picture(name, inner, at)
        anchor = "#" + target.anchor if target.anchor else ""
        return f"{token['picture']}[{inner}]({self.place(name, file, at)}{anchor})"

    def picture(self, name: str, text: str, at: str) -> str:
        """Drawings are put into the page, where they follow its colours; others, and charts, are files beside it."""
        drawing = (self.root / name).read_text() if name.endswith(".svg") else ""
        if 'class="spw-picture"' in drawing:
            drawing = re.sub(r"<style>.*?</style>\s*", "", drawing, flags=re.DOTALL)
            return f'<figure class="spw-figure">\n{drawing.strip()}\n</figure>'
        self.pictures.add(name)
        return f"![{text}]({self.relative('pictures/' + name.rpartition('/')[2], at)})"

    def place(self, name: str, file: str, at: str) -> str:
        """What a page at `at` has to say to lead to the file or folder `name`."""
        readme = f"{name}/README.md" if name != "." else "README.md"
        for candidate in (name, readme, f"made:{name}"):
            if candidate in self.paths:
                return self.relative(self.paths[candidate], at)
        if name.startswith("docs/man/") and name.rpartition("/")[2] in self.manual:
            return self.relative("reference/man/" + self.manual[name.rpartition("/")[2]] + ".md", at)
        if name not in self.known and name not in self.folders:
            raise Broken(f"{file}: a link to {name or 'a place outside of the repository'}: there is no such file")
        self.sources.add(name)
        return self.relative(f"source/{name}.html" if name in self.known else f"source/{name}/index.html", at)

    def code_span(self, token: re.Match, file: str, at: str) -> str:
        inner = token["inner"]
        if MANUAL_REFERENCE.match(inner):
            return self.with_manual(inner, at)
        name = self.file_named(inner, file)
        return f"[{token[0]}]({self.place(name, file, at)})" if name and name != file else token[0]

    def file_named(self, span: str, file: str) -> str:
        """The file or folder that a code span names, or "". Paths start at the root, or in the text's own folder."""
        path = span.rstrip("/")
        if not FILE_SPAN.match(span) or not (path.endswith(SOURCE_SUFFIXES) or "/" in span):
            return ""
        beside = links.resolved(file, path)
        for name in (path, beside):
            if name in self.known or name in self.folders and "/" in span:
                return name
        found = self.by_ending.get(path, [])
        near = [name for name in found if name.startswith(file.rpartition("/")[0] + "/")] if "/" in file else []
        return found[0] if len(found) == 1 else near[0] if len(near) == 1 else ""

    def with_manual(self, text: str, at: str) -> str:
        """Names of manual pages in prose, as links; those in code, links and headings stay."""
        pieces, last = [], 0
        for token in links.TOKEN.finditer(text):
            pieces += [self.manual_links(text[last : token.start()], at), token[0]]
            last = token.end()
        return "".join([*pieces, self.manual_links(text[last:], at)])

    def manual_links(self, prose: str, at: str) -> str:
        def change(name: re.Match) -> str:
            page = self.manual.get(f"{name[1]}.{name[2]}")
            return f"[{name[0]}]({self.relative(f'reference/man/{page}.md', at)})" if page else name[0]

        return "".join(
            line if line.startswith("#") else MANUAL.sub(change, line) for line in prose.splitlines(keepends=True)
        )

    @staticmethod
    def relative(path: str, at: str) -> str:
        return os.path.relpath(path, pathlib.PurePosixPath(at).parent)


def demoted(text: str) -> str:
    """With each heading one level lower, for a file that is a section of a page."""
    code = [(token.start(), token.end()) for token in links.TOKEN.finditer(text) if token["fence"]]
    inside = lambda place: any(start <= place < end for start, end in code)  # noqa: E731
    return re.sub(r"^#{1,5} ", lambda m: m[0] if inside(m.start()) else "#" + m[0], text, flags=re.MULTILINE)
