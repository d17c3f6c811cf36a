"""The names of `datasketch.lshensemble`, for imports from that module."""

from . import MinHashLSHEnsemble

__all__ = ["MinHashLSHEnsemble"]
