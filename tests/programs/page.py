"""The table of docs/PROGRAMS.md."""
import datetime

from harness import table

from row import Row
from runner import ROOT, SKIPPED, Outcome

PAGE = ROOT / "docs" / "PROGRAMS.md"
BEGIN, END = "<!-- programs:begin -->\n", "<!-- programs:end -->\n"
HEADS = ["row", "program", "task", "cap", "native has", "result", "peak", "native", "Spillway", "swap", "remark", "run on"]
MISSING = "-"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _swap(outcome: Outcome) -> str:
    if outcome.swap_s:
        return ("> " if outcome.swap_note else "") + table.seconds(outcome.swap_s)
    return "fails" if outcome.swap_note == "fails" else MISSING


def _cells(outcome: Outcome, day: str) -> list[str]:
    row: Row = outcome.row
    options = f" ({' '.join(row.options)})" if row.options else ""
    return [row.name, _cell(outcome.version) or MISSING, _cell(row.about + options), f"{row.cap_mib} MiB",
            table.mebibytes(outcome.native_peak_bytes) if outcome.native_peak_bytes else f"{row.data_mib} MiB", outcome.result,
            table.mebibytes(outcome.peak_bytes) if outcome.peak_bytes else MISSING,
            table.seconds(outcome.native_s) if outcome.native_s else MISSING,
            table.seconds(outcome.spillway_s) if outcome.spillway_s else MISSING, _swap(outcome),
            _cell(outcome.why), day]


def record(outcome: Outcome) -> None:
    """Replaces the row; the others stay, with the day on which they ran. One that was skipped replaces none that ran."""
    day = datetime.date.today().isoformat()
    before, rest = PAGE.read_text().split(BEGIN)
    old, after = rest.split(END)
    heads, rows, _ = table.split(old)
    kept = {row[0]: row for row in rows} if heads == HEADS else {}
    if outcome.result != SKIPPED or outcome.row.name not in kept:
        kept[outcome.row.name] = _cells(outcome, day)
    text = table.table(HEADS, [kept[name] for name in sorted(kept)])
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{after}")
