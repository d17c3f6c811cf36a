"""The names of `datasketch.aio`, for imports from that module."""

from . import AsyncMinHashLSH

__all__ = ["AsyncMinHashLSH"]
