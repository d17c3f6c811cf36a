"""Classes of other packages, with their names, calls and values. A migration changes one import.

>>> from lookalike.compat.datasketch import MinHash, MinHashLSH
>>> from lookalike.compat.rensa import RMinHash
>>> from lookalike.compat.simhash import Simhash

Each module has the names of the package that it is called after. Where these classes are indexes, they answer with
unverified candidates, as there; :func:`lookalike.dedup` and :class:`lookalike.Stream` verify every match on the texts.
"""
