"""Fingerprints as a transformer of scikit-learn, for pipelines of texts.

>>> from lookalike.sklearn import FingerprintTransformer
>>> bits = FingerprintTransformer().fit_transform(["The ferry leaves at seven.", "A bridge over the river."])
>>> bits.shape, bits.dtype
((2, 64), dtype('uint8'))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._data import is_missing
from ._recipe import RecipeLike, recipe_of
from ._sketch import minhash, simhash

__all__ = ["FingerprintTransformer"]


class FingerprintTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns texts into the bits of their fingerprints, or into the slots of their signatures.

    Parameters
    ----------
    kind : "simhash" for one column of 0 or 1 for each bit, the highest first; "minhash" for one column of whole
        numbers for each slot. Hamming distance compares both: the share of equal bits or slots.
    recipe : a name, a file, TOML, a dictionary or a `Recipe`.
    threads : number of threads; by default one per core.

    A text that is missing (None, NaN) or too short for a fingerprint has zeros. Nothing is learned from the texts of
    `fit`, which counts the missing ones in ``n_missing_``.
    """

    def __init__(self, kind: str = "simhash", recipe: RecipeLike = "default", threads: Optional[int] = None) -> None:
        self.kind = kind
        self.recipe = recipe
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> "FingerprintTransformer":
        """Checks the parameters. `X` is a list of texts."""
        self.n_missing_ = sum(text is None for text in _texts(X))
        if self.kind not in ("simhash", "minhash"):
            raise ValueError(f"kind is {self.kind!r}: give 'simhash' or 'minhash'")
        self.recipe_ = recipe_of(self.recipe)
        self.n_features_out_ = self.recipe_.bits if self.kind == "simhash" else self.recipe_.slots
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Returns one row for each text."""
        check_is_fitted(self)
        texts = _texts(X)
        if self.kind == "minhash":
            return np.ma.filled(minhash(texts, recipe=self.recipe_, threads=self.threads), 0)
        words = np.ma.filled(simhash(texts, recipe=self.recipe_, threads=self.threads), 0).reshape(len(texts), -1)
        # Big-endian bytes have the highest bit first; the highest word is the last one.
        rows = np.ascontiguousarray(words[:, ::-1]).astype(">u8").view(np.uint8).reshape(len(texts), -1)
        return np.unpackbits(rows, axis=1)[:, -self.n_features_out_ :]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Returns the names of the columns."""
        check_is_fitted(self)
        noun = "bit" if self.kind == "simhash" else "slot"
        return np.array([f"{noun}{at}" for at in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.requires_fit = False
        return tags


def _texts(X: Any) -> list[Optional[str]]:
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ValueError(f"X is of the type {type(X).__name__}: give a list of texts")
    texts = [None if is_missing(text) else text for text in X]
    for at, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"X[{at}] is of the type {type(text).__name__}: give texts")
    return texts
