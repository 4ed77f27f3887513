"""Aligned Markdown tables."""


def table(heads: list[str], rows: list[list[str]]) -> str:
    columns = list(zip(*([heads] + rows)))
    widths = [max(len(cell) for cell in column) for column in columns]

    def line(cells, fill=" "):
        return "| " + " | ".join(cell.ljust(width, fill) for cell, width in zip(cells, widths)) + " |"

    return "\n".join([line(heads), line([""] * len(heads), "-"), *(line(row) for row in rows)])


def seconds(value: float) -> str:
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def mebibytes(value: float) -> str:
    return f"{value / (1 << 20):,.0f} MiB"
