"""Line charts as SVG: one line a system, a point a setting; nothing that a browser has to fetch."""
import dataclasses
import html
import math
import pathlib

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 74, 170, 46, 52
# Told apart by people who see colours differently, too (Okabe and Ito), and by their marks.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKS = ("circle", "square", "triangle")


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
        values = [value for line in self.lines for value in line.points.values() if value > 0]
        if not values:
            raise ValueError(f"{self.title}: nothing to draw")
        low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
        high = high if high > low else low * 10
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
                 f'aria-label="{html.escape(self.title)}" font-family="sans-serif" font-size="12">',
                 f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
                 f'<text x="{LEFT}" y="22" font-size="15">{html.escape(self.title)}</text>',
                 f'<text x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 12}" text-anchor="middle">{html.escape(self.x_name)}</text>',
                 f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)" text-anchor="middle">'
                 f'{html.escape(self.y_name)}</text>']
        parts += self._grid(low, high)
        for number, line in enumerate(self.lines):
            parts += self._line(number, line, low, high)
        return "\n".join([*parts, "</svg>", ""])

    def write(self, file: pathlib.Path) -> None:
        file.write_text(self.svg())

    def _x(self, setting: str) -> float:
        steps = max(1, len(self.settings) - 1)
        return LEFT + 16 + self.settings.index(setting) * (WIDTH - RIGHT - LEFT - 32) / steps

    @staticmethod
    def _y(value: float, low: float, high: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    def _grid(self, low: float, high: float) -> list[str]:
        parts = []
        value = low
        while value <= high * 1.001:
            y = self._y(value, low, high)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
                         f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
            value *= 10
        for setting in self.settings:
            parts.append(f'<text x="{self._x(setting):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                         f'{html.escape(setting)}</text>')
        return parts

    def _line(self, number: int, line: Line, low: float, high: float) -> list[str]:
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        parts, path, pen = [], [], "M"
        for setting in self.settings:
            value = line.points.get(setting, 0)
            if value <= 0:
                pen = "M"
                continue
            x, y = self._x(setting), self._y(value, low, high)
            path.append(f"{pen}{x:.1f} {y:.1f}")
            pen = "L"
            fill = "white" if setting in line.lower_bounds else colour
            parts.append(_mark(mark, x, y, colour, fill))
        y = TOP + 8 + 20 * number
        return [f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="2"/>', *parts,
                _mark(mark, WIDTH - RIGHT + 18, y, colour, colour),
                f'<text x="{WIDTH - RIGHT + 30}" y="{y + 4}">{html.escape(line.name)}</text>']


def _mark(kind: str, x: float, y: float, colour: str, fill: str) -> str:
    style = f'fill="{fill}" stroke="{colour}" stroke-width="2"'
    if kind == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {style}/>'
    if kind == "square":
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {style}/>'
    return f'<path d="M{x:.1f} {y - 5:.1f} l5 9 h-10 z" {style}/>'
