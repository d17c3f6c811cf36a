"""The names of `datasketch.b_bit_minhash`, for imports from that module."""

from . import bBitMinHash

__all__ = ["bBitMinHash"]
