"""Comparing a run over many machines with one over a table."""

import lookalike as la
from lookalike import spark as las


def by_id(table):
    """The rows in the order of their ids: what stands for the order of reading."""
    ids = table.column("id").to_pylist()
    return table.take(sorted(range(len(ids)), key=lambda row: ids[row].encode()))


def removed_of(rows):
    """What a run removes, by id."""
    columns = ("kept", "similarity", "method", "threshold", "cluster")
    return {row["id"]: tuple(row[name] for name in columns) for row in rows}


def check(session, table, frame=None, **settings):
    """Asserts that Spark removes what one machine does, for the same documents; returns the result."""
    result = las.dedup(session.createDataFrame(table) if frame is None else frame, **settings)
    here = {name: value for name, value in settings.items() if name not in ("checkpoint", "links_on_driver")}
    alone = la.dedup(by_id(table), id="id", threads=2, **here)
    removed = result.removed.toArrow().to_pylist()
    expected = removed_of(alone.removed.to_pylist())
    assert removed_of(removed) == expected
    assert len(removed) == len(expected)
    kept = result.kept.toArrow()
    assert sorted(kept.column("id").to_pylist()) == sorted(alone.kept.column("id").to_pylist())
    assert kept.column_names == table.column_names
    return result, alone


def rows_of(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())
