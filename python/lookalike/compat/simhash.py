"""The classes of the package simhash, with its values.

>>> from lookalike.compat.simhash import Simhash
>>> Simhash("How are you? I am fine.").distance(Simhash("How are u? I am fine."))
12
"""

from .._simhash import Simhash, SimhashIndex

__all__ = ["Simhash", "SimhashIndex"]
