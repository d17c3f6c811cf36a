"""Results as HTML, for notebooks."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

#: Bars of a histogram and largest clusters that are shown.
_BARS = 10
_CLUSTERS = 5

_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"


def escape(text: str) -> str:
    """Returns a text as HTML."""
    # The module has a table of all named characters, which few programs need.
    from html import escape

    return escape(text)


def page(title: str, *parts: str) -> str:
    """Returns a title and parts of HTML as one."""
    return f'<div style="font-size:90%"><p><b>{escape(title)}</b></p>{"".join(parts)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table; an empty string if it has no rows."""
    lines = ["".join(f'<td style="{_CELL}">{escape(str(cell))}</td>' for cell in row) for row in rows]
    if not lines:
        return ""
    titles = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"


def histogram(similarities: Iterable[float]) -> str:
    """Returns the numbers of similarities between 0 and 1 as bars; an empty string if there are none."""
    counts = [0] * _BARS
    for similarity in similarities:
        # One more than a tenth below 1 is in the last bar.
        counts[min(int(similarity * _BARS), _BARS - 1)] += 1
    most = max(counts)
    if not most:
        return ""
    first = next(at for at, count in enumerate(counts) if count)
    rows = [
        (f"{at / _BARS:.1f}–{(at + 1) / _BARS:.1f}", counts[at], "█" * -(-20 * counts[at] // most))
        for at in range(first, _BARS)
    ]
    return table(["similarity", "pairs", ""], rows)


def largest_clusters(clusters: Any) -> str:
    """Returns the largest clusters of a table with the column ``cluster``: representative and number of rows."""
    if clusters is None or not clusters.num_rows:
        return ""
    counts = clusters["cluster"].value_counts().to_pylist()
    counts.sort(key=lambda one: -one["counts"])
    return table(["largest clusters", "documents"], [(one["values"], one["counts"]) for one in counts[:_CLUSTERS]])
