"""The API reference: a page of markdown from a public header.

It reads the layout that our headers keep: a comment that opens the file, `/* ---- Title ---- */` before a part, and a
comment right before the declarations it is about, which end at an empty line.
"""

import dataclasses
import re

COMMENT = re.compile(r"/\*.*?\*/|(?://[^\n]*\n?)+", re.DOTALL)
PART = re.compile(r"^-{4} (.+?) -{4}$")
# What is there for the compiler only.
NOISE = re.compile(
    r'^#(?:ifndef|ifdef|endif|include|if|else)\b.*$|^#define \w+_H(?:PP)?$|^extern "C" \{$|'
    r"^namespace \w+ \{$|^\}(?:  // namespace.*)?$",
    re.MULTILINE,
)
NAMES = (
    re.compile(r"^#define (\w+)", re.MULTILINE),
    re.compile(r"^(?:typedef )?(?:struct|enum|class) (\w+)(?= [{\w])(?!.*\()", re.MULTILINE),
    re.compile(r"^(?!typedef|struct \w+ \{|enum|#| |return)[\w ][\w:<>*& ]*?[ *&](\w+)\(", re.MULTILINE),
)
NEW_PARAGRAPH = re.compile(r"^(?:Errors|Threads|Limits|Bounds):|^What (?:will hurt|is promised)\b")
IDENTIFIER = re.compile(
    r"(`[^`]+`|(?<![\w\[/-])\*?(?:spw_|SPW_|spillway::)\w+(?:\.\.\.)?(?:\(\))?(?![\w(])|(?<![\w\[/-])-E[A-Z0-9]{2,}\b)"
)


@dataclasses.dataclass
class Item:
    comment: str
    code: str

    @property
    def names(self) -> list[str]:
        found = [(match.start(), match[1]) for pattern in NAMES for match in pattern.finditer(self.code)]
        return list(dict.fromkeys(name for _, name in sorted(found) if not name.endswith("_")))


def comment_text(comment: str) -> str:
    """Without the signs of a comment; what is indented stays so."""
    if comment.startswith("/*"):
        lines = comment[2:-2].split("\n")
        return "\n".join(
            [
                lines[0].strip(),
                *(
                    re.sub(r"^ *\*? ?", "", line, count=1).rstrip()
                    if re.match(r"^ *\*", line)
                    else re.sub(r"^ {0,3}", "", line).rstrip()
                    for line in lines[1:]
                ),
            ]
        ).strip("\n")
    return "\n".join(re.sub(r"^// ?", "", line).rstrip() for line in comment.strip().split("\n"))


def items(header: str) -> tuple[str, list[Item]]:
    """The comment that opens a header, and what comes after it in order; a part is an item without code."""
    opening = COMMENT.match(header)
    if not opening:
        raise ValueError("a header opens with a comment")
    rest = NOISE.sub("", header[opening.end() :])
    found: list[Item] = []
    for piece in re.split(r"\n\s*\n(?=[^\s}])", rest):
        while piece.strip():
            piece = piece.strip("\n")
            comment = COMMENT.match(piece)
            text = comment_text(comment[0]) if comment else ""
            code = piece[comment.end() :] if comment else piece
            again = re.search(
                r"^(?:/\*|//)", code.lstrip("\n"), re.MULTILINE
            )  # another comment at the margin: the next item
            cut = len(code) - len(code.lstrip("\n")) + again.start() if again else len(code)
            if again and not code[:cut].strip() and not text:
                break
            found.append(Item(text, code[:cut].strip("\n")))
            piece = code[cut:]
    return comment_text(opening[0]), found


def declared(code: str) -> str:
    """A class as its user sees it: no private part, no bodies of functions."""
    if not re.search(r"^class \w+", code, re.MULTILINE):
        return (
            code
            if "{" not in code or re.match(r"^(?:typedef |struct|enum)", code)
            else re.sub(r" \{\n.*", ";", code, flags=re.DOTALL)
        )
    code = re.sub(r"^ private:\n.*?(?=^\};)", "", code, flags=re.MULTILINE | re.DOTALL)
    head, _, body = code.partition("{")
    made, depth = [], 0
    for sign in body[: body.rindex("}")]:
        if sign == "{":
            depth += 1
            if depth == 1:
                text = "".join(made)
                made = [re.sub(r"\)\s*((?:const|noexcept)?)\s*:\s[^;]*$", r") \1", text).rstrip() + ";"]
        elif sign == "}":
            depth -= 1
        elif depth == 0 and not (sign == ";" and made[-1:] and made[-1].endswith(";")):
            made.append(sign)
    return f"{head}{{{''.join(made)}}};"


def prose(text: str, anchors: dict[str, str]) -> str:
    """A comment as markdown: paragraphs, lists, and what is laid out by spaces as it is."""
    made, kind = [], ""
    for line in text.split("\n"):
        bullet = re.match(r"^ {0,2}- ", line)
        laid_out = (
            re.match(r"^ {2,}\S", line)
            and not bullet
            and (kind == "pre" or re.search(r"\S {3,}\S", line) or line.startswith("    "))
        )
        if bullet:
            made.append(("" if kind == "list" else "\n") + "- " + marked(line.strip()[2:], anchors))
            kind = "list"
        elif kind == "list" and line.startswith("   "):
            made.append("  " + marked(line.strip(), anchors))
        elif laid_out:
            made.append(line if kind == "pre" else "\n```text\n" + line)
            kind = "pre"
        else:
            close = "```\n" if kind == "pre" else "\n" if kind == "list" or NEW_PARAGRAPH.match(line) else ""
            heading = NEW_PARAGRAPH.match(line) and ":" not in line
            made.append(close + (f"**{line.strip()}**" if heading else marked(line.strip(), anchors)))
            kind = "text"
    return "\n".join(made) + ("\n```" if kind == "pre" else "")


def marked(line: str, anchors: dict[str, str]) -> str:
    """Names as code, and as links to where they are declared."""
    pieces = IDENTIFIER.split(line)
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            pieces[place] = re.sub(r"([*<\[])", r"\\\1", piece)
            continue
        if piece.startswith("`"):
            continue
        anchor = anchors.get(piece.strip("*").removesuffix("()").removeprefix("spillway::"))
        pieces[place] = f"[`{piece}`](#{anchor})" if anchor else f"`{piece}`" + "{.unbroken}" * piece.startswith("-")
    return "".join(pieces)


def page(path: str, header: str) -> str:
    """The page of the header at `path`, of which programs include all behind include/."""
    opening, found = items(header)
    anchors = {name: item.names[0].lower() for item in found for name in item.names}
    made = [
        f"# {path.rpartition('/')[2]}",
        f"```c\n#include <{path.removeprefix('include/')}>\n```",
        prose(opening, anchors),
    ]
    level = "##"
    for item in found:
        part = PART.match(item.comment.split("\n")[0])
        if part:
            rest = item.comment.partition("\n")[2]
            title, dot, text = part[1].partition(". ")
            made += [f"## {title}", prose(text + rest, anchors) if dot or rest else ""]
            level = "###"
        elif item.comment.startswith("----"):
            title, _, text = item.comment.strip("- \n").replace("\n", " ").partition(" ---- ")
            made += [f"## {title}", prose(text, anchors)]
            level = "###"
        if item.code:
            names = item.names
            if names:
                shown = ", ".join(f"`{name}`" for name in names[:3]) + " …" * (len(names) > 3)
                made.append(f"{level} {shown} {{#{names[0].lower()}}}")
            made += [f"```{'cpp' if path.endswith('pp') else 'c'}\n{declared(item.code)}\n```"]
            if not part:
                made.append(prose(item.comment, anchors))
    return "\n\n".join(piece for piece in made if piece) + "\n"
