"""Near-duplicates in Spark DataFrames, with the same verdicts as on one machine.

>>> from lookalike import spark as las                            # doctest: +SKIP
>>> result = las.dedup(spark.read.parquet("docs"))                # doctest: +SKIP
>>> result.kept.write.parquet("docs-without-duplicates")          # doctest: +SKIP

Works with Spark 3.5 and 4 and engines with their protocol (Spark Connect, Sail). The package must be installed where
tasks run. Names and defaults are those of the command. Documents are ordered by id, and the verdicts equal
those of ``lookalike dedup --keep min:id``. :func:`passages` finds copied passages, :func:`repeated_passages` cuts repeated
ones, and :func:`decontaminate` finds items of benchmarks. ``docs/spark-steps.md`` describes the shuffled data and how to size a run.
"""

from __future__ import annotations

from ._calls import cluster, decontaminate, dedup, fingerprint, pairs, passages, repeated_passages
from ._results import Decontaminated, Deduplicated, Passages, RepeatedPassages

__all__ = [
    "Decontaminated",
    "Deduplicated",
    "Passages",
    "RepeatedPassages",
    "cluster",
    "decontaminate",
    "dedup",
    "fingerprint",
    "pairs",
    "passages",
    "repeated_passages",
]
