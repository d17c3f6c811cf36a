"""The names of `datasketch.minhash`, for imports from that module."""

from . import MinHash

__all__ = ["MinHash"]
