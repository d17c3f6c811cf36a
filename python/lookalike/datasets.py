"""Near-duplicates in data sets of Hugging Face ``datasets``, also in those that are streamed.

>>> import datasets
>>> import lookalike.datasets
>>> rows = [{"id": "a", "text": "Ferry times"}, {"id": "b", "text": "ferry times!"}, {"id": "c", "text": "Bridge tolls"}]
>>> stream = datasets.Dataset.from_list(rows).to_iterable_dataset()
>>> result = lookalike.datasets.dedup(stream)
>>> result
<Deduplicated 3 documents: 2 kept, 1 removed in 1 cluster>
>>> [row["id"] for row in result.kept]
['a', 'c']
>>> result.removed.select(["id", "kept", "similarity"]).to_pylist()
[{'id': 'b', 'kept': 'a', 'similarity': 1.0}]
"""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Iterator, Mapping, Optional, Union

import datasets
import numpy as np
from datasets.iterable_dataset import ExamplesIterable

from . import _arguments as arguments
from . import _run
from ._choices import IdField
from ._data import Names
from ._errors import InputError
from ._files import FilePath
from ._options import DedupOptions, DedupSettings, Unpack
from ._run import Deduplicated
from ._table_spool import TableSpool, fields_of_settings

__all__ = ["dedup"]

#: Rows of a batch that is copied to the temporary file.
_BATCH_ROWS = 1000

Data = Union[datasets.Dataset, datasets.DatasetDict, datasets.IterableDataset, datasets.IterableDatasetDict]


def dedup(
    ds: Data,
    *,
    text: Names = "text",
    id: IdField = None,
    scratch: Optional[FilePath] = None,
    **settings: Unpack[DedupSettings],
) -> Deduplicated[Any]:
    """Keeps one row of each cluster of near-duplicates of a data set, as :func:`lookalike.dedup` does.

    ``result.kept`` is a data set of the same kind, and ``result.removed`` a table of the removed rows with the kept ones
    that they repeat. Near-duplicates are found across the splits of a dictionary. ``text``, ``id`` and ``settings`` are
    the arguments of :func:`lookalike.dedup`.

    A streamed data set is read twice and never held. This call reads it once and copies the texts and the other fields
    that the settings name to a temporary file in ``scratch`` (by default the directory of the variable TMPDIR), which
    takes as much disk as these fields. The rows of ``result.kept`` are read when they are used, in one shard. They must
    then come in the same order: a row whose text is another one raises :class:`lookalike.InputError`.

    >>> import datasets
    >>> import lookalike.datasets
    >>> splits = datasets.DatasetDict({
    ...     "train": datasets.Dataset.from_dict({"text": ["Ferry times", "Bridge tolls"]}),
    ...     "test": datasets.Dataset.from_dict({"text": ["ferry times!", "A map"]}),
    ... })
    >>> lookalike.datasets.dedup(splits).kept["test"]["text"][:]
    ['A map']
    """
    if isinstance(ds, (datasets.IterableDataset, datasets.IterableDatasetDict)):
        return _dedup_stream(ds, text, id, scratch, settings)
    if not isinstance(ds, (datasets.Dataset, datasets.DatasetDict)):
        raise InputError(
            f"ds is of the type {type(ds).__name__}: give a Dataset, an IterableDataset or a dictionary of them; "
            "lookalike.dedup takes tables, frames and lists"
        )
    return _run.dedup(ds, text=text, id=id, **settings)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedDeduplicated(Deduplicated[Any]):
    """A result whose kept rows are read again from the stream of which it was made."""

    _checksums: Any = field(init=False, default=None)
    _rows_of_splits: Any = field(init=False, default=None)
    _names: tuple[str, ...] = field(init=False, default=())

    @cached_property
    def kept(self) -> Any:
        """The kept rows, as an iterable data set of one shard or a dictionary of these."""
        splits = _splits_of(self._data)
        parts, start, first = {}, 0, 0
        for name, split in splits.items():
            end = start + self._rows_of_splits[name]
            last = int(np.searchsorted(self.kept_rows, end))
            added = {field: values[first:last] for field, values in (self._added or {}).items()}
            rows = _KeptRows(split, name, self._names, self._checksums[start:end], self.kept_rows[first:last] - start, added)
            info = datasets.DatasetInfo(features=None if added else split.features)
            # `IterableDataset.from_generator` would hash the split with all that it holds.
            parts[name] = datasets.IterableDataset(ExamplesIterable(rows, {}), info=info, split=split.split)
            start, first = end, last
        kind: Any = type(self._data)
        return kind(parts) if isinstance(self._data, Mapping) else parts[""]


class _KeptRows:
    """Iterates over the kept rows of a split, and checks that the split has the rows of the first reading."""

    def __init__(
        self, split: Any, name: str, text: tuple[str, ...], checksums: np.ndarray, kept: np.ndarray, added: dict[str, list[Any]]
    ) -> None:
        self._split, self._name, self._text = split, name, text
        self._checksums, self._kept, self._added = checksums, kept, added

    def __call__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the kept rows with their numbers."""
        place = rows = 0
        for rows, row in enumerate(self._split, 1):
            self._check(rows, row)
            if place < len(self._kept) and self._kept[place] == rows - 1:
                yield place, {**row, **{field: values[place] for field, values in self._added.items()}}
                place += 1
        if rows != len(self._checksums):
            self._refuse(f"it has {rows} rows and had {len(self._checksums)}")

    def _check(self, number: int, row: Mapping[str, Any]) -> None:
        found = _checksum([_value_of(row, name) for name in self._text])
        if number > len(self._checksums) or found != self._checksums[number - 1]:
            self._refuse(f"row {number} has another text than at the first reading")

    def _refuse(self, found: str) -> None:
        where = f"the split `{self._name}`" if self._name else "the data set"
        raise InputError(f"{where} has changed: {found}. Give a stream that yields the same rows in the same order")


def _dedup_stream(
    ds: Any, text: Names, id: IdField, scratch: Optional[FilePath], settings: DedupSettings
) -> StreamedDeduplicated:
    names = arguments.reading(text, id)["text"]
    options: DedupOptions = {"text": text, "id": id, **settings}
    with tempfile.TemporaryDirectory(prefix="lookalike-", dir=scratch) as folder:
        reading = _FirstReading(names, options, TableSpool(folder))
        checksums = {name: reading.copy(split) for name, split in _splits_of(ds).items()}
        table = reading.spool.read()
        result = _run.dedup(table if table is not None else [], **options)
    public = {one.name: getattr(result, one.name) for one in fields(result) if one.init}
    streamed = StreamedDeduplicated._of_data(ds, result._added, **public)
    vars(streamed).update(
        _checksums=np.concatenate([*checksums.values(), np.empty(0, np.uint32)]),
        _rows_of_splits={name: len(rows) for name, rows in checksums.items()},
        _names=tuple(names),
    )
    return streamed


class _FirstReading:
    """Copies the fields that a run reads to a spool."""

    def __init__(self, text: list[str], options: Mapping[str, Any], spool: TableSpool) -> None:
        id = options["id"] if isinstance(options["id"], str) else "id"
        self.spool = spool
        self._options, self._text = options, text
        self._text_columns = {name.partition(".")[0] for name in text}
        self._columns = self._text_columns | {name.partition(".")[0] for name in [id, *_other_fields(options)]}
        self._is_checked = False

    def copy(self, split: Any) -> np.ndarray:
        """Copies a split, and returns a checksum of the text of each row."""
        checksums: list[int] = []
        for batch in split.with_format("arrow").iter(batch_size=_BATCH_ROWS):
            self._check(batch)
            self.spool.write(_selected(batch, self._columns))
            rows = _selected(batch, self._text_columns).to_pylist()
            checksums += [_checksum([_value_of(row, name) for name in self._text]) for row in rows]
        return np.array(checksums, np.uint32)

    def _check(self, batch: Any) -> None:
        """Refuses settings and missing fields at the first batch, before the rest of the data is read."""
        if not self._is_checked:
            _run.dedup(batch, **{**self._options, "progress": False, "audit": None})
            self._is_checked = True


def _selected(batch: Any, columns: set[str]) -> Any:
    return batch.select([name for name in batch.column_names if name in columns])


def _splits_of(ds: Any) -> dict[str, Any]:
    return dict(ds) if isinstance(ds, Mapping) else {"": ds}


def _other_fields(settings: Mapping[str, Any]) -> list[str]:
    """Returns the fields that the settings name."""
    features, sources = settings.get("features"), settings.get("sources")
    return fields_of_settings(
        settings.get("keep"),
        settings.get("within"),
        settings.get("time"),
        features if isinstance(features, str) else None,
        sources.partition("=")[0] if isinstance(sources, str) else None,
    )


def _value_of(row: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a field, which may be within other ones."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _checksum(values: list[Any]) -> int:
    """Returns a checksum of the strings among the values. Lists are left out, because formats spell them differently."""
    return zlib.crc32("\n".join(value for value in values if isinstance(value, str)).encode("utf-8", "surrogatepass"))
