"""Writes crates/lookalike/src/compat/python/generated.rs: tables of Python 3.11's text methods.

    python3.11 tools/tables/python_text.py            # write the file
    python3.11 tools/tables/python_text.py --check    # fail if it is not what would be written

The interpreter itself answers every question: `str.lower`, the `\\w` of `re`, and, through the rule for
a final sigma, the characters that are cased or that the rule ignores. Only Python 3.11 (Unicode 14) works.
"""

import pathlib
import re
import sys
import unicodedata

OUTPUT = "crates/lookalike/src/compat/python/generated.rs"
POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
SPECIAL = {"\u0130", "\u03a3"}  # one becomes two characters, the other depends on its neighbours


def runs(holds):
    """Returns the first and last of every run of code points for which `holds` is true."""
    found = []
    for point in POINTS:
        if not holds(chr(point)):
            continue
        if found and found[-1][1] == point - 1:
            found[-1][1] = point
        else:
            found.append([point, point])
    return found


def lowered_runs():
    """Returns rows of `[first, last, step, lower of the first]`; every step-th character is lowered alike."""
    found = []
    for point in POINTS:
        lower = chr(point).lower()
        if lower == chr(point) or chr(point) in SPECIAL:
            continue
        assert len(lower) == 1, hex(point)
        distance = ord(lower) - point
        if found:
            first, last, step, to = found[-1]
            gap = point - last
            if to - first == distance and gap <= 2 and (first == last or gap == step):
                found[-1] = [first, point, gap, to]
                continue
        found.append([point, point, 1, ord(lower)])
    return found


def is_ignored(c):
    return ("a" + c + "\u03a3").lower()[-1] == "\u03c2" and (c + "\u03a3").lower()[-1] != "\u03c2"


def is_cased(c):
    return (c + "\u03a3").lower()[-1] == "\u03c2"


def array(name, comment, rows):
    width = len(rows[0])
    lines = [f"/// {comment}", f"pub(super) const {name}: [[u32; {width}]; {len(rows)}] = ["]
    line = "   "
    for row in rows:
        cell = " [" + ", ".join(f"{value:#x}" for value in row) + "],"
        if len(line) + len(cell) > 100:
            lines.append(line)
            line = "   "
        line += cell
    return [lines[0], "#[rustfmt::skip]", *lines[1:], line, "];", ""]


def generate():
    word = re.compile(r"\w")
    lines = [
        "//! Written by `tools/tables/python_text.py`; not edited by hand.",
        "//!",
        f"//! Python 3.11, Unicode {unicodedata.unidata_version}.",
        "",
    ]
    lines += array("WORD", "First and last of every run of characters that `\\w` matches.", runs(word.match))
    lines += array(
        "LOWER",
        "First, last, step, and the lower case of the first, for all but U+0130 and U+03A3.",
        lowered_runs(),
    )
    lines += array("CASED", "First and last of every run of cased characters not in [`IGNORED`].", runs(is_cased))
    lines += array(
        "IGNORED", "First and last of every run of characters that the final sigma looks past.", runs(is_ignored)
    )
    return "\n".join(lines[:-1]) + "\n"


def main():
    if sys.version_info[:2] != (3, 11) or unicodedata.unidata_version != "14.0.0":
        sys.exit(f"this is Python {sys.version.split()[0]}; the tables are those of Python 3.11")
    path = pathlib.Path(__file__).resolve().parents[2] / OUTPUT
    made = generate()
    if sys.argv[1:] == ["--check"]:
        if path.read_text() != made:
            sys.exit(f"{OUTPUT} is stale: run python3.11 {sys.argv[0]}")
    elif sys.argv[1:]:
        sys.exit("the only option is --check")
    else:
        path.write_text(made)


main()
