"""The names of `datasketch.lsh`, for imports from that module."""

from . import MinHashLSH

__all__ = ["MinHashLSH"]
