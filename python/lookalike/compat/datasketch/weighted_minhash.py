"""The names of `datasketch.weighted_minhash`, for imports from that module."""

from . import WeightedMinHash, WeightedMinHashGenerator

__all__ = ["WeightedMinHash", "WeightedMinHashGenerator"]
