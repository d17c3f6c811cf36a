"""Choices of arguments by name, for type checkers. The engine refuses other names with the list of all."""

from __future__ import annotations

from typing import Literal, Union

#: Ways to find candidates.
Method = Literal["auto", "minhash", "simhash", "exact", "join", "sentences", "bottomk"]
#: Measures that verify a pair.
Measure = Literal["jaccard", "containment", "cosine", "levenshtein", "indel", "lcs", "none"]
#: Candidates of fingerprints.
Candidates = Literal["distance", "blocks"]
#: Units of edit distances.
Unit = Literal["characters", "words"]
#: Units of positions in texts.
Offsets = Literal["characters", "bytes"]
#: Orders of passages.
PassageOrder = Literal["position", "longest", "copied"]
#: Parts of a document that are taken out.
Cut = Literal["document", "passage", "sentence"]
#: The ids of rows: a field, or False for the numbers of the rows. True has no meaning.
IdField = Union[str, Literal[False], None]
