"""Results: ids in their type, rows without an id, positions, and notebooks."""

import dataclasses
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lookalike as la
from lookalike import results

TEXTS = ["the ferry leaves at seven", "The ferry leaves at seven!", "a bridge", "A bridge.", "the ferry leaves at six"]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([5, 6, 7, 8, 9], pa.int64()),
        pa.array([5, 6, 7, 8, 9], pa.uint8()),
        pa.array(["a", "b", "c", "d", "e"]),
        pa.array(["a", "b", "c", "d", "e"], pa.large_string()),
    ],
)
def test_ids_keep_their_type(ids):
    data = pa.table({"id": ids, "text": TEXTS})
    result = la.dedup(data, threshold=0.5)
    values = ids.to_pylist()
    assert result.removed["id"].to_pylist() == [values[1], values[3], values[4]]
    assert result.removed["kept"].to_pylist() == [values[0], values[2], values[0]]
    assert result.removed["position"].to_pylist() == [1, 3, 4]
    assert result.removed["kept_position"].to_pylist() == [0, 2, 0]
    assert set(result.clusters["id"].to_pylist()) == set(values)
    found = la.pairs(data, threshold=0.5)
    rows = found.pairs.to_pylist()
    assert all((row["a"], row["b"]) == (values[row["a_position"]], values[row["b_position"]]) for row in rows)
    if pa.types.is_integer(ids.type):
        assert result.removed.schema.field("id").type == ids.type


def test_results_merge_with_frames():
    frame = pd.DataFrame({"id": [10, 20, 30, 40, 50], "text": TEXTS})
    merged = frame.merge(la.dedup(frame, threshold=0.5).removed.to_pandas(), on="id")
    assert merged["text"].tolist() == [TEXTS[1], TEXTS[3], TEXTS[4]]
    polar = pl.DataFrame({"id": [10, 20, 30, 40, 50], "text": TEXTS})
    joined = polar.join(pl.from_arrow(la.dedup(polar).removed), on="id")
    assert joined.height == 2


@pytest.mark.parametrize("typed", [False, True])
def test_rows_without_an_id_are_rows_like_others(typed):
    ids = [1, None, None, 4, None] if typed else ["a", None, None, "d", None]
    result = la.dedup(pa.table({"id": ids, "text": TEXTS}), threshold=0.5)
    assert result.kept_rows.tolist() == [0, 2] and result.rejected == []
    assert result.removed["position"].to_pylist() == [1, 3, 4]
    assert result.missing_ids == result.summary["missing_ids"] == 3
    assert "3 rows without an id" in repr(result)
    expected = [None, 4, None] if typed else ["data:2", "d", "data:5"]
    assert result.removed["id"].to_pylist() == expected
    assert la.dedup(pd.DataFrame({"id": ids, "text": TEXTS}), threshold=0.5).missing_ids == 3
    rows = [{"id": one, "text": text} for one, text in zip(ids, TEXTS)]
    assert la.pairs(rows, threshold=0.5).missing_ids == 3
    assert "without" not in repr(la.dedup(rows, id=False))


def test_ids_of_two_sources():
    first = pa.table({"id": [100, 200], "text": TEXTS[:2]})
    result = la.dedup(pa.table({"id": [1, 2, 3], "text": TEXTS[2:]}), against=first, threshold=0.5)
    rows = result.removed.select(["id", "kept", "position", "kept_position"]).to_pylist()
    assert rows == [
        {"id": 2, "kept": 1, "position": 1, "kept_position": 0},
        {"id": 3, "kept": 100, "position": 2, "kept_position": 0},
    ]
    mixed = la.dedup(pa.table({"id": ["x", "y", "z"], "text": TEXTS[2:]}), against=first, threshold=0.5)
    assert mixed.removed["kept"].to_pylist() == ["x", "100"]


def test_results_are_data_classes_that_notebooks_show():
    rows = [{"id": f"<{at}>", "text": text} for at, text in enumerate([*TEXTS, None])]
    result, found = la.dedup(rows, threshold=0.5), la.pairs(rows, threshold=0.5)
    for one in (result, found):
        assert dataclasses.is_dataclass(one) and ", 1 row rejected" in repr(one)
        html = one._repr_html_()
        assert "█" in html and "null" in html
    assert "&lt;0&gt;" in result._repr_html_() and "<0>" not in result._repr_html_()
    compared = la.compare(TEXTS[0], TEXTS[4])
    assert dataclasses.is_dataclass(compared) and "Jaccard" in compared._repr_html_()
    assert isinstance(la.dedup(["a"])._repr_html_(), str)
    assert result.kept_rows.dtype == np.int64


def test_rejected_rows_have_names():
    rows = ["the ferry leaves", None, "a bridge"]
    quiz = [{"question": "which ferry leaves at seven in the morning?", "answer": "1907"}]
    for result in (la.dedup(rows), la.pairs(rows), la.passages(rows), la.decontaminate(rows, quiz)):
        (rejected,) = result.rejected
        assert isinstance(rejected, results.RejectedRow) and rejected == (1, rejected.reason)
        assert rejected.position == 1 and "null" in rejected.reason


def test_a_bad_row_says_where_it_is():
    with pytest.raises(la.BadRowError) as refused:
        la.dedup(["the ferry", None], strict=True)
    told = refused.value
    assert (told.source, told.row, told.position, told.reason) == ("data", 2, 1, "the field `text` is null, not a string")
    again = pickle.loads(pickle.dumps(told))
    assert str(again) == str(told) and again.row == 2
    with pytest.raises(la.BadRowError) as refused:
        la.dedup(["the ferry"], against=["a", None], strict=True)
    assert (refused.value.source, refused.value.row) == ("against", 2)
    assert la.BadRowError("no place").row is None


def test_results_cannot_be_changed():
    result = la.dedup(["the ferry leaves", "The ferry leaves!"])
    with pytest.raises(AttributeError):
        result.kept_rows = []
    assert list(inspect.signature(type(result)).parameters) == ["kept_rows", "removed", "clusters", "rejected", "summary"]
    again = pickle.loads(pickle.dumps(result))
    assert again.kept == result.kept == ["the ferry leaves"]


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (results.Deduplicated, lambda: la.dedup(["a b c", "A b c"], components=True)),
        (results.Pairs, lambda: la.pairs(["a b c", "A b c"], apart=True)),
        (results.Passages, lambda: la.passages(["a b c d", "A b c d"], min_length=4)),
        (results.Decontaminated, lambda: la.decontaminate(["a b c"], [{"question": "which ferry leaves first?", "answer": "7"}])),
    ],
)
def test_docstrings_name_every_field_and_column(kind, make):
    text, result = inspect.getdoc(kind), make()
    for field in dataclasses.fields(kind):
        if not field.name.startswith("_"):
            assert f"``{field.name}``" in text
            value = getattr(result, field.name)
            for name in getattr(value, "column_names", ()):
                assert f"``{name}``" in text, name
