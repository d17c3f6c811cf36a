"""Comparing a run over many machines with one over a table."""

import json

import lookalike as la
from lookalike import spark as las
from lookalike.spark._session import collect_arrow


#: Arguments of Spark alone, which change no result.
OF_SPARK = ("checkpoint", "links_on_driver", "component_memory", "filter_memory")


def by_id(table):
    """The rows in the order of their ids: what stands for the order of reading."""
    ids = table.column("id").to_pylist()
    return table.take(sorted(range(len(ids)), key=lambda row: ids[row].encode()))


def frame_from(session, table):
    """A frame of a table of pyarrow, which Spark 3.5 does not take."""
    if int(session.version.split(".")[0]) >= 4:
        return session.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    rows = [tuple(row.values()) for row in table.to_pylist()]
    return session.createDataFrame(rows, from_arrow_schema(table.schema))


def removed_of(rows):
    """What a run removes, by id."""
    columns = ("kept", "similarity", "method", "threshold", "cluster")
    return {row["id"]: tuple(row[name] for name in columns) for row in rows}


def check(session, table, frame=None, against=None, **settings):
    """Asserts that Spark removes what one machine does, for the same documents; returns the result."""
    frame = frame_from(session, table) if frame is None else frame
    known = None if against is None else frame_from(session, against)
    result = las.dedup(frame, against=known, **settings)
    here = {name: value for name, value in settings.items() if name not in OF_SPARK}
    here = {"id": "id", "threads": 2, "forms": "off", **here}
    alone = la.dedup(by_id(table), against=None if against is None else by_id(against), **here)
    removed = collect_arrow(result.removed).to_pylist()
    expected = removed_of(alone.removed.to_pylist())
    assert removed_of(removed) == expected
    assert len(removed) == len(expected)
    kept = collect_arrow(result.kept)
    assert sorted(kept.column("id").to_pylist()) == sorted(alone.kept.column("id").to_pylist())
    assert kept.column_names == table.column_names
    ids = by_id(table).column("id").to_pylist()
    rejected = sorted(row.id for row in result.rejected.select("id").collect())
    assert rejected == sorted(ids[row] for row, _ in alone.rejected)
    return result, alone


def comparable(audit):
    """What an audit tells of the documents, without what follows from their numbers: of rows on one machine, of ids on
    many."""
    shares = ("recall", "left_together", "precision")
    told = {name: audit[name] for name in ("sampled", "requested", "seed", "pairs", "by_length", *shares)}
    told = {**told, "copies": audit["planted"] and audit["planted"]["copies"], "least": audit.get("least_jaccard")}
    # A mean has other last digits if its terms come in another order.
    return json.loads(json.dumps(told), parse_float=lambda digits: round(float(digits), 12))


def check_audit_of_all(audited, table, against=None, order=by_id, **settings):
    """Asserts that an audit of all documents tells what it does on one machine; returns the latter.

    At most 200 documents may be removed, and at most 16 later ones be similar to each, because more are sampled.
    """
    against = None if against is None else by_id(against)
    alone = la.dedup(order(table), against=against, id="id", audit=len(table) * 2, **{"forms": "off", **settings})
    assert alone.summary["removed"] <= 200
    assert comparable(audited) == comparable(alone.summary["audit"])
    return alone.summary["audit"]


def rows_of(table):
    return sorted(tuple(row.values()) for row in table.to_pylist())


def check_pairs(session, known, table, **settings):
    """Asserts that Spark finds the pairs that one machine finds against known documents; returns them."""
    found = las.pairs(frame_from(session, table), against=frame_from(session, known), **settings)
    here = {name: value for name, value in settings.items() if name not in OF_SPARK}
    alone = la.pairs(by_id(table), id="id", against=by_id(known), distinct=True, threads=2, **{"forms": "off", **here}).pairs
    found = collect_arrow(found)
    assert rows_of(found) == rows_of(alone.select(found.column_names))
    return found


def check_passages(session, table, frame=None, against=None, partitions=None, checkpoint=None, **settings):
    """Asserts that Spark finds what one machine finds; returns the results of both."""
    frame = frame_from(session, table) if frame is None else frame
    known = None if against is None else frame_from(session, against)
    if partitions is not None:
        frame = frame.repartition(partitions)
    result = las.passages(frame, known, checkpoint=checkpoint, **settings)
    alone = la.passages(
        by_id(table), against=None if against is None else by_id(against), **{"id": "id", "threads": 2, **settings}
    )
    found = collect_arrow(result.passages)
    assert found.column_names == alone.passages.column_names
    assert rows_of(found) == rows_of(alone.passages)
    told, expected = result.summary, alone.summary
    boilerplate = expected["boilerplate"]
    assert told.pop("boilerplate") == {name: boilerplate[name] for name in ("max_documents", "grams", "documents")}
    assert told == {name: expected[name] for name in told}
    assert set(told) == {
        "documents", "against", "passages", "pairs", "copying", "tokens", "rejected", "min_words", "recipe"
    }
    ids = by_id(table).column("id").to_pylist()
    rejected = sorted(row.id for row in result.rejected.select("id").collect())
    # Rows of `against` that are not valid are only counted.
    assert rejected == sorted(ids[row] for row, _ in _of_data(alone.rejected, table))
    return result, alone


def _of_data(rejected, table):
    nulls = sum(text is None for text in table.column("text").to_pylist())
    return rejected[-nulls:] if nulls else []
