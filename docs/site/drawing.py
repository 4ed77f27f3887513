"""A drawing of boxes, arrows and words as SVG, in colours that follow the reader's: light or dark.

In a file of its own it goes by the system's colours; stage.py puts it into a page without its style, and the page has
the colours. Sizes are in the drawing's own units, one of which is a pixel at a width of 760.
"""

import html

WIDTH = 760
COLOURS = {
    "ink": ("#20262e", "#e4e8ec"),
    "soft": ("#5d6875", "#9aa6b2"),
    "paper": ("#ffffff", "#1e2129"),
    "line": ("#aab3bd", "#56606c"),
    "a": ("#d7efe9", "#123a35"),
    "a-line": ("#00796b", "#4db6a6"),
    "b": ("#fde7d9", "#452713"),
    "b-line": ("#d2601a", "#f2935a"),
    "c": ("#e6e9fb", "#262c55"),
    "c-line": ("#4954b5", "#8f9af0"),
    "d": ("#f3f4f6", "#2a2e37"),
}
# What a kind of box stands for: a is memory, b the disk, c the program, d everything else.
KINDS = {
    "a": ("a", "a-line"),
    "b": ("b", "b-line"),
    "c": ("c", "c-line"),
    "d": ("d", "line"),
    "none": ("paper", "line"),
}
CHARACTER = 6.6  # the width of one at the usual size, about


def variables(which: int) -> str:
    """Of the light (0) or the dark (1) colours, in CSS."""
    return " ".join(f"--pic-{name}: {value[which]};" for name, value in COLOURS.items())


def style() -> str:
    """Of a drawing in a file of its own."""
    dark = f"@media (prefers-color-scheme: dark) {{ .spw-picture {{ {variables(1)} }} }}"
    return f"<style>.spw-picture {{ {variables(0)} }} {dark}</style>"


def page_style() -> str:
    """Of pages that have drawings in them."""
    return f":root {{ {variables(0)} }}\n[data-md-color-scheme=slate] {{ {variables(1)} }}\n"


class Drawing:
    """`title` says in a sentence what can be seen, for those who cannot see it."""

    def __init__(self, name: str, height: int, title: str):
        self.name, self.height, self.title = name, height, title
        self.parts: list[str] = []

    def box(self, x, y, width, height, kind, *lines, dashed=False, bold=True, size=13, radius=5):
        """With up to some lines of text in its middle, of which the first is bold."""
        fill, line = KINDS[kind]
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" fill="var(--pic-{fill})" '
            f'stroke="var(--pic-{line})" stroke-width="1.3"{dash}/>'
        )
        step = size + 4
        top = y + height / 2 - step * (len(lines) - 1) / 2 + size * 0.36
        for number, text in enumerate(lines):
            self.text(
                x + width / 2,
                top + number * step,
                text,
                middle=True,
                bold=bold and number == 0,
                soft=number > 0,
                size=size if number == 0 else size - 1.5,
            )

    def cells(self, x, y, width, kinds, texts=(), height=26):
        """A row of small boxes that touch; a kind may end in `-` for one that is dashed."""
        for number, kind in enumerate(kinds):
            text = [texts[number]] if number < len(texts) and texts[number] else []
            self.box(
                x + number * width,
                y,
                width,
                height,
                kind.rstrip("-"),
                *text,
                dashed=kind.endswith("-"),
                size=12,
                radius=2,
            )

    def text(self, x, y, text, middle=False, bold=False, soft=False, size=13, end=False, colour=""):
        anchor = ' text-anchor="middle"' if middle else ' text-anchor="end"' if end else ""
        weight = ' font-weight="600"' if bold else ""
        fill = colour or ("soft" if soft else "ink")
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{anchor}{weight} fill="var(--pic-{fill})">'
            f"{html.escape(text)}</text>"
        )

    def arrow(self, *points, label="", kind="ink", dashed=False, at=None, both=False, middle=False, end=False):
        """Along (x, y) points, with its label at `at` or beside the middle of its longest piece."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        start = f' marker-start="url(#{self.name}-{kind})"' if both else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="var(--pic-{kind})" stroke-width="1.5"{dash}{start} '
            f'marker-end="url(#{self.name}-{kind})"/>'
        )
        if label:
            pieces = list(zip(points, points[1:]))
            (x1, y1), (x2, y2) = max(
                pieces, key=lambda piece: abs(piece[0][0] - piece[1][0]) + abs(piece[0][1] - piece[1][1])
            )
            x, y = at or ((x1 + x2) / 2 + (6 if x1 == x2 else 0), (y1 + y2) / 2 - (6 if y1 == y2 else 0))
            self.text(x, y, label, middle=middle or (at is None and y1 == y2), end=end, soft=True, size=11.5)

    def svg(self) -> str:
        markers = "".join(
            f'<marker id="{self.name}-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0.8 L7.5 4 L0 7.2 z" fill="var(--pic-{kind})"/></marker>'
            for kind in ("ink", "a-line", "b-line", "c-line", "soft")
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="spw-picture" viewBox="0 0 {WIDTH} {self.height}" '
            f'role="img" '
            f"font-family=\"system-ui, 'Segoe UI', Helvetica, 'DejaVu Sans', sans-serif\">\n"
            f"<title>{html.escape(self.title)}</title>\n"
            f"{style()}\n<defs>{markers}</defs>\n"
            f'<rect width="{WIDTH}" height="{self.height}" fill="var(--pic-paper)"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )
