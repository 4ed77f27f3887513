"""A terminal with what was typed and what came, as SVG. Lines that begin with `$ ` were typed; `# ` is a remark."""

import html

CHARACTER, LINE, MARGIN, TOP = 8.43, 19, 18, 46
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
TYPED, SAID, REMARK, PROMPT, BAD = "#ffffff", "#c3cad2", "#7f8b97", "#5fd0bd", "#ff8f70"
NO_BREAK = "\u00a0"  # in place of spaces, of which viewers leave out all but one
COLUMNS_MIN, COLUMNS_MAX = 60, 120


def svg(lines: list[str], title: str) -> str:
    """`lines`: of COLUMNS_MAX characters at most; ValueError otherwise."""
    longest = max(map(len, lines), default=0)
    if longest > COLUMNS_MAX:
        raise ValueError(f"a line of {longest} characters; {COLUMNS_MAX} at most")
    width = round(2 * MARGIN + CHARACTER * max(longest, COLUMNS_MIN))
    height = TOP + LINE * len(lines) + 6
    parts = [
        f'<circle cx="{MARGIN + 4 + 18 * n}" cy="18" r="5.5" fill="{colour}"/>'
        for n, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    ]
    for number, line in enumerate(lines):
        parts.append(f'<text x="{MARGIN}" y="{TOP + LINE * number + 4}">{coloured(line)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="{FONT}" '
        f'font-size="14">\n<title>{html.escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" rx="9" fill="#161b20"/>\n'
        f'<rect width="{width}" height="34" rx="9" fill="#232a31"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def coloured(line: str) -> str:
    span = lambda text, colour: (
        f'<tspan fill="{colour}">{html.escape(text).replace(" ", NO_BREAK)}</tspan>' if text else ""
    )  # noqa: E731
    if line.startswith("$ "):
        command, hash_sign, remark = line[2:].partition("  #")
        return span("$ ", PROMPT) + span(command, TYPED) + span(hash_sign + remark, REMARK)
    if line.startswith("# "):
        return span(line, REMARK)
    return span(line, BAD if line == "Killed" else SAID)
