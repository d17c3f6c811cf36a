"""Fingerprints and signatures of many texts."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _arguments as arguments
from . import _engine
from ._data import few_texts_of
from ._keywords import suggest_keywords
from ._recipe import RecipeLike, recipe_of

_Word = TypeVar("_Word", np.uint32, np.uint64)


@suggest_keywords
def simhash(texts: Any, *, recipe: RecipeLike = "default", threads: Optional[int] = None) -> NDArray[np.uint64]:
    """Returns the SimHash fingerprint of each text.

    Parameters
    ----------
    texts : list of str, column or str
        The texts, or one text.
    recipe : str, path, Recipe or dict
        It turns texts into features.
    threads : int, optional
        Number of threads; by default one for each core.

    Returns
    -------
    ndarray of uint64
        A fingerprint of more than 64 bits is a row of two words, the lower word first. Texts that are too short for a
        fingerprint, and nulls, are masked; the array is then a ``numpy.ma.MaskedArray``.

    Raises
    ------
    InputError
        An element is no text.

    >>> import lookalike as la
    >>> a, b = la.simhash(["The ferry leaves at seven.", "THE FERRY leaves at seven!"])
    >>> a == b
    np.True_
    """
    words, missing = _engine.simhash(few_texts_of(texts), recipe_of(recipe), arguments.threads(threads))
    return _masked(words[:, 0] if words.shape[1] == 1 else words, missing)


@suggest_keywords
def minhash(texts: Any, *, recipe: RecipeLike = "default", threads: Optional[int] = None) -> NDArray[np.uint32]:
    """Returns the MinHash signature of each text.

    Parameters
    ----------
    texts, recipe, threads
        As in :func:`simhash`.

    Returns
    -------
    ndarray of uint32
        A row for each text, with a column for each slot of the recipe. The share of equal slots of two rows estimates the
        Jaccard index of the texts. Texts that are too short are masked as in :func:`simhash`.

    Raises
    ------
    InputError
        An element is no text.

    >>> import lookalike as la
    >>> a, b = la.minhash(["the ferry leaves at seven", "the ferry leaves at eight"])
    >>> a.shape, a.dtype
    ((128,), dtype('uint32'))
    >>> float((a == b).mean())
    0.6015625
    """
    slots, missing = _engine.minhash(few_texts_of(texts), recipe_of(recipe), arguments.threads(threads))
    return _masked(slots, missing)


def _masked(values: NDArray[_Word], missing: NDArray[np.bool_]) -> NDArray[_Word]:
    if not missing.any():
        return values
    mask = missing if values.ndim == 1 else np.repeat(missing[:, None], values.shape[1], axis=1)
    return np.ma.MaskedArray(values, mask)
