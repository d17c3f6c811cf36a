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


def check(session, table, frame=None, against=None, **settings):
    """Asserts that Spark removes what one machine does, for the same documents; returns the result."""
    frame = session.createDataFrame(table) if frame is None else frame
    known = None if against is None else session.createDataFrame(against)
    result = las.dedup(frame, against=known, **settings)
    here = {name: value for name, value in settings.items() if name not in ("checkpoint", "links_on_driver")}
    here = {"id": "id", "threads": 2, **here}
    alone = la.dedup(by_id(table), against=None if against is None else by_id(against), **here)
    removed = result.removed.toArrow().to_pylist()
    expected = removed_of(alone.removed.to_pylist())
    assert removed_of(removed) == expected
    assert len(removed) == len(expected)
    kept = result.kept.toArrow()
    assert sorted(kept.column("id").to_pylist()) == sorted(alone.kept.column("id").to_pylist())
    assert kept.column_names == table.column_names
    ids = by_id(table).column("id").to_pylist()
    rejected = sorted(row.id for row in result.rejected.select("id").collect())
    assert rejected == sorted(ids[row] for row, _ in alone.rejected)
    return result, alone


def rows_of(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())
