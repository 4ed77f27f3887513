"""Line charts as SVG, by matplotlib: one line a system, a point a setting."""
import dataclasses
import io
import pathlib
import sys

WIDTH_IN, HEIGHT_IN = 7.2, 4.0
# Told apart by people who see colours differently, too (Okabe and Ito), and by their marks.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKS = ("o", "s", "^")


@dataclasses.dataclass
class Line:
    name: str
    points: dict[str, float]  # by setting; one that is missing breaks the line
    lower_bounds: set[str] = dataclasses.field(default_factory=set)  # "more than": an open mark


@dataclasses.dataclass
class Chart:
    title: str
    x_name: str
    y_name: str
    settings: list[str]  # in order
    lines: list[Line]

    def svg(self) -> str:
        """The same text for the same chart: no date, no random names; letters stay text."""
        import matplotlib  # only who draws needs it
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, NullLocator

        if not any(value > 0 for line in self.lines for value in line.points.values()):
            raise ValueError(f"{self.title}: nothing to draw")
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.title, "font.size": 9}):
            figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
            axes = figure.add_subplot()
            for number, line in enumerate(self.lines):
                self._draw(axes, number, line)
            axes.set(title=self.title, xlabel=self.x_name, ylabel=self.y_name, yscale="log")
            axes.set_xticks(range(len(self.settings)), self.settings)
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(NullLocator())
            axes.grid(axis="y", color="#dddddd")
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0, frameon=False)
            text = io.StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
        return text.getvalue()

    def write(self, file: pathlib.Path) -> None:
        file.write_text(self.svg())

    def _draw(self, axes, number: int, line: Line) -> None:
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        values = [line.points.get(setting, 0) for setting in self.settings]
        axes.plot(range(len(values)), [value if value > 0 else float("nan") for value in values], color=colour, marker=mark, label=line.name)
        for at, setting in enumerate(self.settings):
            if setting in line.lower_bounds and values[at] > 0:
                axes.plot([at], [values[at]], color=colour, marker=mark, markerfacecolor="white", linestyle="none")


def why_not() -> str | None:
    """Why nothing can be drawn here."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return f"no matplotlib for {sys.executable} (Debian: python3-matplotlib)"
    return None
