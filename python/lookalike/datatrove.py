"""Blocks of datatrove pipelines that keep one document of each cluster of near-duplicates.

In a pipeline of one task, :class:`LookalikeDedup` is one line between a reader and a writer:

>>> from datatrove.data import Document
>>> from lookalike.datatrove import LookalikeDedup
>>> texts = ["The ferry leaves at seven.", "THE FERRY leaves at seven!", "A bridge."]
>>> documents = (Document(text, id=str(number)) for number, text in enumerate(texts))
>>> [document.id for document in LookalikeDedup(threshold=0.8).run(documents)]
['0', '2']

A pipeline of several tasks has three stages, because a verdict needs the documents of all tasks. They share a directory:
:class:`LookalikeDedupTexts` writes the texts of each task to it, :class:`LookalikeDedupVerdicts` decides in one task, by the
command and within its limit of memory, and :class:`LookalikeDedupFilter` drops the duplicates of each task.

A document passes with its id, media and metadata as they are. It is dropped only if it repeats a kept one: a document that
cannot be compared, for example without the time that ``window`` needs, passes, and a warning counts these.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, NoReturn, Optional

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.writers.disk_base import DiskWriter
from datatrove.utils.logging import logger
from datatrove.utils.stats import MetricStats
from datatrove.utils.typeshelper import StatHints

from ._errors import InputError, OutputError, SettingError
from ._files import FilePath, atomic_file
from ._run import dedup
from ._table_spool import TableSpool, fields_of_settings, read_mapped

__all__ = ["LookalikeDedup", "LookalikeDedupFilter", "LookalikeDedupTexts", "LookalikeDedupVerdicts"]

_TYPE = "🫂 - DEDUP"

#: Documents of a batch that is written to the shared directory.
_BATCH_DOCUMENTS = 4096

#: Runs the command of this package. Its arguments come as JSON on standard input, because the inputs of ten thousand tasks
#: do not fit into those of a process.
_COMMAND = "import json, sys; from lookalike.__main__ import main; sys.argv[1:] = json.load(sys.stdin); main()"


class _Removal(NamedTuple):
    """What is known of a duplicate: its id, the id of the kept document, and their similarity."""

    id: str
    kept: Any
    similarity: float


class _DroppingStep(PipelineStep):  # type: ignore[misc]
    """A block that drops documents by their position in the task."""

    type = _TYPE

    def __init__(self, exclusion_writer: Optional[DiskWriter]) -> None:
        super().__init__()
        self.exclusion_writer = exclusion_writer

    def drop(self, documents: Iterable[Document], removals: Mapping[int, _Removal], rank: int) -> Iterator[Document]:
        """Yields the documents that are not removed. The others get the fields ``duplicate_of`` and ``similarity`` and go to
        the writer for them."""
        count = dropped = 0
        with self.exclusion_writer or contextlib.nullcontext() as writer:
            for count, document in enumerate(documents, 1):
                removal = removals.get(count - 1)
                if removal is None:
                    yield document
                    continue
                dropped += 1
                if writer is not None:
                    document.metadata.update(duplicate_of=removal.kept, similarity=removal.similarity)
                    writer.write(document, rank)
        # Counted at the end, because one update of these statistics for each document takes half the time of a verdict.
        for label, number in ((StatHints.total, count), (StatHints.forwarded, count - dropped), (StatHints.dropped, dropped)):
            if number:
                self.stats[label] += MetricStats(total=number, n=number, mean=1.0, min=1, max=1)


class LookalikeDedup(_DroppingStep):
    """Keeps one document of each cluster of near-duplicates, in a pipeline of one task.

    ``settings`` are arguments of :func:`lookalike.dedup`, such as ``threshold``, ``recipe``, ``keep``, ``within`` and
    ``threads``; the fields that they name are those of the metadata, and one that no document has is refused. Duplicates go to ``exclusion_writer`` with the fields
    ``duplicate_of`` and ``similarity``. The block holds the documents of the task in memory.

    >>> from datatrove.data import Document
    >>> from lookalike.datatrove import LookalikeDedup
    >>> rows = [("a", "Ferry times", 1), ("b", "ferry times!", 2), ("c", "Bridge tolls", 1)]
    >>> documents = [Document(text, id=id, metadata={"score": score}) for id, text, score in rows]
    >>> [document.id for document in LookalikeDedup(keep="max:score").run(documents)]
    ['b', 'c']
    """

    name = "👯 lookalike"

    def __init__(self, *, exclusion_writer: Optional[DiskWriter] = None, **settings: Any) -> None:
        super().__init__(exclusion_writer)
        self.settings = settings
        self.fields = _fields_of(settings)
        # Settings that contradict each other are refused here, and not when all documents are read.
        dedup(_table_of([], self.fields), **self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {"id": False, "progress": False, **self.settings}

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Reads all documents of the task, and yields those that are kept."""
        if world_size != 1:
            raise SettingError(
                f"LookalikeDedup sees the documents of one task, and this pipeline has {world_size}: set tasks=1, or use "
                "LookalikeDedupTexts, LookalikeDedupVerdicts and LookalikeDedupFilter"
            )
        documents = list(data)
        _check_fields(self.fields, documents)
        with self.track_time("run"):
            result = dedup(_table_of(documents, self.fields), **self._arguments())
            columns = (result.removed[name].to_pylist() for name in ("position", "kept_position", "similarity"))
            removals = {
                position: _Removal(documents[position].id, documents[kept].id, similarity)
                for position, kept, similarity in zip(*columns)
            }
        if result.rejected:
            position, reason = result.rejected[0]
            _warn_about_rejected(len(result.rejected), f"the document {documents[position].id}: {reason}")
        yield from self.drop(documents, removals, rank)


class LookalikeDedupTexts(PipelineStep):  # type: ignore[misc]
    """First stage: writes the ids and texts of each task to the directory ``work``, which all tasks share.

    ``fields`` are the fields of the metadata that the settings of the second stage name, for example of ``within``. The
    directory takes as much space as the texts, in ``work/texts``.

    >>> import tempfile
    >>> from datatrove.data import Document
    >>> from lookalike.datatrove import LookalikeDedupFilter, LookalikeDedupTexts, LookalikeDedupVerdicts
    >>> documents = [Document("Ferry times", id="a"), Document("ferry times!", id="b"), Document("A bridge", id="c")]
    >>> work = tempfile.mkdtemp()
    >>> LookalikeDedupTexts(work).run(documents)
    >>> LookalikeDedupVerdicts(work, threshold=0.8).run()
    >>> [document.id for document in LookalikeDedupFilter(work).run(documents)]
    ['a', 'c']
    """

    type = _TYPE
    name = "👯 lookalike stage 1: texts"

    def __init__(self, work: FilePath, fields: Iterable[str] = ()) -> None:
        super().__init__()
        self.work = _local_directory(work)
        self.fields = [fields] if isinstance(fields, str) else list(fields)

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> None:
        """Writes the texts of the task. It is complete when its list of files is there."""
        folder = self.work / "texts" / f"{rank:05d}"
        spool = TableSpool(folder)
        found = dict.fromkeys(self.fields, False)
        files: list[dict[str, Any]] = []
        for path, documents in itertools.groupby(data, key=_file_path_of):
            while batch := list(itertools.islice(documents, _BATCH_DOCUMENTS)):
                with self.track_time("batch"):
                    spool.write(_table_of(batch, self.fields).append_column("id", _ids_of(batch)))
                self.stat_update(StatHints.total, value=len(batch))
                found = {field: found[field] or _has_field(batch, field) for field in found}
            spool.end_file()
            files += [{"name": file.name, "rows": file.rows, "path": path} for file in spool.files[len(files) :]]
        _write_json(folder.with_suffix(".json"), {"tasks": world_size, "files": files, "fields": found})


class LookalikeDedupVerdicts(PipelineStep):  # type: ignore[misc]
    """Second stage, in one task: decides about the documents of all tasks, as ``lookalike dedup --work`` does.

    ``settings`` are the options of the command under their names in Python: ``threshold``, ``recipe``, ``keep``, ``within``,
    ``memory`` (such as "16G"), ``threads`` and so on. Documents have the order of the files that the readers read, so the
    verdicts are those of the command over these files. A run that was killed goes on where it was, with the same settings.
    The table of all removed documents is ``work/removed.arrow``.

    Raises :class:`lookalike.InputError` if a task of the first stage is not complete,
    :class:`lookalike.SettingError` with the message of the command if it refuses a setting, and
    :class:`lookalike.errors.OutputError` if the command was killed.

    >>> from lookalike.datatrove import LookalikeDedupVerdicts
    >>> stage = LookalikeDedupVerdicts("dedup", threshold=0.8, memory="16G", threads=8)
    """

    type = _TYPE
    name = "👯 lookalike stage 2: verdicts"

    def __init__(self, work: FilePath, **settings: Any) -> None:
        super().__init__()
        self.work = _local_directory(work)
        self.settings = settings

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Runs the command, and divides its table of removed documents by tasks."""
        if world_size != 1:
            raise SettingError(f"LookalikeDedupVerdicts decides in one task, and this pipeline has {world_size}: set tasks=1")
        tasks = _read_tasks(self.work)
        with self.track_time("run"):
            summary = self._run_command(_ordered_inputs(self.work, tasks))
            rows = _divide_removals(self.work, tasks)
        self.stat_update(StatHints.total, value=summary["documents"])
        self.stat_update(StatHints.dropped, value=summary["removed"])
        _write_json(self.work / "verdicts.json", {"tasks": len(tasks), "rows": rows, "summary": summary})

    def _run_command(self, inputs: list[str]) -> dict[str, Any]:
        if not inputs:
            raise InputError(f"{self.work / 'texts'} has no document: run LookalikeDedupTexts behind a reader that finds some")
        state = self.work / "run"
        fixed = ["--work", str(state), "--resume", "--removed", str(self.work / "removed.arrow"), "--json", "--quiet"]
        arguments = ["dedup", *inputs, *_options_of(self.settings), *fixed]
        ran = subprocess.run(
            [sys.executable, "-c", _COMMAND], input=json.dumps(arguments), capture_output=True, text=True, encoding="utf-8"
        )
        if ran.returncode < 0:
            raise OutputError(
                f"lookalike dedup was ended by the signal {-ran.returncode}: run this stage again, and it goes on where it was"
            )
        if ran.returncode not in (0, 1):
            raise SettingError(f"lookalike dedup ended with {ran.returncode}: {ran.stderr.strip()}")
        summary: dict[str, Any] = json.loads(ran.stdout)
        if summary["rejected"]:
            _warn_about_rejected(summary["rejected"], ran.stderr.strip().partition("\n")[0])
        shutil.rmtree(state)
        return summary


class LookalikeDedupFilter(_DroppingStep):
    """Third stage: drops the duplicates of each task.

    The reader before it must yield the documents of the first stage in the same tasks; one that does not raises
    :class:`lookalike.InputError`. Duplicates go to ``exclusion_writer`` with the fields ``duplicate_of`` and ``similarity``.

    >>> from lookalike.datatrove import LookalikeDedupFilter
    >>> stage = LookalikeDedupFilter("dedup")
    """

    name = "👯 lookalike stage 3: filter"

    def __init__(self, work: FilePath, *, exclusion_writer: Optional[DiskWriter] = None) -> None:
        super().__init__(exclusion_writer)
        self.work = _local_directory(work)

    def run(self, data: Iterable[Document], rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yields the documents of the task that are kept."""
        verdicts = _read_json(self.work / "verdicts.json", "run LookalikeDedupVerdicts before")
        if verdicts["tasks"] != world_size:
            raise InputError(
                f"{self.work} has the verdicts of {verdicts['tasks']} tasks, and this pipeline has {world_size}: set "
                f"tasks={verdicts['tasks']}"
            )
        with self.track_time("run"):
            removals = _read_removals(self.work, rank)
        yield from self.drop(self._checked(data, removals, verdicts["rows"][rank]), removals, rank)

    def _checked(self, data: Iterable[Document], removals: Mapping[int, _Removal], rows: int) -> Iterator[Document]:
        """Yields the documents, and refuses others than those of the first stage."""
        count = 0
        for count, document in enumerate(data, 1):
            removal = removals.get(count - 1)
            if removal is not None and removal.id != str(document.id):
                self._refuse(f"document {count} of this task is {document.id} and was {removal.id}")
            yield document
        if count != rows:
            self._refuse(f"this task has {count} documents and had {rows}")

    def _refuse(self, found: str) -> NoReturn:
        raise InputError(f"the documents are not those of {self.work / 'texts'}: {found}. Use the reader of the first stage")


def _fields_of(settings: Mapping[str, Any]) -> list[str]:
    sources = settings.get("sources")
    source = sources.partition("=")[0] if isinstance(sources, str) else None
    return fields_of_settings(settings.get("keep"), settings.get("within"), settings.get("time"), source)


def _has_field(documents: list[Document], field: str) -> bool:
    return any(field in document.metadata for document in documents)


def _check_fields(fields: Iterable[str], documents: list[Document]) -> None:
    """Refuses a field that no document has, as the command refuses a missing column."""
    missing = next((field for field in fields if documents and not _has_field(documents, field)), None)
    if missing is not None:
        known = dict.fromkeys(name for document in documents for name in document.metadata)
        listed = ", ".join(f"`{name}`" for name in known)
        raise InputError(f"no document has the field `{missing}` in its metadata, which has {listed or 'no fields'}")


def _table_of(documents: list[Document], fields: Iterable[str]) -> Any:
    """Returns the texts of documents, with fields of their metadata."""
    import pyarrow as pa

    try:
        columns: dict[str, Any] = {"text": pa.array([document.text for document in documents], pa.large_string())}
    except UnicodeEncodeError as error:
        document = next(one for one in documents if one.text.encode(errors="replace").decode() != one.text)
        raise InputError(f"the text of the document {document.id} is not valid Unicode: {error}") from error
    for field in fields:
        try:
            columns[field] = pa.array([document.metadata.get(field) for document in documents])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"the field `{field}` of the metadata has values of several types: {error}") from error
    return pa.table(columns)


def _ids_of(documents: list[Document]) -> Any:
    import pyarrow as pa

    return pa.array([str(document.id) for document in documents], pa.large_string())


def _file_path_of(document: Document) -> Optional[str]:
    path = document.metadata.get("file_path")
    return path if isinstance(path, str) else None


def _local_directory(work: FilePath) -> Path:
    """Returns the directory that the stages share. The command works in a directory, and not in an object store."""
    if "://" in str(work):
        raise SettingError(f"work is {work}: give a directory that all tasks can reach")
    return Path(work).absolute()


def _read_tasks(work: Path) -> list[list[dict[str, Any]]]:
    """Returns the files of each task of the first stage, by its rank."""
    paths = sorted((work / "texts").glob("*.json"))
    lists = {int(path.stem): _read_json(path, "run LookalikeDedupTexts again") for path in paths}
    counts = sorted({one["tasks"] for one in lists.values()})
    if not lists:
        raise InputError(f"{work / 'texts'} has the texts of no task: run LookalikeDedupTexts before")
    if len(counts) > 1:
        raise InputError(
            f"{work / 'texts'} has texts of pipelines with {counts[0]} and with {counts[-1]} tasks: remove it, and run "
            "LookalikeDedupTexts again"
        )
    missing = [rank for rank in range(counts[0]) if rank not in lists]
    if missing:
        raise InputError(
            f"{work / 'texts'} has the texts of {len(lists)} of {counts[0]} tasks, and not of task {missing[0]}: run "
            "LookalikeDedupTexts to its end"
        )
    if any(one["files"] for one in lists.values()):
        _check_found_fields(work, [lists[rank].get("fields", {}) for rank in range(counts[0])])
    return [lists[rank]["files"] for rank in range(counts[0])]


def _check_found_fields(work: Path, tasks: list[dict[str, bool]]) -> None:
    """Refuses a field of the first stage that the documents of no task have."""
    missing = next((field for field in tasks[0] if not any(task.get(field) for task in tasks)), None)
    if missing is not None:
        raise InputError(
            f"no document of {work / 'texts'} has the field `{missing}` in its metadata: run LookalikeDedupTexts with other "
            "fields"
        )


def _ordered_inputs(work: Path, tasks: list[list[dict[str, Any]]]) -> list[str]:
    """Returns the files with the texts in the order of the files that the readers read, or of the tasks if they read none."""
    files = [(file["path"], rank, file["name"]) for rank, files in enumerate(tasks) for file in files]
    if any(path is None for path, _, _ in files):
        files = [("", rank, name) for _, rank, name in files]
    return [_text_file(work, rank, name) for _, rank, name in sorted(files)]


def _text_file(work: Path, rank: int, name: str) -> str:
    return str(work / "texts" / f"{rank:05d}" / name)


def _options_of(settings: Mapping[str, Any]) -> list[str]:
    """Returns settings as options of the command, which has the same names."""
    options = []
    for name, value in settings.items():
        if value is not None and value is not False:
            option = f"--{name.replace('_', '-')}"
            options.append(option if value is True else f"{option}={value}")
    return options


def _divide_removals(work: Path, tasks: list[list[dict[str, Any]]]) -> list[int]:
    """Writes the removed documents of each task with their positions in it, and returns the documents of each task."""
    import pyarrow as pa

    starts, rows = {}, []
    for rank, files in enumerate(tasks):
        counts = [file["rows"] for file in files]
        for file, start in zip(files, itertools.accumulate(counts, initial=0)):
            starts[_text_file(work, rank, file["name"])] = rank, start
        rows.append(sum(counts))
    removed = read_mapped([work / "removed.arrow"])
    sources = removed["source"].combine_chunks().dictionary_encode()
    sources = sources.combine_chunks() if isinstance(sources, pa.ChunkedArray) else sources
    places = np.array([starts[source] for source in sources.dictionary.to_pylist()] or [(0, 0)], np.int64)
    number = sources.indices.to_numpy(zero_copy_only=False)
    ranks, positions = places[number, 0], places[number, 1] + removed["row"].to_numpy().astype(np.int64) - 1
    table = removed.select(["id", "kept", "similarity"]).append_column("position", pa.array(positions))
    order = np.lexsort((positions, ranks))
    table, bounds = table.take(order), np.searchsorted(ranks[order], np.arange(len(tasks) + 1))
    (work / "removed").mkdir(exist_ok=True)
    for rank in range(len(tasks)):
        with atomic_file(_removals_file(work, rank)) as target, pa.ipc.new_file(target, table.schema) as writer:
            writer.write_table(table.slice(bounds[rank], bounds[rank + 1] - bounds[rank]))
    return rows


def _removals_file(work: Path, rank: int) -> Path:
    return work / "removed" / f"{rank:05d}.arrow"


def _read_removals(work: Path, rank: int) -> dict[int, _Removal]:
    table = read_mapped([_removals_file(work, rank)])
    columns = (table[name].to_pylist() for name in ("position", "id", "kept", "similarity"))
    return {position: _Removal(id, kept, similarity) for position, id, kept, similarity in zip(*columns)}


def _warn_about_rejected(count: int, example: str) -> None:
    logger.warning(f"{count} documents cannot be compared and pass. {example}")


def _write_json(path: Path, value: Any) -> None:
    with atomic_file(path) as file:
        file.write(json.dumps(value, ensure_ascii=False).encode())


def _read_json(path: Path, remedy: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no {path}: {remedy}") from None
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): {remedy}") from error
