"""Numbers with nouns in messages."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, for example ``1 key`` or ``2 keys``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def omissions(rejected: Sequence[object], missing_ids: int) -> str:
    """Returns what a reader of a result would otherwise miss: rejected rows, and rows without an id."""
    told = ""
    if rejected:
        told += f", {counted(len(rejected), 'row')} rejected"
    if missing_ids:
        told += f", {counted(missing_ids, 'row')} without an id"
    return told
