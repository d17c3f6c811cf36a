#!/usr/bin/env python3
"""Records a terminal session as an animated SVG: docs/images/session-en.svg and session-zh.svg.

`session.py PROGRAM` runs the commands below with that `lookalike` in a directory with examples/ and draws what they really
print. Each command appears, then its output, and then all stays; without animation, and for
readers who prefer reduced motion, all of it is visible from the start. `session.py PROGRAM --check` draws nothing and fails
if a file is not what would be drawn.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from html import escape

ROOT = pathlib.Path(__file__).resolve().parents[2]

COMMANDS = [
    "lookalike dedup examples/news.jsonl -o unique.jsonl --removed removed.tsv",
    "lookalike explain removed.tsv zh-tram-5 examples/news.jsonl",
]
CELL, LINE, PADDING, BAR = 8.2, 19, 18, 34
SECONDS_TO_TYPE, SECONDS_TO_READ = 1.2, 2.0


def run_commands(program, language):
    """Returns each command with the lines that it prints."""
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(ROOT / "examples", pathlib.Path(place) / "examples")
        for command in COMMANDS:
            ran = subprocess.run(
                ["sh", "-c", f"{command} --lang {language} 2>&1"],
                cwd=place, env=environment, capture_output=True, text=True, check=True,
            )
            # The time and the speed of a loaded machine say nothing.
            text = re.sub(r"( in |，用时 )\d+\.\d( s| 秒)((: |，)\d+\.\d MB/s)?", r"\g<1>0.0\2", ran.stdout)
            yield command, text.rstrip("\n").split("\n")


def measure_cells(text):
    """Returns the number of terminal cells of a text; a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrap_line(line, cells):
    """Divides a line into pieces of at most so many cells, where possible between words and beside Chinese characters."""
    pieces, piece = [], ""
    for part in re.findall(r"[\u1100-\uffff]|[^\u1100-\uffff\s]+|\s+", line):
        for letters in [part] if measure_cells(part) <= cells else part:
            if measure_cells(piece + letters) > cells:
                pieces.append(piece)
                piece = ""
            piece += letters
    return [*pieces, piece]


def draw_text(text, x, y, colour):
    """Draws runs of narrow and of wide characters, each at its cell, whatever the widths of the font are."""
    parts, cell = [], 0
    for run in re.findall(r"[\u1100-\uffff]+|[^\u1100-\uffff]+", text):
        cells = measure_cells(run)
        if run.strip():
            parts.append(
                f'<text x="{x + cell * CELL:.1f}" y="{y}" fill="{colour}" textLength="{cells * CELL:.1f}" '
                f'lengthAdjust="spacingAndGlyphs" xml:space="preserve">{escape(run)}</text>'
            )
        cell += cells
    return "".join(parts)


def draw_session(session, columns):
    rows, time = [], 0.5
    for command, output in session:
        prompt = f"$ {command}"
        rows.append((prompt, "#7ee787", time))
        time += SECONDS_TO_TYPE
        for line in output:
            rows += [(piece, "#e6edf3", time) for piece in wrap_line(line, columns)]
        rows.append(("", "#e6edf3", time))
        time += SECONDS_TO_READ
    width, height = columns * CELL + 2 * PADDING, BAR + len(rows) * LINE + PADDING
    lines = []
    for number, (text, colour, start) in enumerate(rows):
        if text:
            drawn = draw_text(text, PADDING, BAR + (number + 1) * LINE, colour)
            lines.append(f'<g class="line" style="animation-delay:{start:.2f}s">{drawn}</g>')
    dots = "".join(
        f'<circle cx="{PADDING + 4 + 18 * at}" cy="17" r="6" fill="{colour}"/>'
        for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        "font-family=\"ui-monospace, 'DejaVu Sans Mono', Consolas, 'Noto Sans Mono CJK SC', monospace\" font-size=\"13.5\">\n"
        "<style>@media (prefers-reduced-motion: no-preference) { .line { opacity: 0; animation: appear .15s forwards } } "
        "@keyframes appear { to { opacity: 1 } }</style>\n"
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#0d1117"/>\n{dots}\n' + "\n".join(lines) + "\n</svg>\n"
    )


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit("usage: session.py PROGRAM [--check]")
    program, is_check = pathlib.Path(sys.argv[1]).resolve(), len(sys.argv) == 3
    stale = []
    for language in ("en", "zh"):
        svg = draw_session(list(run_commands(program, language)), 104)
        path = ROOT / f"docs/images/session-{language}.svg"
        if not is_check:
            path.write_text(svg, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != svg:
            stale.append(path.name)
    if stale:
        sys.exit(f"docs/images/ is out of date ({', '.join(stale)}): run tools/site/images PROGRAM")


if __name__ == "__main__":
    main()
