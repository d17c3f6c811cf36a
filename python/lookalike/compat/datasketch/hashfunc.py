"""The names of `datasketch.hashfunc`, for imports from that module."""

from . import sha1_hash32, sha1_hash64

__all__ = ["sha1_hash32", "sha1_hash64"]
