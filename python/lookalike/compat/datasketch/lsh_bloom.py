"""The names of `datasketch.lsh_bloom`, for imports from that module."""

from . import BloomTable, MinHashLSHBloom

__all__ = ["BloomTable", "MinHashLSHBloom"]
