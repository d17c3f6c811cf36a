"""A search for items of benchmarks: from the data to findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional

from .. import _contamination_steps as steps
from .. import _engine
from .._contamination_steps import ContaminationJob, CorpusCounts
from ._columns import Columns
from ._results import Decontaminated
from ._text_cuts import TextCuts
from ._tables import BLOCKS, RunTables, refuse_repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_QUESTIONS = "question int, documents bigint, candidates bigint, first_item bigint"
_CUTS = "id string, length bigint, left_out array<bigint>"
_FINDINGS = (
    "id string, benchmark string, item string, found string, score double, start bigint, end bigint, "
    "item_start bigint, item_end bigint"
)

#: Questions that a summary names as boilerplate.
_NAMED_BOILERPLATE = 10


class ContaminationRun(RunTables):
    """The tables of a search for items."""

    def __init__(
        self, data: "DataFrame", columns: Columns, job: ContaminationJob, told: dict[str, Any],
        checkpoint: Optional[str], filter_memory: int, cut: str,
    ) -> None:
        super().__init__(data, columns, checkpoint, None)
        self.job = job
        #: The part of a document with findings that is taken out.
        self.cut = cut
        #: The name of the text's column.
        self.text = columns.text[0]
        self.filter_memory = filter_memory
        #: Numbers of the summary.
        self.told = told

    def found(self) -> Decontaminated:
        """Returns the findings."""
        searched = self.keep(self.source.mapInArrow(steps.search(self.job), BLOCKS))
        self.count_documents(searched)
        counts = self.counts_of(searched)
        candidates = searched.where(f"kind = {steps.CANDIDATES}").select("block")
        boilerplate = self.boilerplate_of(candidates, counts)
        findings = self.keep(candidates.mapInArrow(steps.findings(self.job, counts, boilerplate), _FINDINGS))
        contaminated = self.count_contaminated(findings)
        if self.cut == "document":
            return Decontaminated(self, findings, contaminated)
        cuts = self.keep(candidates.mapInArrow(steps.cuts(self.job, counts, boilerplate, self.cut), _CUTS))
        removed = cuts.where("left_out IS NULL").count()
        return Decontaminated(self, findings, removed, TextCuts(cuts, contaminated - removed))

    def count_documents(self, searched: "DataFrame") -> None:
        """Stores the numbers of documents and the rows that are not valid."""
        kinds = f"kind = {steps.REJECTED} OR kind = {steps.COUNTS}"
        rows = searched.where(kinds).select("kind", "block").collect()
        self.reject([bytes(row.block) for row in rows if row.kind == steps.REJECTED])
        counts = [json.loads(bytes(row.block)) for row in rows if row.kind == steps.COUNTS]
        for name in ("documents", "bytes", "rejected"):
            self.told[name] = sum(one[name] for one in counts)

    def counts_of(self, searched: "DataFrame") -> CorpusCounts:
        """Returns the counts of words of all documents. Tasks add up those of many tasks."""
        terms = searched.where(f"kind = {steps.TERMS}").select("part", "block").repartition("part")
        summed = terms.mapInArrow(steps.add_counts(), "block binary").collect()
        return CorpusCounts.summed(bytes(row.block) for row in summed)

    def boilerplate_of(self, candidates: "DataFrame", counts: CorpusCounts) -> list[int]:
        """Returns the numbers of the questions that stand alone in too many documents, and stores them."""
        from pyspark.sql import functions as F

        if not self.told["documents"]:
            self.told.update(boilerplate=0, boilerplate_questions=[])
            return []
        limit = _engine.question_limit(self.told["documents"])
        lone = candidates.mapInArrow(steps.lone_questions(self.job, counts), _QUESTIONS).groupBy("question")
        sums = [F.sum(name).alias(name) for name in ("documents", "candidates")]
        frequent = lone.agg(*sums, F.min("first_item").alias("first_item")).where(F.col("documents") > limit).collect()
        frequent.sort(key=lambda row: (-row.documents, row.first_item))
        self.told["boilerplate"] = sum(row.candidates for row in frequent)
        self.told["boilerplate_questions"] = [
            steps.boilerplate_question(self.job, row.first_item, row.documents, row.candidates)
            for row in frequent[:_NAMED_BOILERPLATE]
        ]
        return [row.question for row in frequent]

    def count_contaminated(self, findings: "DataFrame") -> int:
        """Returns the number of documents with findings; refuses ids of these that several rows have."""
        from pyspark.sql import functions as F

        contaminated = findings.select("id").distinct()
        rows = self.source.where(F.col("text").isNotNull()).select("id").join(contaminated, "id", "left_semi")
        counted = self.keep(rows.groupBy("id").agg(F.count(F.lit(1)).alias("rows")))
        repeated = [row.id.encode() for row in counted.where("rows > 1").orderBy("id").limit(3).collect()]
        refuse_repeated(counted.where("rows > 1").count() if repeated else 0, repeated, "")
        return int(counted.count())
