"""Numbers with nouns in messages."""


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, for example ``1 key`` or ``2 keys``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
