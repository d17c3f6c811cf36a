"""Document frequencies of terms, and evaluation and tuning on labelled texts."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence, Union

from . import _arguments as arguments
from . import _engine
from ._choices import Measure, Method, Unit
from ._data import Names, refuse_repeated, stream_of, table_of_rows
from ._errors import InputError, OutputError, as_missing_file
from ._keywords import suggest_keywords
from ._recipe import Recipe, RecipeLike, recipe_of
from ._words import counted

PathLike = Union[str, "os.PathLike[str]"]


class Idf:
    """A table of document frequencies, from which the weights of terms are computed.

    >>> import lookalike as la
    >>> table = la.Idf.learn(["the ferry leaves", "the ferry stays", "the bridge"])
    >>> table.documents, table.terms
    (3, 5)

    A recipe takes it as a file: ``table.save("idf.tsv")`` and then ``Recipe("jieba",
    simhash={"weights": "tfidf", "table": "idf.tsv"})``. It fits recipes with the same terms as the recipe
    with which it was learned (by default jieba, as for the command). ``recipe`` is that recipe, ``documents`` the number
    of counted documents and ``terms`` the number of terms in the table.
    """

    _content: bytes
    recipe: Recipe
    documents: int
    terms: int

    def __init__(self) -> None:
        raise TypeError("an Idf is made by Idf.learn, or read by Idf.load")

    @classmethod
    @suggest_keywords
    def learn(
        cls,
        data: Any,
        *,
        recipe: RecipeLike = _engine.SEGMENTING,
        text: Names = "text",
        min_documents: int = 1,
        top: Optional[int] = None,
        strict: bool = False,
        threads: Optional[int] = None,
    ) -> "Idf":
        """Counts for each term the documents that contain it. Terms in fewer than ``min_documents``
        documents are left out, and all but the ``top`` most frequent."""
        names = arguments.names("text", text)
        return cls._counted(
            stream_of(data, names), [], recipe_of(recipe), names, min_documents, top, strict, threads
        )

    @classmethod
    def load(cls, path: PathLike, *, recipe: RecipeLike = _engine.SEGMENTING) -> "Idf":
        """Reads a table that :meth:`save` or ``lookalike idf`` wrote."""
        known = recipe_of(recipe)
        with as_missing_file(path):
            return cls._summed([Path(path)], known)

    def save(self, path: PathLike) -> None:
        """Writes the table. The file appears only when it is complete."""
        path = Path(path)
        try:
            _write(path, self._content)
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from error

    def merge(self, *others: "Idf") -> "Idf":
        """Returns the sum of tables of one recipe."""
        for other in others:
            if not isinstance(other, Idf):
                raise InputError(f"{other!r} is not a table of document frequencies: give an Idf")
            if other._terms() != self._terms():
                raise InputError(
                    f"{other} was learned with the recipe {other.recipe.name}, whose terms differ from those of "
                    f"{self.recipe.name}: merge tables of one recipe only"
                )
        with tempfile.TemporaryDirectory() as directory:
            return self._summed(_saved([self, *others], directory), self.recipe)

    def prune(self, *, min_documents: int = 1, top: Optional[int] = None) -> "Idf":
        """Returns the table without rare terms."""
        with tempfile.TemporaryDirectory() as directory:
            return self._summed(_saved([self], directory), self.recipe, min_documents, top)

    def _terms(self) -> bytes:
        """Returns the line that identifies how the terms are made."""
        return next(line for line in self._content.splitlines() if line.startswith(b"# terms "))

    def __repr__(self) -> str:
        return f"<Idf {counted(self.terms, 'term')} of {counted(self.documents, 'document')}>"

    @classmethod
    def _summed(
        cls, paths: list[Path], recipe: Recipe, min_documents: int = 1, top: Optional[int] = None
    ) -> "Idf":
        nothing = stream_of([], ["text"])
        return cls._counted(nothing, paths, recipe, ["text"], min_documents, top, False, 1)

    @classmethod
    def _counted(
        cls, stream: Any, merge: Any, recipe: Recipe, names: Any, min_documents: Any, top: Any, strict: Any, threads: Any
    ) -> "Idf":
        counting = {
            "recipe": recipe,
            "reading": {"text": names, "id": None, "id_row": True, "features": None},
            "merge": merge,
            "min_documents": arguments.whole("min_documents", min_documents, 1),
            "top": arguments.whole("top", top, 1),
            "threads": arguments.threads(threads),
            "strict": arguments.truth("strict", strict),
        }
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "idf.tsv"
            told = json.loads(_engine.idf(stream, counting, path))
            table = cls.__new__(cls)
            table._content, table.recipe = path.read_bytes(), recipe
            table.documents, table.terms = told["counted"], told["terms"]
            return table


def _write(path: Path, content: bytes) -> None:
    """Writes a file that appears only when it is complete."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _saved(tables: Iterable[Idf], directory: str) -> list[Path]:
    paths = []
    for number, table in enumerate(tables):
        paths.append(Path(directory) / f"{number}.tsv")
        paths[-1].write_bytes(table._content)
    return paths


@suggest_keywords
def evaluate(
    labelled: Any,
    *,
    recipe: Union[RecipeLike, Sequence[RecipeLike]] = "default",
    method: Union[Method, Sequence[Method], None] = None,
    verify: Union[Measure, Sequence[Measure], None] = None,
    distance: Optional[int] = None,
    sentences: Optional[int] = None,
    unit: Optional[Unit] = None,
    a: str = "a",
    b: str = "b",
    label: str = "label",
    group: Optional[str] = None,
    text: Names = "text",
    corpus: Any = None,
    id: Optional[str] = None,
    positive: Optional[float] = None,
    negative: Optional[float] = None,
    lowest: Optional[float] = None,
    resamples: int = 1000,
    seed: int = 1,
    threads: Optional[int] = None,
) -> dict[str, Any]:
    """Returns precision, recall and F1 at every threshold, as ``lookalike eval --json`` does.

    A row of ``labelled`` is a pair: the texts (or the ids in ``corpus``) are in ``a`` and ``b``, and
    ``label`` is true if they are similar. With ``group``, a row is one text and the name of its group.
    With ``positive`` and ``negative``, labels are grades. Every recipe is measured with every method and
    every measure.

    >>> import lookalike as la
    >>> labelled = [
    ...     {"a": "the ferry leaves at seven", "b": "The ferry leaves at seven!", "label": True},
    ...     {"a": "the ferry leaves at seven", "b": "the ferry leaves at eight", "label": True},
    ...     {"a": "the ferry leaves at seven", "b": "a bridge over the river", "label": False},
    ... ]
    >>> told = la.evaluate(labelled, recipe=["default", "words-3"], method="join", resamples=0)
    >>> for setting in told["settings"]:
    ...     at = {point["cut"]: point["method"] for point in setting["points"]}
    ...     print(setting["recipe"], at[0.5]["recall"]["value"], at[0.5]["precision"]["value"])
    default-1 1.0 1.0
    words-3 1.0 1.0
    """
    settings = [
        (recipe_of(one), arguments.rule(how, None, distance, None, sentences, measure, unit))
        for one in _several("recipe", recipe)
        for how in _several("method", method)
        for measure in _several("verify", verify)
    ]
    table, others, labels = _labelled(labelled, corpus, a, b, label, group, text, id, positive, negative)
    told = _engine.evaluate(table, others, labels, _ways(lowest, resamples, seed, threads), settings)
    summary: dict[str, Any] = json.loads(told)
    return summary


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult:
    """The result of :func:`tune`. Its fields:

    - ``summary``: the summary of the command, a dictionary.
    - ``recipe``: the chosen recipe.
    - ``method``, ``verify``: the chosen method and measure.
    - ``cut``: the best threshold, or the best distance of fingerprints; None if the method has neither.

    >>> import lookalike as la
    >>> places = ["ferry", "bridge", "tower", "harbour", "market", "school"]
    >>> edited = [{"a": f"the {p} opens at seven", "b": f"the {p} opens at eight", "label": 1} for p in places]
    >>> others = [{"a": f"the {p} opens at seven", "b": f"there is no {p} here", "label": 0} for p in places]
    >>> tuned = la.tune(edited + others, resamples=0)
    >>> tuned.method, tuned.verify, tuned.cut
    ('auto', 'jaccard', 0.6)
    >>> la.pairs(["the zoo opens at seven", "the zoo opens at eight"], recipe=tuned.recipe, threshold=tuned.cut)
    <Pairs: 1 pair of 2 documents>
    """

    summary: dict[str, Any]
    recipe: Recipe
    method: str
    verify: str
    cut: Optional[float]

    def __repr__(self) -> str:
        return f"<TuningResult {self.method} {self.verify} {self.recipe.name} at {self.cut}>"


@suggest_keywords
def tune(
    labelled: Any,
    *,
    recipe: RecipeLike = "default",
    goal: str = "f1",
    a: str = "a",
    b: str = "b",
    label: str = "label",
    group: Optional[str] = None,
    text: Names = "text",
    corpus: Any = None,
    id: Optional[str] = None,
    positive: Optional[float] = None,
    negative: Optional[float] = None,
    lowest: Optional[float] = None,
    resamples: int = 1000,
    seed: int = 1,
    threads: Optional[int] = None,
) -> TuningResult:
    """Returns the best setting for labelled texts, as ``lookalike tune`` finds it.

    ``goal`` is f1, or ``precision>=`` and a number. The other arguments are those of :func:`evaluate`.

    >>> import lookalike as la
    >>> places = ["ferry", "bridge", "tower", "harbour", "market", "school"]
    >>> edited = [{"a": f"the {p} opens at seven", "b": f"the {p} opens at eight", "label": 1} for p in places]
    >>> others = [{"a": f"the {p} opens at seven", "b": f"there is no {p} here", "label": 0} for p in places]
    >>> la.tune(edited + others, goal="precision>=0.9", resamples=0)
    <TuningResult auto jaccard words-1 at 0.4>
    """
    aim = arguments.needed("goal", arguments.word("goal", goal), 'a goal such as "f1"')
    table, others, labels = _labelled(labelled, corpus, a, b, label, group, text, id, positive, negative)
    ways = _ways(lowest, resamples, seed, threads)
    told, toml = _engine.tune(table, others, labels, ways, recipe_of(recipe), aim)
    summary = json.loads(told)
    chosen = summary["settings"][summary["chosen"]]
    return TuningResult(summary, Recipe(toml), chosen["method"], chosen["measure"], chosen["cut"])


def _several(name: str, given: Any) -> list[Any]:
    """Returns one value or several as a list."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    return several or arguments.refuse(name, given, "at least one value")


def _labelled(
    labelled: Any, corpus: Any, a: Any, b: Any, label: Any, group: Any, text: Any, id: Any, positive: Any, negative: Any
) -> tuple[Any, Any, dict[str, Any]]:
    reading = arguments.reading(text, id)
    names = reading["text"]
    labels = {
        "a": arguments.word("a", a),
        "b": arguments.word("b", b),
        "label": arguments.word("label", label),
        "group": arguments.word("group", group),
        "positive": arguments.number("positive", positive),
        "negative": arguments.number("negative", negative),
        "reading": reading,
    }
    if isinstance(labelled, list):
        if not labelled or not all(isinstance(row, dict) for row in labelled):
            raise InputError(
                "labelled is an empty list, or not all of its rows are dictionaries: give a table, or a list of "
                f"dictionaries, {_wanted_columns(a, b, label, group, names)}"
            )
        labelled = table_of_rows(labelled, "labelled", [*names, a, b, label, group])
    others = None if corpus is None else stream_of(corpus, names, "corpus")
    table = stream_of(labelled, names, "labelled")
    refuse_repeated(table, [one for one in (a, b, label, group) if one is not None], "labelled")
    return table, others, labels


def _wanted_columns(a: Any, b: Any, label: Any, group: Any, names: Sequence[str]) -> str:
    wanted = [*names, group] if group is not None else [a, b, label]
    return "with the columns " + ", ".join(f"`{name}`" for name in wanted)


def _ways(lowest: Any, resamples: Any, seed: Any, threads: Any) -> dict[str, Any]:
    return {
        "lowest": arguments.number("lowest", lowest),
        "resamples": arguments.whole("resamples", resamples),
        "seed": arguments.whole("seed", seed, 0, 2**64 - 1),
        "threads": arguments.threads(threads),
    }


#: Former names, under which pickles of the version before have these classes.
Tuned = TuningResult
