"""The names of `datasketch.hyperloglog`, for imports from that module."""

from . import HyperLogLog, HyperLogLogPlusPlus

__all__ = ["HyperLogLog", "HyperLogLogPlusPlus"]
