"""Fingerprints as a transformer of scikit-learn, for pipelines of texts.

>>> from lookalike.sklearn import FingerprintTransformer
>>> bits = FingerprintTransformer().fit_transform(["The ferry leaves at seven.", "A bridge over the river."])
>>> bits.shape, bits.dtype
((2, 64), dtype('uint8'))

Texts are one column, as for the text vectorizers of scikit-learn. A frame is refused:

>>> from sklearn.compose import ColumnTransformer
>>> columns = ColumnTransformer([("fingerprint", FingerprintTransformer(), "text")])  # not ["text"], which is a frame
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _arguments as arguments
from ._data import is_missing
from ._recipe import RecipeLike, recipe_of
from ._sketch import minhash, simhash
from ._words import counted

__all__ = ["FingerprintTransformer"]


class FingerprintTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns texts into the bits of their fingerprints, or into the slots of their signatures.

    A text that is missing (None, NaN) or too short for a fingerprint has zeros. Nothing is learned from the texts of
    :meth:`fit`, which takes over the parameters. Later changes of the parameters need another :meth:`fit`.

    Parameters
    ----------
    kind : {"simhash", "minhash"}, default="simhash"
        "simhash" gives a column of 0 or 1 for each bit, the highest first; "minhash" a column of whole numbers for each
        slot. The share of equal columns compares two texts.
    recipe : str, path, Recipe or mapping, default="default"
        A name, a file, TOML, a dictionary or a :class:`Recipe`.
    threads : int, default=None
        Number of threads; by default one for each core.

    Attributes
    ----------
    kind_ : str
        The kind of the columns.
    recipe_ : Recipe
        The loaded recipe.
    n_features_out_ : int
        Number of columns.
    n_missing_ : int
        Number of missing texts in :meth:`fit`.
    """

    def __init__(self, kind: str = "simhash", recipe: RecipeLike = "default", threads: Optional[int] = None) -> None:
        self.kind = kind
        self.recipe = recipe
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> "FingerprintTransformer":
        """Checks the parameters and the texts.

        Parameters
        ----------
        X : iterable of str
            A list, an array of one dimension, or a column of a frame. A frame is refused.
        y : None
            It is ignored.

        Returns
        -------
        FingerprintTransformer
            The transformer itself.
        """
        texts = _texts(X)
        if self.kind not in ("simhash", "minhash"):
            raise ValueError(f"kind is {self.kind!r}: give 'simhash' or 'minhash'")
        arguments.threads(self.threads)
        self.n_missing_ = sum(text is None for text in texts)
        self.kind_ = self.kind
        self.recipe_ = recipe_of(self.recipe)
        self.n_features_out_ = self.recipe_.bits if self.kind_ == "simhash" else self.recipe_.slots
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Returns the columns of the texts after :meth:`fit` with them."""
        # Both read the texts, and an iterator can be read only once.
        return super().fit_transform(list(X) if isinstance(X, Iterator) else X, y, **fit_params)

    def transform(self, X: Any) -> np.ndarray:
        """Returns one row for each text.

        Parameters
        ----------
        X : iterable of str
            As in :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_texts, n_features_out_)
            Numbers of type uint8 for "simhash", and uint32 for "minhash".

        Raises
        ------
        NotFittedError
            :meth:`fit` was not called.
        """
        check_is_fitted(self)
        texts = _texts(X)
        if self.kind_ == "minhash":
            return np.ma.filled(minhash(texts, recipe=self.recipe_, threads=self.threads), 0)
        words = np.ma.filled(simhash(texts, recipe=self.recipe_, threads=self.threads), 0)
        words = words.reshape(len(texts), -(-self.n_features_out_ // 64))
        # Big-endian bytes have the highest bit first; the highest word is the last one.
        rows = np.ascontiguousarray(words[:, ::-1]).astype(">u8").view(np.uint8).reshape(len(texts), 8 * words.shape[1])
        return np.unpackbits(rows, axis=1)[:, -self.n_features_out_ :]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Returns the names of the columns."""
        check_is_fitted(self)
        noun = "bit" if self.kind_ == "simhash" else "slot"
        return np.array([f"{noun}{at}" for at in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        tags.no_validation = True
        return tags


def _texts(X: Any) -> list[Optional[str]]:
    _refuse_tables(X)
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ValueError(f"X is of the type {type(X).__name__}: give a list of texts")
    texts = [None if is_missing(text) else text for text in X]
    for at, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise ValueError(f"X[{at}] is of the type {type(text).__name__}: give texts")
    return texts


def _refuse_tables(X: Any) -> None:
    """Refuses what has columns or other dimensions than one, because its elements are no texts, but names or rows."""
    kind = f"X is a {type(X).__name__}"
    if hasattr(X, "columns") or hasattr(X, "column_names") or isinstance(X, Mapping):
        raise ValueError(
            f'{kind}: give one column, such as X["text"]; in a ColumnTransformer, give "text" and not ["text"]'
        )
    dimensions = len(getattr(X, "shape", (0,)))
    if dimensions != 1:
        raise ValueError(f"{kind} of {counted(dimensions, 'dimension')}: give an array of one dimension, such as X[:, 0]")
