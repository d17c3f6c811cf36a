"""A search for repeated text: from the data to cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .. import _repeated_text_steps as steps
from .._errors import InputError
from .._recipe import recipe_of
from .._repeated_text_steps import RepeatedTextJob
from ._columns import Columns
from ._results import RepeatedPassages
from ._tables import RunTables, in_order, refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RUNS = "hash bigint, number bigint, start bigint"
_RECORDS = "number bigint, cuts binary"
_PLACES = "number bigint, piece bigint, source bigint, start bigint, length bigint"
_DESCRIBED = (
    "source bigint, start bigint, length bigint, first string, first_start bigint, first_end bigint, tokens binary"
)
_CUTS = (
    "kind int, id string, first string, start bigint, end bigint, first_start bigint, first_end bigint, "
    "length bigint, text string"
)


class RepeatedTextRun(RunTables):
    """The tables of a search for repeated text."""

    def __init__(
        self, data: "DataFrame", columns: Columns, job: RepeatedTextJob, checkpoint: Optional[str],
        against: Optional["DataFrame"],
    ) -> None:
        super().__init__(data, columns, checkpoint, against)
        self.job = job
        self.has_known = against is not None
        #: The column of the data whose texts are cut.
        self.text = columns.text[0]
        if self.text not in data.columns:
            raise InputError(
                f"the text '{self.text}' is within a column: text can be cut in a column of its own; select it as one"
            )
        #: Numbers of the summary.
        self.told: dict[str, Any] = {}

    def found(self) -> RepeatedPassages:
        """Returns the cuts."""
        from pyspark.sql import functions as F

        numbered, known = self.numbered()
        records = self.records(numbered, known)
        places = records.mapInArrow(steps.list_places(), _PLACES)
        described = self.described_places(places, numbered)
        place = F.struct("piece", "first", "first_start", "first_end", "tokens")
        of_documents = places.join(described, ["source", "start", "length"], "left").groupBy("number")
        of_documents = of_documents.agg(F.sort_array(F.collect_list(place)).alias("places"))
        texts = numbered.select("number", "id", "text")
        cut = records.join(of_documents, "number").join(texts, "number").select(
            "id",
            "text",
            "cuts",
            F.col("places.first").alias("firsts"),
            F.col("places.first_start").alias("first_starts"),
            F.col("places.first_end").alias("first_ends"),
            F.col("places.tokens").alias("tokens"),
        )
        return RepeatedPassages(self, self.keep(cut.mapInArrow(steps.describe_cuts(self.job), _CUTS)))

    def numbered(self) -> tuple["DataFrame", int]:
        """Returns the documents with their numbers in the order of one machine, and how many of them are known. Refuses
        ids that are null, empty or repeated."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        texts = self.source.where(F.col("text").isNotNull())
        if not self.has_known:
            texts = texts.withColumn("given", F.lit(False))
        ids = texts.select("id", "given")
        for row in ids.where("id IS NULL OR id = ''").limit(1).collect():
            what = "null" if row.id is None else "empty"
            raise InputError(f"the id of a row is {what}: give every document a unique id")
        for given, whose in ((False, ""), (True, " of against")):
            counted = ids.where(F.col("given") == given).groupBy("id").agg(F.count(F.lit(1)).alias("rows"))
            some = counted.where("rows > 1").orderBy("id").limit(3).collect()
            repeated = [row.id.encode() for row in some]
            refuse_repeated(counted.where("rows > 1").count() if some else 0, repeated, whose)
        # One task sorts the ids of all documents, because numbers follow one another without gaps.
        order = Window.orderBy(F.col("given").desc(), "id")
        numbers = ids.withColumn("number", (F.row_number().over(order) - 1).cast("bigint"))
        numbered = self.keep(texts.join(numbers, ["id", "given"]))
        counts = numbered.agg(F.count(F.lit(1)), F.coalesce(F.sum(F.col("given").cast("bigint")), F.lit(0)))
        documents, known = counts.collect()[0]
        self.told = {
            "documents": documents - known,
            "against": known,
            "recipe": recipe_of(self.job.recipe).name,
            "min_words": self.job.min_length,
        }
        return numbered, known

    def records(self, numbered: "DataFrame", known: int) -> "DataFrame":
        """Returns the cuts of all new documents, with places that stay."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        columns = ["number", "text", *(["part"] if self.job.within else [])]
        runs = numbered.select(*columns).mapInArrow(steps.hash_runs(self.job), _RUNS)
        first = F.min(F.struct("number", "start")).over(Window.partitionBy("hash"))
        repeats = runs.withColumn("first", first).where(F.col("number") > F.col("first.number"))
        run = F.struct("start", F.col("first.number").alias("first_number"), F.col("first.start").alias("first_start"))
        of_documents = repeats.where(F.col("number") >= known).groupBy("number")
        of_documents = of_documents.agg(F.sort_array(F.collect_list(run)).alias("runs"))
        with_texts = of_documents.join(numbered.select("number", "text"), "number").select(
            "number",
            "text",
            F.col("runs.start").alias("starts"),
            F.col("runs.first_number").alias("first_numbers"),
            F.col("runs.first_start").alias("first_starts"),
        )
        chosen = with_texts.mapInArrow(steps.choose_cuts(self.job), _RECORDS)
        # One task names all places, because those of a document depend on the cuts of earlier ones.
        all_records = in_order(chosen.withColumn("whole", F.lit(0)), ["whole"], "number")
        return self.keep(all_records.mapInArrow(steps.name_places(), _RECORDS))

    def described_places(self, places: "DataFrame", numbered: "DataFrame") -> "DataFrame":
        """Returns the places that pieces name, each once, with the ids of their documents."""
        from pyspark.sql import functions as F

        of_sources = places.select("source", "start", "length").distinct().groupBy("source")
        ranges = of_sources.agg(F.sort_array(F.collect_list(F.struct("start", "length"))).alias("ranges"))
        texts = numbered.select(F.col("number").alias("source"), "id", "text")
        sources = ranges.join(texts, "source").select(
            "source",
            "id",
            "text",
            F.col("ranges.start").alias("starts"),
            F.col("ranges.length").alias("lengths"),
        )
        return sources.mapInArrow(steps.describe_places(self.job), _DESCRIBED)
