"""Comparison of two texts, and texts as tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _arguments as arguments
from . import _engine, _notebook
from ._choices import Candidates, IdField, Measure, Method, Unit
from ._data import Names, refuse_repeated, stream_of
from ._errors import ArgumentTypeError, InputError
from ._keywords import suggest_keywords
from ._messages import with_remedies
from ._recipe import RecipeLike, recipe_of
from ._result_tables import ResultTable

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from ._type_modules import pa


class MeasuredValue(NamedTuple):
    """One similarity or distance of two texts.

    ``kind`` is similarity, distance, estimate or biased estimate. ``value`` is None if it is undefined;
    ``detail`` then gives the reason.

    >>> import lookalike as la
    >>> la.compare("the ferry leaves at seven", "the ferry leaves at eight").figures["Jaccard"]
    MeasuredValue(value=0.6, kind='similarity', detail='features: 4 and 4, 3 shared')
    """

    value: Optional[float]
    kind: str
    detail: str


class Feature(NamedTuple):
    """A feature of a text: its spelling, its number of occurrences, its weight and its hash.

    >>> import lookalike as la
    >>> la.compare("the ferry, the ferry", "a bridge").a.features[0]
    Feature(text='the ferry', count=2, weight=2.0, hash=15957243722276333080)
    """

    text: str
    count: int  # type: ignore[assignment]
    weight: float
    hash: int


@dataclass(frozen=True, eq=False)
class RecipeSteps:
    """The steps of a recipe for one text, from normalisation to sketches.

    - ``state``: text state: fingerprintable, too_short (fewer tokens than an n-gram needs), symbols_only (no tokens) or
      empty.
    - ``normalized``: the cleaned text, and ``tokens``: its tokens.
    - ``features``: distinct features as :class:`Feature`, the heaviest first.
    - ``sums``: sum of the votes for every bit of the fingerprint, the highest bit first.
    - ``fingerprint``: a whole number, and ``signature``: a list of whole numbers; None for a text without one.

    >>> import lookalike as la
    >>> steps = la.compare("The FERRY leaves.", "a bridge").a
    >>> steps.state, steps.normalized, steps.tokens
    ('fingerprintable', 'the ferry leaves', ['the', 'ferry', 'leaves'])
    """

    state: str
    normalized: str
    tokens: list[str]
    features: list[Feature]
    sums: list[float]
    fingerprint: Optional[int]
    signature: Optional[list[int]]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ResultTable):
    """The result of :func:`compare`.

    - ``match``: True if a run takes the texts for near-duplicates, which is also the truth value.
    - ``method``: the route by which a run finds them, or None.
    - ``similarity``: their similarity by the measure, from 0 to 1, or None if it is undefined.
    - ``why``: the reason in words.
    - ``distance``: number of bits in which their fingerprints differ, or None without fingerprints.
    - ``figures``: a dictionary of every similarity by its name, such as ``"Jaccard"``, as :class:`MeasuredValue`.
    - ``a``, ``b``: the steps of both texts, as :class:`RecipeSteps`.

    >>> import lookalike as la
    >>> found = la.compare("the ferry leaves at seven", "the ferry leaves at eight", threshold=0.6)
    >>> found
    <Comparison: match, found by join; Jaccard 0.6000 ≥ the threshold 0.6>
    >>> found.figures["containment"].value, found.b.tokens[-1]
    (0.75, 'eight')
    """

    match: bool
    method: Optional[str]
    similarity: Optional[float]
    why: str
    distance: Optional[int]
    figures: dict[str, MeasuredValue]
    a: RecipeSteps
    b: RecipeSteps

    def to_arrow(self) -> pa.Table:
        """Returns the figures as a table ``figure, value, kind, detail`` of pyarrow."""
        import pyarrow as pa

        names = pa.array(list(self.figures), pa.string())
        values = pa.array([figure.value for figure in self.figures.values()], pa.float64())
        kinds, details = (
            pa.array([figure[at] for figure in self.figures.values()], pa.string()) for at in (1, 2)
        )
        return pa.table({"figure": names, "value": values, "kind": kinds, "detail": details})

    def __bool__(self) -> bool:
        return self.match

    def __repr__(self) -> str:
        verdict = "match" if self.match else "no match"
        return f"<Comparison: {verdict}, {self.why}>"

    def _repr_html_(self) -> str:
        rows = [
            (name, "–" if figure.value is None else f"{figure.value:.4f}", figure.kind, figure.detail)
            for name, figure in self.figures.items()
        ]
        return _notebook.page(repr(self)[1:-1], _notebook.table(["figure", "value", "kind", "detail"], rows))


def _steps(told: dict[str, Any]) -> RecipeSteps:
    return RecipeSteps(**{**told, "features": [Feature(*feature) for feature in told["features"]]})


@suggest_keywords
def compare(
    a: str,
    b: str,
    *,
    recipe: RecipeLike = "default",
    threshold: Optional[float] = None,
    method: Optional[Method] = None,
    distance: Optional[int] = None,
    candidates: Optional[Candidates] = None,
    sentences: Optional[int] = None,
    verify: Optional[Measure] = None,
    unit: Optional[Unit] = None,
) -> Comparison:
    """Compares two texts by every step and every similarity. The arguments are those of :func:`dedup`.

    >>> import lookalike as la
    >>> found = la.compare("The ferry leaves at seven.", "the FERRY leaves at eight")
    >>> found.match, found.similarity
    (False, 0.6)
    """
    asked = arguments.rule(method, threshold, distance, candidates, sentences, verify, unit)
    told = _engine.compare(text_of("a", a), text_of("b", b), recipe_of(recipe), asked)
    figures = {name: MeasuredValue(*figure) for name, figure in told["figures"].items()}
    return Comparison(**{**told, "figures": figures, "a": _steps(told["a"]), "b": _steps(told["b"])})


def text_of(name: str, text: Any) -> str:
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{name} is of the type {type(text).__name__}: give a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} is not valid Unicode text: {error}") from error
    return text


@suggest_keywords
def segment(
    data: Any,
    *,
    recipe: RecipeLike = _engine.SEGMENTING,
    text: Names = "text",
    id: IdField = None,
    weights: bool = False,
    threads: Optional[int] = None,
) -> pa.Table:
    """Returns the tokens of every text as a table ``id, tokens`` with spaces between the tokens.

    The default recipe is jieba, as for the command. With ``weights``, the table is ``id, term, count,
    weight, part``, the heaviest terms of a text first. ``text`` and ``id`` are as in :func:`dedup`. Raises
    :class:`BadRowError` at the first row that is not valid.

    >>> import lookalike as la
    >>> la.segment(["Größe, 你好!"])["tokens"][0].as_py()
    'grösse 你好'
    """
    reading = arguments.reading(text, id)
    stream = stream_of(data, reading["text"])
    refuse_repeated(stream, [] if id is False else ["id" if id is None else id], "data")
    arguments.truth("weights", weights)
    with with_remedies(data):
        table: pa.Table = _engine.segment(stream, recipe_of(recipe), reading, bool(weights), arguments.threads(threads))
    return table


#: Former names, under which pickles of the version before have these classes.
Figure = MeasuredValue
Steps = RecipeSteps
