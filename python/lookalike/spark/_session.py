"""What differs between the versions of Spark that runs accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._errors import ArgumentTypeError, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Oldest version of Spark that is accepted.
_OLDEST = (3, 5)


def refuse_other_frame(data: object) -> None:
    """Refuses data that is no DataFrame of Spark."""
    if not hasattr(data, "sparkSession"):
        raise ArgumentTypeError(
            f"the data is of the type {type(data).__name__}: give a DataFrame of Spark, or call the function of the same name "
            "of lookalike, which takes other tables"
        )


def refuse_old_spark(session: "SparkSession") -> None:
    """Refuses versions of Spark that lack what the steps need."""
    digits = str(session.version).split(".")[:2]
    if all(digit.isdigit() for digit in digits) and tuple(map(int, digits)) < _OLDEST:
        raise InputError(
            f"lookalike.spark needs Spark 3.5 or later, and this session has {session.version}: start a session of a "
            "later version"
        )


def collect_arrow(frame: "DataFrame") -> Any:
    """Returns the rows of a frame as a table of pyarrow. Spark 3.5 goes through rows, which is slower."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(frame.schema)
    columns = list(zip(*frame.collect())) or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)


def frame_of(session: "SparkSession", table: Any, schema: str) -> "DataFrame":
    """Returns a frame of the rows of a table of pyarrow without nulls. Spark 3.5 goes through pandas."""
    if table.num_rows == 0:
        return session.createDataFrame([], schema)
    if int(str(session.version).split(".")[0]) >= 4:
        return session.createDataFrame(table, schema)
    return session.createDataFrame(table.to_pandas(), schema)
