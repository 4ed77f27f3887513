"""What a benchmark found: rows, what was skipped, and how they are written down."""
import dataclasses
import json
import pathlib
import statistics
import sys

from . import table


@dataclasses.dataclass
class Row:
    section: str
    name: str
    spillway: float = 0
    peer: float = 0
    unit: str = "s"
    ratio: float = 0  # smaller is better where `at_most`, larger where not
    at_most: bool = True
    target: float = 0  # 0: none
    peer_is_lower_bound: bool = False
    note: str = ""
    failed: bool = False
    details: dict = dataclasses.field(default_factory=dict)

    def met(self) -> str:
        if self.failed:
            return "failed"
        if self.target == 0:
            return ""
        if self.at_most:
            return "yes" if self.ratio <= self.target else "no"
        # A lower bound below the target says neither.
        return "yes" if self.ratio >= self.target else "unknown" if self.peer_is_lower_bound else "no"


@dataclasses.dataclass
class Report:
    name: str  # of the benchmark
    rows: list[Row] = dataclasses.field(default_factory=list)
    skipped: list[dict] = dataclasses.field(default_factory=list)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def skip(self, what: str, why: str) -> None:
        self.skipped.append({"what": what, "why": why})
        self.say(f"skipped: {what}: {why}")

    def failure(self, section: str, name: str, why: str) -> None:
        self.rows.append(Row(section, name, note=why, failed=True))
        self.say(f"FAILED: {name}: {why}")

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.say(f"{row.section}: {row.name}: ratio {row.ratio:.3g}")

    def failed(self) -> bool:
        return any(row.failed for row in self.rows)

    def add_mean(self, section: str, name: str, rows: list[Row], target: float) -> None:
        """The geometric mean of rows of one kind. A lower bound where one of them is."""
        if rows:
            first = rows[0]
            self.add(Row(section, name, ratio=statistics.geometric_mean(row.ratio for row in rows),
                         at_most=first.at_most, target=target, note=f"of {len(rows)}",
                         peer_is_lower_bound=any(row.peer_is_lower_bound for row in rows)))

    def markdown(self, about: dict) -> str:
        cells = []
        for row in self.rows:
            more = "> " if row.peer_is_lower_bound else ""
            target = f"{'≤' if row.at_most else '≥'} {row.target:g}" if row.target else ""
            peer = more + _shown(row.peer, row.unit) if row.peer else ""
            cells.append([row.section, row.name, _shown(row.spillway, row.unit), peer,
                          f"{more}{_ratio(row.ratio)}" if row.ratio else "", target, row.met(), row.note])
        lines = [f"{key}: {value}  " for key, value in about.items()]
        heads = ["section", "what", "Spillway", "peer", "ratio", "target", "met", "note"]
        lines += ["", table.table(heads, cells)]
        lines += ["", *(f"Skipped: {skip['what']}: {skip['why']}  " for skip in self.skipped)] if self.skipped else []
        return "\n".join(lines) + "\n"

    def write(self, results: pathlib.Path, about: dict) -> str:
        """Writes NAME.json and NAME.md into a directory, and returns the latter's text."""
        text = self.markdown(about)
        rows = [dataclasses.asdict(row) | {"met": row.met()} for row in self.rows]
        report = {"bench": self.name, "about": about, "rows": rows, "skipped": self.skipped}
        (results / f"{self.name}.json").write_text(json.dumps(report, indent=1) + "\n")
        (results / f"{self.name}.md").write_text(text)
        self.say(f"written: {results}/{self.name}.json and .md")
        return text

    def update_docs(self, page: pathlib.Path, text: str) -> None:
        """Replaces what stands between this benchmark's marks on a page, but for rows of sections that did not run this time: they stay,
        with a line that says whence they are."""
        begin, end = f"<!-- {self.name}:begin -->\n", f"<!-- {self.name}:end -->\n"
        before, rest = page.read_text().split(begin)
        old, after = rest.split(end)
        page.write_text(before + begin + _with_kept_rows(old, text) + end + after)


def _with_kept_rows(old: str, new: str) -> str:
    heads, rows, (about, behind) = table.split(new)
    old_heads, old_rows, (old_about, _) = table.split(old)
    ran = {row[0] for row in rows}
    kept = [row for row in old_rows if row[0] not in ran]
    if heads != old_heads or not kept:
        return new
    order = list(dict.fromkeys([row[0] for row in old_rows] + [row[0] for row in rows]))
    merged = [row for section in order for row in rows + kept if row[0] == section]
    whence = [line for line in old_about.splitlines() if line.startswith(("commit:", "date:", "earlier"))]
    names = ", ".join(section for section in order if section not in ran)
    earlier = f"earlier ({names}): {'; '.join(line.strip() for line in whence)}  \n"
    return about.rstrip("\n") + "\n" + earlier + "\n" + table.table(heads, merged) + "\n" + behind


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def _shown(value: float, unit: str) -> str:
    if value == 0:
        return ""
    return table.seconds(value) if unit == "s" else f"{value:,.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
