"""Operators of Data-Juicer: near-duplicate samples, and passages that samples have from earlier ones.

>>> import datasets
>>> from lookalike.data_juicer import LookalikeDeduplicator
>>> texts = ["清晨六點，老船長已經把纜繩解開了。", "清晨六点，老船长已经把缆绳解开了！", "渡船七点离开岛上。"]
>>> samples = datasets.Dataset.from_dict({"text": texts})
>>> LookalikeDeduplicator(threshold=0.8).run(samples)["text"][:]
['清晨六點，老船長已經把纜繩解開了。', '渡船七点离开岛上。']

This module registers ``lookalike_deduplicator`` and ``lookalike_passages_deduplicator`` when it is imported. A configuration
imports it by a file of one line, ``import lookalike.data_juicer``, that it names under ``custom_operator_paths``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

import datasets
from data_juicer.core.data import NestedDataset
from data_juicer.ops.base_op import OPERATORS, Deduplicator
from loguru import logger

from lookalike._choices import Offsets
from lookalike._data import with_texts
from lookalike._errors import SettingError
from lookalike._passages import passages
from lookalike._run import dedup
from lookalike._table_spool import fields_of_settings

__all__ = ["LookalikeDeduplicator", "LookalikePassagesDeduplicator"]


class _CorpusOperator(Deduplicator):  # type: ignore[misc]
    """An operator that decides about all samples at once, without a hash of each."""

    def compute_hash(self, sample: Any) -> Any:
        """Returns the sample as it is, because similarity is a matter of two samples."""
        return sample

    def run(self, dataset: Any, *, exporter: Any = None, tracer: Any = None, reduce: bool = True) -> Any:
        """Runs the operator without the pass over all samples that hashes would need."""
        dataset = super(Deduplicator, self).run(dataset)
        if not reduce:
            return dataset
        dataset, pairs = self.process(dataset, tracer.show_num if tracer else 0)
        if tracer:
            tracer.trace_deduplicator(self._name, pairs)
        return dataset

    def table_of(self, dataset: Any, fields: list[str]) -> Any:
        """Returns columns of the samples as a table."""
        names = list(dict.fromkeys(name.partition(".")[0] for name in [self.text_key, *fields]))
        there = [name for name in names if name in dataset.column_names]
        return dataset.select_columns(there).with_format("arrow")[:]


@OPERATORS.register_module("lookalike_deduplicator")
class LookalikeDeduplicator(_CorpusOperator):
    """Keeps one sample of each cluster of near-duplicates, as ``lookalike dedup`` does.

    Samples are dropped only if they repeat a kept one; those whose text is null pass, and a warning counts them. The tracer
    gets pairs of a kept and a removed sample.

    >>> from lookalike.data_juicer import LookalikeDeduplicator
    >>> operator = LookalikeDeduplicator(threshold=0.8, keep="longest", text_key="body")
    """

    def __init__(
        self,
        threshold: Optional[float] = None,
        recipe: str = "default",
        method: Optional[str] = None,
        verify: Optional[str] = None,
        forms: Optional[str] = None,
        keep: Optional[str] = None,
        within: Optional[str] = None,
        threads: Optional[int] = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """
        Initialization method.

        :param threshold: the smallest similarity that matches (by default 0.75)
        :param recipe: the name or the file of a recipe
        :param method: what finds candidates
        :param verify: the measure of similarity
        :param forms: "learn", "off" or the file of a table of forms
        :param keep: the sample of a cluster that is kept: first, last, longest, max:FIELD or min:FIELD
        :param within: a field whose values must be equal in two samples that match
        :param threads: number of threads (by default one per core)
        """
        super().__init__(*args, **kwargs)
        self.settings: dict[str, Any] = {
            "threshold": threshold, "recipe": recipe, "method": method, "verify": verify, "forms": forms, "keep": keep,
            "within": within, "threads": threads,
        }  # fmt: skip

    def process(self, dataset: Any, show_num: int = 0) -> tuple[Any, dict[int, list[Any]]]:
        """Returns the kept samples, and at most ``show_num`` pairs of a kept and a removed sample."""
        fields = fields_of_settings(self.settings["keep"], self.settings["within"])
        table = self.table_of(dataset, fields)
        result = dedup(table, text=self.text_key, id=False, progress=False, **self.settings)
        if result.rejected:
            row, reason = result.rejected[0]
            logger.warning(f"{len(result.rejected)} samples cannot be compared and pass, for example sample {row}: {reason}")
        removed = result.removed["position"].to_pylist()
        kept = result.removed["kept_position"].to_pylist()
        pairs = {row: [dataset[of], dataset[row]] for row, of in list(zip(removed, kept))[:show_num]}
        gone = set(removed)
        return dataset.select([row for row in range(len(dataset)) if row not in gone]), pairs


class _Passage(NamedTuple):
    """A passage of a sample, and its place in an earlier one. Positions of samples count from 0 in the input."""

    source: Any
    start: int
    end: int
    source_start: int
    source_end: int
    length: int
    similarity: float
    kind: str


@OPERATORS.register_module("lookalike_passages_deduplicator")
class LookalikePassagesDeduplicator(_CorpusOperator):
    """Marks or removes the passages that a sample has from earlier ones, as ``lookalike passages`` finds them.

    "mark" adds the field ``passages`` with the places in the sample and in its source; "remove" takes them out of the text.
    The first occurrence stays, and no sample is dropped.

    >>> import datasets
    >>> from lookalike.data_juicer import LookalikePassagesDeduplicator
    >>> notice = "渡船七点离开岛上，没有人会错过它，因为下一班要到中午才开。"
    >>> samples = datasets.Dataset.from_dict({"text": [f"一。{notice}", f"二：{notice}再见。"]})
    >>> LookalikePassagesDeduplicator(min_length=8, action="remove").run(samples)["text"][1]
    '二：。再见。'
    """

    def __init__(
        self,
        min_length: int = 12,
        action: str = "mark",
        reworded: bool = False,
        max_documents: Optional[Union[int, str]] = None,
        recipe: str = "default",
        id_key: Optional[str] = None,
        passages_key: str = "passages",
        threads: Optional[int] = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """
        Initialization method.

        :param min_length: the shortest passage in words; a word counts as two characters of a script without spaces
        :param action: "mark" or "remove"
        :param reworded: whether passages are found whose words were replaced or moved
        :param max_documents: number of samples (or their percentage, such as "0.5%", or "none") in which a run of five words
            may be before it is boilerplate, for which alone no two samples are compared (by default 20 samples, or 0.1% of
            them if that is more)
        :param recipe: the name or the file of a recipe
        :param id_key: the field that names the source of a passage (by default its position)
        :param passages_key: the field for the passages
        :param threads: number of threads (by default one per core)
        """
        super().__init__(*args, **kwargs)
        if action not in ("mark", "remove"):
            raise SettingError(f"action is {action!r}: give 'mark' or 'remove'")
        self.action, self.id_key, self.passages_key = action, id_key, passages_key
        self.settings: dict[str, Any] = {
            "min_length": min_length, "reworded": reworded, "max_documents": max_documents, "recipe": recipe,
            "threads": threads,
        }  # fmt: skip

    def process(self, dataset: Any, show_num: int = 0) -> tuple[Any, dict[int, list[Any]]]:
        """Returns the samples, and at most ``show_num`` pairs of a source and a sample that has a passage of it."""
        unit: Offsets = "characters" if self.action == "mark" else "bytes"
        fields = [self.id_key] if self.id_key else []
        table = self.table_of(dataset, fields)
        result = passages(table, text=self.text_key, id=False, offsets=unit, progress=False, **self.settings)
        found = result.passages.to_pylist()
        found_of: dict[int, list[_Passage]] = {}
        for row in found:
            place = int(row.pop("document")) - 1
            found_of.setdefault(place, []).append(_Passage(**{**row, "source": int(row["source"]) - 1}))
        pairs = {place: [dataset[of[0].source], dataset[place]] for place, of in list(found_of.items())[:show_num]}
        if self.action == "remove":
            plain = datasets.Dataset.select(dataset, range(len(dataset)))
            parts = {place: _joined_parts(of) for place, of in sorted(found_of.items())}
            return NestedDataset(with_texts(plain, self.text_key, parts)), pairs
        names = table[self.id_key].to_pylist() if self.id_key else range(len(dataset))
        marks = [[_named(passage, names) for passage in found_of.get(place, [])] for place in range(len(dataset))]
        return dataset.add_column(self.passages_key, marks), pairs


def _named(passage: _Passage, names: Any) -> dict[str, Any]:
    return {**passage._asdict(), "source": names[passage.source]}


def _joined_parts(found: list[_Passage]) -> list[int]:
    """Returns the starts and ends of passages, of which those that overlap are joined."""
    parts: list[int] = []
    for passage in sorted(found, key=lambda passage: passage.start):
        if parts and passage.start <= parts[-1]:
            parts[-1] = max(parts[-1], passage.end)
        else:
            parts += [passage.start, passage.end]
    return parts
