"""Connected components of links, on the driver or by joins; see :mod:`lookalike._star_steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _star_steps
from ._session import collect_arrow
from ._tables import RunTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Columns of the table of components: a node, and the smallest node of its component.
LABELS = "node bigint, component bigint"


def connect_links(run: RunTables, links: "DataFrame") -> "DataFrame":
    """Returns the components of blocks of links. A round has two shuffles.

    The plan of a round contains that of the one before it once, because a plan that contains it twice doubles in
    every round.
    """
    from pyspark.sql import functions as F

    edges = links.mapInArrow(_star_steps.unpack_links, _star_steps.EDGES)
    while True:
        stars = run.keep(edges.repartition("u").mapInArrow(_star_steps.large_stars, _star_steps.EDGES))
        told = collect_arrow(stars.where("u IS NULL").select("is_open"))
        if not any(told.column("is_open").to_pylist()):
            break
        edges = stars.where("u IS NOT NULL").repartition("u")
        edges = edges.mapInArrow(_star_steps.small_stars, _star_steps.EDGES)
    stars = stars.where("u IS NOT NULL")
    both = F.explode(F.array("u", "v")).alias("node")
    return run.keep(stars.select(both, F.col("v").alias("component")).distinct())
