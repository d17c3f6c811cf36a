"""MinHash settings of other pipelines, and their probability of finding a pair."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Mapping, NoReturn

from ._options import DedupOptions, Unpack
from ._recipe import Recipe
from ._rows import RowsT
from ._run import Deduplicated, dedup


@dataclass(frozen=True)
class Preset:
    """MinHash settings of another pipeline: its ``name``, the numbers of ``bands`` and of ``rows``, its n-grams in words as
    ``features``, and ``changes``, the fields of the most similar recipe.

    >>> import lookalike as la
    >>> fineweb = la.presets["fineweb"]
    >>> fineweb.bands, fineweb.rows, round(fineweb.probability(0.75), 2)
    (14, 8, 0.77)
    """

    name: str
    bands: int
    rows: int
    features: str
    changes: Mapping[str, Any] = field(hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", MappingProxyType(dict(self.changes)))

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.bands, self.rows, self.features, dict(self.changes))

    @property
    def recipe(self) -> Recipe:
        """The most similar recipe, with the normalisation and tokens of ``default``."""
        return Recipe("default", name=self.name, **self.changes)

    @property
    def threshold(self) -> float:
        """The similarity at which the pipeline finds half of the pairs, rounded to hundredths."""
        return round(float((1 - 0.5 ** (1 / self.bands)) ** (1 / self.rows)), 2)

    def probability(self, similarity: float) -> float:
        """Returns the probability that the pipeline finds a pair of this Jaccard index."""
        return 1 - (1 - similarity**self.rows) ** self.bands

    def curve(self) -> list[tuple[float, float]]:
        """Returns :meth:`probability` at .3, .35, …, 1 (the S-curve)."""
        steps = [step / 20 for step in range(6, 21)]
        return [(step, self.probability(step)) for step in steps]

    def dedup(self, data: RowsT, **settings: Unpack[DedupOptions]) -> Deduplicated[RowsT]:
        """Runs :func:`dedup` with this recipe and threshold, by similarity alone; every pair is verified.

        The pipeline keeps no filled forms apart, so ``forms`` is "off" unless the settings say otherwise.
        """
        usual: DedupOptions = {"recipe": self.recipe, "threshold": self.threshold, "forms": "off"}
        options: DedupOptions = {**usual, **settings}
        return dedup(data, **options)

    def __str__(self) -> str:
        head = f"{self.name}: {self.bands} bands of {self.rows} rows, {self.features}"
        lines = [
            f"{similarity:.2f}  {found:6.1%}  {'█' * round(40 * found)}".rstrip()
            for similarity, found in self.curve()
        ]
        return "\n".join([head, "similarity  found", *lines])


class _Presets(dict[str, Preset]):
    """Presets by their names."""

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"there is no preset {name!r}: give {', '.join(self)}")


#: By name: fineweb (datatrove's example), nemo (NeMo Curator's defaults), marin (its defaults, which are
#: OLMo 3's), text-dedup-core (text-dedup's benchmark on CORE).
presets: Mapping[str, Preset] = MappingProxyType(_Presets(
    (preset.name, preset)
    for preset in (
        Preset("fineweb", 14, 8, "5-grams of words", {"ngram": 5}),
        Preset("nemo", 20, 13, "24-grams of characters", {"ngram": 24, "tokens": "characters"}),
        Preset("marin", 26, 11, "5-grams of characters", {"ngram": 5, "tokens": "characters"}),
        Preset("text-dedup-core", 50, 4, "2-grams of words", {"ngram": 2}),
    )
))
