"""The functions of :mod:`lookalike.spark`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

from .. import _arguments as arguments
from .. import _engine, _steps
from .._contamination_steps import read_job
from .._copy_fields import CopyFields, refuse_one_machine
from .._data import Names
from .._decontaminate import CUTS, Benchmarks, ItemFields, refuse_nested_text
from .._errors import SettingError
from .._files import FilePath
from .._keywords import advise_argument, suggest_keywords
from .._passage_steps import PassageJob
from .._recipe import RecipeLike, recipe_of
from .._repeated_text_steps import RepeatedTextJob
from .._run import WeightBy
from .._steps import Job
from ._columns import Columns
from ._contamination_run import ContaminationRun
from ._dedup_run import DedupRun, RunLimits
from ._key_filters import FILTER_MEMORY
from ._passage_run import PassageRun
from ._repeated_text_run import RepeatedTextRun
from ._results import Decontaminated, Deduplicated, Passages, RepeatedPassages
from ._session import refuse_other_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def dedup(
    df: "DataFrame",
    text: Names = "text",
    id: str = "id",
    *,
    threshold: Optional[float] = None,
    method: Optional[str] = None,
    distance: Optional[int] = None,
    candidates: Optional[str] = None,
    sentences: Optional[int] = None,
    recipe: RecipeLike = "default",
    verify: Optional[str] = None,
    unit: Optional[str] = None,
    keep: Optional[str] = None,
    within: Optional[str] = None,
    against: Optional["DataFrame"] = None,
    features: Optional[str] = None,
    window: Any = None,
    time: Optional[str] = None,
    audit: Union[int, bool, None] = None,
    forms: Optional[FilePath] = None,
    copies: Optional[str] = None,
    weight: Optional[str] = None,
    weight_by: WeightBy = "log",
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
    component_memory: int = _steps.COMPONENT_MEMORY,
    filter_memory: int = FILTER_MEMORY,
    **unavailable: Any,
) -> Deduplicated:
    """Keeps one document of each cluster of near-duplicates, with the same result as on one machine.

    ``text`` and ``id`` name columns; ids are compared as strings and must be unique. Several columns of text are
    joined by a line feed. Rows whose text is null are in ``result.rejected``. ``keep`` is first (the smallest id),
    last (the largest), longest, max:FIELD or min:FIELD, or several of these, separated by commas, of which each
    decides between documents that are equal by those before it; among equals, the smallest id is kept. ``within``
    restricts matches to equal values of a column. All documents of ``against``, which has the same columns, precede
    the data and are kept. ``features`` names a column of given features: strings, a map of strings to weights, or a
    string that is split at white space. ``forms`` is the file of a table of forms, which
    :func:`lookalike.learn_forms` writes, or "off"; the tasks need no file. The other settings are those of
    :func:`lookalike.dedup`; ``window`` and ``time`` are refused, and so are ``keep_count``, ``drop_all`` and
    ``sources``.

    ``copies`` and ``weight`` name columns that are added to the kept rows, as in :func:`lookalike.dedup` with
    ``weight_by``: the number of documents for which a row stands, and a weight that follows from it. They cannot be
    combined with ``against``. If more than a million documents are removed, Spark may shuffle the kept rows for them.

    ``audit`` (True, or the number of documents to sample) estimates the missed and the wrong matches; see
    ``result.audit``, which has the names of :func:`lookalike.dedup`'s ``summary["audit"]``. It reads the data twice more.

    The data is read three times and must have the same rows each time. ``checkpoint`` is a directory for
    intermediate tables on any file system that Spark writes to; without it, Spark persists them. The driver
    connects up to ``links_on_driver`` links between documents (16 bytes each). More links are connected by
    joins. If all sketches of a run fit into the bytes of these links, the driver also finds the links. One task
    decides each component of connected documents. If the texts of a component, with 600 bytes added for each, take
    more than ``component_memory`` bytes (4 GiB), the task moves the texts to a temporary file. If the 600 bytes for each
    alone take more, the run ends with an error that names one of them. Two structures of at most
    ``filter_memory`` bytes each (64 MiB), which every task holds, select the documents that travel: a table with 4 or 5
    bytes for each text with a link, and a filter of repeated texts with ten bits for each. Less than 2 % of the others
    travel too. If the table takes more, a filter replaces it, and texts beyond ``links_on_driver`` travel twice.

    Raises :class:`InputError` for missing columns and repeated ids, and :class:`SettingError` for settings
    that contradict each other.

    >>> from lookalike import spark as las
    >>> rows = [("1", "seven and nine", 3), ("2", "Seven and nine!", 4), ("3", "from monday on", 3)]
    >>> df = spark.createDataFrame(rows, "url string, body string, length int")
    >>> result = las.dedup(df, text="body", id="url", keep="max:length")
    >>> [(row.id, row.kept, row.similarity) for row in result.removed.collect()]
    [('1', '2', 1.0)]
    """
    from pyspark.sql import functions as F

    refuse_one_machine(unavailable, "Spark")
    for name in unavailable:
        raise SettingError(f"dedup has no argument {name}{advise_argument(name, dedup)}")
    _refuse_times(window, time)
    job = Job.of(
        recipe, keep, id, threshold=threshold, method=method, distance=distance, candidates=candidates,
        sentences=sentences, verify=verify, unit=unit, within=within is not None,
        against=against is not None, features=features is not None, forms=forms,
    )
    refuse_other_frame(df)
    wanted = arguments.audit(audit)
    if wanted is not None:
        _engine.check_audit(job.open())
    fields = CopyFields.of(copies, weight, weight_by, df.columns, against is not None)
    columns = Columns(arguments.names("text", text), id, job.order_fields, within, features)
    limits = RunLimits(links_on_driver, component_memory, filter_memory)
    run = DedupRun(df, columns, job, checkpoint, limits, against)
    removed, count = run.removed()
    audited = None if wanted is None else run.audit(removed, wanted)
    extra = [F.lit(job.threshold).alias("threshold"), F.col("kept").alias("cluster")]
    return Deduplicated(run, removed.select("*", *extra), count, audited, fields)


def cluster(df: "DataFrame", text: Names = "text", id: str = "id", **settings: Any) -> "DataFrame":
    """Returns the documents in clusters of two or more: ``id, cluster, representative, similarity, kept``.

    A cluster is a kept document with the documents removed as its duplicates. The arguments are those of
    :func:`dedup`.

    >>> from lookalike import spark as las
    >>> rows = [("1", "one and the same text"), ("2", "something else"), ("3", "One and the same text!")]
    >>> clusters = las.cluster(spark.createDataFrame(rows, "id string, text string"))
    >>> sorted((row.id, row.cluster, row.kept) for row in clusters.collect())
    [('1', '1', True), ('3', '1', False)]
    """
    return dedup(df, text, id, **settings).clusters


def pairs(
    df: "DataFrame",
    text: Names = "text",
    id: str = "id",
    *,
    within: Optional[str] = None,
    against: Optional["DataFrame"] = None,
    features: Optional[str] = None,
    checkpoint: Optional[str] = None,
    links_on_driver: int = 4_000_000,
    component_memory: int = _steps.COMPONENT_MEMORY,
    filter_memory: int = FILTER_MEMORY,
    recipe: RecipeLike = "default",
    forms: Optional[FilePath] = None,
    **settings: Any,
) -> "DataFrame":
    """Returns every pair of near-duplicates as ``a, b, similarity``. Of equal texts, only the first document
    is listed, as with ``lookalike pairs --distinct``.

    ``a`` is the smaller id. With ``against``, which has the same columns as the data, ``a`` is one of its documents and
    ``b`` one of the data; of equal texts, the first document of each is listed, and the two are not a pair. The
    arguments are those of :func:`dedup`, without ``keep``.

    >>> from lookalike import spark as las
    >>> rows = [("1", "the ferry leaves at seven"), ("2", "a bridge"), ("3", "the ferry leaves at eight")]
    >>> found = las.pairs(spark.createDataFrame(rows, "id string, text string"), threshold=0.5)
    >>> [tuple(row) for row in found.collect()]
    [('1', '3', 0.6)]
    """
    unknown = set(settings) - set(_steps.RULE)
    if unknown:
        name = sorted(unknown)[0]
        raise SettingError(f"pairs has no argument {name}{advise_argument(name, pairs, _steps.RULE)}")
    job = Job.of(
        recipe, None, id, within=within is not None, against=against is not None, features=features is not None,
        forms=forms, **settings,
    )
    columns = Columns(arguments.names("text", text), id, (), within, features)
    limits = RunLimits(links_on_driver, component_memory, filter_memory)
    return DedupRun(df, columns, job, checkpoint, limits, against).pairs()


@suggest_keywords
def passages(
    df: "DataFrame",
    against: Optional["DataFrame"] = None,
    *,
    text: Names = "text",
    id: str = "id",
    min_length: int = 12,
    max_documents: Union[int, str, None] = None,
    within: Optional[str] = None,
    recipe: RecipeLike = "default",
    offsets: str = "characters",
    window: Any = None,
    time: Optional[str] = None,
    order: Optional[str] = None,
    checkpoint: Optional[str] = None,
) -> Passages:
    """Finds the passages that each document has from others, with the same result as on one machine.

    The source of a passage is the document with the smaller id; with ``against``, which has the same columns as
    the data, only its documents are sources. ``text`` and ``id`` name columns; ids are compared as strings and
    must be unique. Several columns of text are joined by a line feed. Rows whose text is null are in
    ``result.rejected``. ``within`` compares only documents with equal values of a column. ``min_length``,
    ``max_documents``, ``recipe`` and ``offsets`` are as in :func:`lookalike.passages`. ``window`` and ``time``
    are refused, and so is ``order``, because a table of Spark has none.

    The data is read twice and must have the same rows each time. ``checkpoint`` is a directory for intermediate
    tables on any file system that Spark writes to; without it, Spark persists them.

    Raises :class:`InputError` for missing columns and repeated ids, and :class:`SettingError` for settings that
    are not valid.

    >>> from lookalike import spark as las
    >>> known = [("k", "The ferry leaves at seven. Nobody misses it, because the next one leaves at noon.")]
    >>> rows = [("e", "As they say, nobody misses it because the next one leaves at noon.")]
    >>> data, known = (spark.createDataFrame(some, "id string, text string") for some in (rows, known))
    >>> found = las.passages(data, known, min_length=6).passages.collect()
    >>> [(row.document, row.source, row.start, row.end, row.kind) for row in found]
    [('e', 'k', 13, 65, 'verbatim')]
    """
    _refuse_times(window, time)
    if order is not None:
        raise SettingError(
            "order is not available on Spark: leave it out, and sort the passages by a column with orderBy"
        )
    job = PassageJob.of(
        recipe, min_length, offsets, max_documents, within=within is not None, against=against is not None
    )
    columns = Columns(arguments.names("text", text), id, (), arguments.word("within", within))
    return PassageRun(df, columns, job, checkpoint, against).found()


@suggest_keywords
def repeated_passages(
    df: "DataFrame",
    against: Optional["DataFrame"] = None,
    *,
    text: str = "text",
    id: str = "id",
    min_length: int = 40,
    within: Optional[str] = None,
    recipe: RecipeLike = "default",
    checkpoint: Optional[str] = None,
) -> RepeatedPassages:
    """Cuts the text that stands in an earlier document from each document, as ``lookalike dedup --passages remove`` cuts
    it from kept rows.

    Documents are in the order of their ids, and those of ``against``, which has the same columns, come first. Whole
    sentences and lines are cut that together have at least ``min_length`` words, and whose words all lie in runs of that
    length in earlier documents. The first occurrence stays. ``text`` and ``id`` name columns; ids are compared as strings
    and must be unique. Rows whose text is null are in ``result.rejected``. ``within`` compares only documents with equal
    values of a column. Near-duplicates are nearly all repeated text: give the rows that :func:`dedup` keeps.

    The data is read once, and the texts are stored with their numbers. A run of words sends 24 bytes. One task sorts the
    ids, and one names the places that stay, in 40 bytes of memory for each piece. ``checkpoint`` is a directory for
    intermediate tables on any file system that Spark writes to; without it, Spark persists them.

    Raises :class:`InputError` for missing columns and for repeated, null and empty ids, and :class:`SettingError` for
    settings that are not valid.

    >>> from lookalike import spark as las
    >>> rows = [("a", "Nobody misses the ferry at seven. It rains."), ("b", "Really. NOBODY misses the ferry at seven!")]
    >>> found = las.repeated_passages(spark.createDataFrame(rows, "id string, text string"), min_length=6)
    >>> [(row.id, row.first, row.start, row.end, row.text) for row in found.cuts.collect()]
    [('b', 'a', 8, 41, 'NOBODY misses the ferry at seven!')]
    """
    job = RepeatedTextJob.of(recipe, min_length, within=within is not None)
    columns = Columns(arguments.names("text", text), id, (), arguments.word("within", within))
    if len(columns.text) > 1:
        raise SettingError(f"passages are cut from one column, and the text has {len(columns.text)}: name one")
    return RepeatedTextRun(df, columns, job, checkpoint, against).found()


@suggest_keywords
def decontaminate(
    df: "DataFrame",
    benchmarks: Benchmarks,
    *,
    text: Names = "text",
    id: str = "id",
    fields: ItemFields = None,
    cut: str = "document",
    checkpoint: Optional[str] = None,
    filter_memory: int = FILTER_MEMORY,
) -> Decontaminated:
    """Takes items of evaluation benchmarks out of documents, with the same result as on one machine.

    ``text`` and ``id`` name columns; ids are compared as strings, and a document with findings must have an id of its own.
    Several columns of text are joined by a line feed. Rows whose text is null are in ``result.rejected``. ``benchmarks``
    and ``fields`` are as in :func:`lookalike.decontaminate`. The driver reads the benchmarks; files need not be where
    tasks run. ``cut`` is document, passage or sentence, as there: parts are cut from one column.

    The texts are read once and their ids twice more, and must be the same each time. ``result.kept`` reads them
    again. ``checkpoint`` is a directory for intermediate tables on any file system that Spark writes to; without it,
    Spark persists them. Every task holds the items with their index. If more than a million documents are removed, a
    filter of at most ``filter_memory`` bytes (64 MiB) selects them. If parts of more than a million documents are
    cut, Spark may shuffle the kept rows by their ids.

    Raises :class:`InputError` for missing columns, repeated ids and benchmarks that cannot be read, and
    :class:`SettingError` for settings that are not valid.

    >>> from lookalike import spark as las
    >>> quiz = [{"id": "q1", "question": "In which year did the first ferry reach the northern lighthouse?"}]
    >>> rows = [("a", "So: in which year did the first ferry reach the NORTHERN lighthouse?"), ("b", "A bridge.")]
    >>> df = spark.createDataFrame(rows, "id string, text string")
    >>> result = las.decontaminate(df, {"lights": quiz}, fields={"question": "question", "id": "id"})
    >>> [(row.id, row.benchmark, row.item, row.found, row.start) for row in result.findings.collect()]
    [('a', 'lights', 'q1', 'question', 4)]
    >>> [row.id for row in result.kept.collect()]
    ['b']
    """
    refuse_other_frame(df)
    names = arguments.names("text", text)
    cut = _known_cut(df, cut, names)
    arguments.given_whole("filter_memory", filter_memory, 1, 2**50)
    job, told = read_job(benchmarks, fields)
    return ContaminationRun(df, Columns(names, id), job, told, checkpoint, filter_memory, cut).found()


@suggest_keywords
def fingerprint(
    df: "DataFrame", text: Names = "text", id: str = "id", *, recipe: RecipeLike = "default"
) -> "DataFrame":
    """Returns the SimHash fingerprint of every document in hexadecimal digits: ``id, fingerprint``.

    The fingerprint of a text that is too short is ``-``.

    >>> from lookalike import spark as las
    >>> rows = [("1", "the ferry leaves at seven"), ("2", "THE FERRY leaves at seven!"), ("3", "")]
    >>> found = las.fingerprint(spark.createDataFrame(rows, "id string, text string")).collect()
    >>> found[0].fingerprint == found[1].fingerprint, found[2].fingerprint
    (True, '-')
    """
    refuse_other_frame(df)
    source = Columns(arguments.names("text", text), id).of(df).select("id", "text")
    return source.mapInArrow(_steps.fingerprint(recipe_of(recipe).toml), "id string, fingerprint string")


def _known_cut(df: "DataFrame", cut: Any, names: list[str]) -> str:
    """Returns the part that is cut; refuses others, and a text of which no parts can be cut."""
    known: str = arguments.needed("cut", arguments.word("cut", cut), CUTS)
    _engine.check_cut(known, names)
    if known != "document" and names[0] not in df.columns and "." in names[0]:
        refuse_nested_text(names[0])
    return known


def _refuse_times(window: Any, time: Optional[str]) -> None:
    if window is not None or time is not None:
        raise SettingError(
            "window and time are not available on Spark: leave them out, or divide the data by a column with within"
        )
