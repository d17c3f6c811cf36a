"""A search for passages: from the data to passages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional

from .. import _passage_steps
from .._passage_steps import PassageJob
from .._recipe import recipe_of
from ._columns import Columns
from ._results import Passages
from ._tables import BLOCKS, RunTables, in_order, refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GROUPED = "kind int, key bigint, id string, given boolean, groups array<bigint>"
_PASSAGES = (
    "document string, source string, start bigint, end bigint, source_start bigint, source_end bigint, "
    "length bigint, similarity double, kind string"
)


class PassageRun(RunTables):
    """The tables of a search for passages."""

    def __init__(
        self, data: "DataFrame", columns: Columns, job: PassageJob, checkpoint: Optional[str],
        against: Optional["DataFrame"],
    ) -> None:
        super().__init__(data, columns, checkpoint, against)
        self.job = job
        #: Numbers of the summary.
        self.told: dict[str, Any] = {}

    def found(self) -> Passages:
        """Returns the passages."""
        wanted = self.grouped().where(f"kind = {_passage_steps.DOCUMENT}")
        texts = self.by_groups(wanted)
        return Passages(self, self.keep(texts.mapInArrow(_passage_steps.compare(self.job), _PASSAGES)))

    def by_groups(self, wanted: "DataFrame") -> "DataFrame":
        """Returns the texts of all groups, each group in one partition and first the text of its document."""
        from pyspark.sql import functions as F

        names = ["id", "given"] if self.job.against else ["id"]
        texts = self.source.where(F.col("text").isNotNull()).select(*names, "text")
        placed = wanted.join(texts, names).select("key", "id", "text", F.explode("groups").alias("group"))
        return in_order(placed.withColumn("is_other", F.col("group") != F.col("key")), ["group"], "is_other", "key")

    def grouped(self) -> "DataFrame":
        """Returns the documents of candidate pairs with their groups; refuses repeated ids."""
        scattered = self.keep(self.source.mapInArrow(_passage_steps.scatter(self.job, self.parts), BLOCKS))
        limit = self.count_documents(scattered)
        grams = scattered.where(f"kind = {_passage_steps.GRAMS}").repartition("part")
        candidates = grams.mapInArrow(_passage_steps.candidates(self.job, limit, self.parts), BLOCKS)
        ids = scattered.where(f"kind = {_passage_steps.IDS}")
        of_parts = ids.union(candidates).repartition("part")
        grouped = self.keep(of_parts.mapInArrow(_passage_steps.members(), _GROUPED))
        others = grouped.where(f"kind != {_passage_steps.DOCUMENT}").select("kind", "id").collect()
        for kind, whose in ((_passage_steps.REPEATED_ID, ""), (_passage_steps.REPEATED_KNOWN_ID, " of against")):
            repeated = [row.id.encode() for row in others if row.kind == kind]
            refuse_repeated(len(repeated), repeated, whose)
        counts = [json.loads(row.id) for row in others if row.kind == _passage_steps.COUNTS]
        self.told["boilerplate"] = {
            "max_documents": limit,
            "grams": sum(it["boilerplate_grams"] for it in counts),
            "documents": sum(it["with_boilerplate"] for it in counts),
        }
        return grouped

    def count_documents(self, scattered: "DataFrame") -> Optional[int]:
        """Stores the numbers of documents and the rows that are not valid, and returns the limit of boilerplate."""
        kinds = f"kind = {_passage_steps.REJECTED} OR kind = {_passage_steps.COUNTS}"
        rows = scattered.where(kinds).select("kind", "block").collect()
        self.reject([bytes(row.block) for row in rows if row.kind == _passage_steps.REJECTED])
        counts = [json.loads(bytes(row.block)) for row in rows if row.kind == _passage_steps.COUNTS]
        documents, known, tokens, rejected = (
            sum(it[name] for it in counts) for name in ("documents", "known", "tokens", "rejected")
        )
        recipe = recipe_of(self.job.recipe)
        self.told = {
            "documents": documents,
            "against": known,
            "tokens": tokens,
            "rejected": rejected,
            "min_words": self.job.min_length,
            "recipe": recipe.name,
        }
        return self.job.limit(known if self.job.against else documents)
