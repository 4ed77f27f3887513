"""Pages of source files and folders that the site links to: plain HTML beside the site's own pages, coloured."""

import html
import pathlib

LANGUAGES = {".inc": "cpp", ".def": "text", ".S": "gas", ".ll": "llvm", ".hpp": "cpp", ".h": "cpp", "": "bash"}
TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>
<link rel="stylesheet" href="{top}assets/source.css"><script>
const chosen = localStorage.getItem(new URL("{top}", location).pathname + ".__palette");
const dark = chosen ? JSON.parse(chosen).color.scheme == "slate" : matchMedia("(prefers-color-scheme: dark)").matches;
if (dark) document.documentElement.className = "dark";
</script></head><body><header><a href="{top}index.html">Spillway</a> <span>{trail}</span></header>
{body}
</body></html>
"""


def write(root: pathlib.Path, to: pathlib.Path, names: set[str], files: list[str]) -> None:
    """A page for each of `names`, files or folders of the repository, below `to`/source."""
    for name in sorted(names):
        folder = name == "." or (root / name).is_dir()
        page = to / "source" / (f"{name}/index.html" if folder else f"{name}.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        top = "../" * (len(page.relative_to(to).parts) - 1)
        body = listing(name, files, names, top) if folder else coloured(root / name)
        page.write_text(TEMPLATE.format(name=html.escape(name), trail=html.escape(name), top=top, body=body))


def listing(folder: str, files: list[str], shown: set[str], top: str) -> str:
    start = "" if folder == "." else folder + "/"
    rows = []
    for name in files:
        if name.startswith(start):
            text = html.escape(name.removeprefix(start))
            rows.append(
                f'<li><a href="{top}source/{name}.html">{text}</a></li>' if name in shown else f"<li>{text}</li>"
            )
    return "<ul>\n" + "\n".join(rows) + "\n</ul>"


def coloured(file: pathlib.Path) -> str:
    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter

    text = file.read_text(errors="replace")
    language = LANGUAGES.get(file.suffix)
    try:
        lexer = lexers.get_lexer_by_name(language) if language else lexers.get_lexer_for_filename(file.name)
    except lexers.ClassNotFound:
        lexer = lexers.get_lexer_by_name("text")
    # A line's anchor is L and its number, as on code hosts.
    made = highlight(text, lexer, HtmlFormatter(linenos="inline", lineanchors="L", nobackground=True))
    return made.replace('id="L-', 'id="L').replace('name="L-', 'name="L')


def style() -> str:
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".dark .highlight")
    return "\n".join((light, dark, (pathlib.Path(__file__).parent / "source.css").read_text()))
