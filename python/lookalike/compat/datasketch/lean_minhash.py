"""The names of `datasketch.lean_minhash`, for imports from that module."""

from . import LeanMinHash

__all__ = ["LeanMinHash"]
