"""The names of `datasketch.lshforest`, for imports from that module."""

from . import MinHashLSHForest

__all__ = ["MinHashLSHForest"]
