"""The manual pages as pages of the site, by mandoc, which reads man(7) and writes HTML."""

import html
import pathlib
import re
import shutil
import subprocess

ALIAS = re.compile(r"^\.so man\d/(\S+)")
HEADING = re.compile(r'<h([12]) class="S[hs]" id="([^"]+)"><a[^>]*>(.*?)</a></h\1>', re.DOTALL)
REFERENCE = re.compile(r"<b>((?:spw_|spillway)[\w.-]*)</b>\((\d)\)")


def pages(folder: pathlib.Path) -> dict[str, str]:
    """For each file of the folder, the name of its page: that of another file where it only refers to it."""
    found = {}
    for file in sorted(folder.iterdir()):
        alias = ALIAS.match(file.read_text())
        found[file.name] = alias[1] if alias else file.name
    return found


def text_of(file: pathlib.Path) -> str:
    done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", file], capture_output=True, text=True, check=True)
    return done.stdout


def page(file: pathlib.Path, known: dict[str, str]) -> str:
    """Markdown whose headings the site knows and whose rest is mandoc's. `known`: as pages() gives it."""
    body = text_of(file)
    body = re.sub(r'<table class="(?:head|foot)">.*?</table>', "", body, flags=re.DOTALL)
    body = re.sub(r'</?(?:section|div)(?: class="(?:S[hs]|manual-text)")?>\n?', "", body)
    body = re.sub(r"\n<br/>\n", "\n", body)
    body = re.sub(
        r'<a class="permalink" href="#[^"]*">(.*?)</a>', r"\1", re.sub(HEADING, heading, body), flags=re.DOTALL
    )
    body = REFERENCE.sub(
        lambda m: (
            f'<a href="{known[m[1] + "." + m[2]]}.html"><b>{m[1]}</b>({m[2]})</a>'
            if f"{m[1]}.{m[2]}" in known
            else m[0]
        ),
        body,
    )
    blocks = [
        block if block.startswith("\n##") else f'<div class="manual">\n{without_empty_lines(block)}\n</div>\n'
        for block in re.split(r"(\n##+ [^\n]*\n)", body)
        if block.strip()
    ]
    name, section = file.name.rsplit(".", 1)
    return f"# {name}({section})\n\n" + "\n".join(blocks)


def heading(match: re.Match) -> str:
    title = " ".join(html.unescape(re.sub(r"<[^>]+>", "", match[3])).split())
    if title.isupper():
        title = title.capitalize()
    return f"\n{'#' * (int(match[1]) + 1)} {title} {{#{match[2].lower()}}}\n"


def without_empty_lines(block: str) -> str:
    """An empty line ends raw HTML in markdown, so those of programs in <pre> become lines with a space."""
    return re.sub(r"\n(?=\n)", "\n&#8203;", block.strip("\n"))


def index(folder: pathlib.Path, known: dict[str, str]) -> str:
    """A list of all pages with what each is about."""
    made = ["# Manual pages", "What `man` shows once Spillway is installed."]
    titles = {"1": "Commands", "7": "Concepts", "3": "Functions"}
    for section, title in titles.items():
        made.append(f"## {title}")
        rows = []
        for name in sorted({page for page in known.values() if page.endswith("." + section)}):
            about = re.search(r"^\.SH NAME\n(.*?)^\.SH", (folder / name).read_text(), re.MULTILINE | re.DOTALL)
            names, _, what = re.sub(r"\\f.|\\", "", about[1]).replace("\n", " ").partition(" - ")
            listed = ", ".join(f"`{one.strip()}`" for one in names.split(","))
            rows.append(
                f"- [{name.rsplit('.', 1)[0]}({section})](man/{name}.md): {what.strip()}"
                + (f" ({listed})" if "," in names else "")
            )
        made.append("\n".join(rows))
    return "\n\n".join(made) + "\n"


def why_not() -> str:
    return (
        "" if shutil.which("mandoc") else "mandoc is missing, which makes pages of the manual: apt-get install mandoc"
    )
