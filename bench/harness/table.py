"""Aligned Markdown tables."""


def table(heads: list[str], rows: list[list[str]]) -> str:
    columns = list(zip(*([heads] + rows)))
    widths = [max(len(cell) for cell in column) for column in columns]

    def line(cells, fill=" "):
        return "| " + " | ".join(cell.ljust(width, fill) for cell, width in zip(cells, widths)) + " |"

    return "\n".join([line(heads), line([""] * len(heads), "-"), *(line(row) for row in rows)])


def split(text: str) -> tuple[list[str], list[list[str]], tuple[str, str]]:
    """The first table of a text: heads, rows, and the text before and after it. Without one, all of the text is before."""
    lines = text.splitlines(keepends=True)
    inside = [i for i, line in enumerate(lines) if line.startswith("|")]
    if len(inside) < 2:
        return [], [], (text, "")
    first = inside[0]
    end = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    heads, _, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines[first:end]]
    return heads, rows, ("".join(lines[:first]), "".join(lines[end:]))


def seconds(value: float) -> str:
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def mebibytes(value: float) -> str:
    return f"{value / (1 << 20):,.0f} MiB"
