"""Words for messages."""


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 key``, ``2 keys``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
