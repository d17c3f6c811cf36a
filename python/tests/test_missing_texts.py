"""Missing texts of every kind are nulls, empty frames give empty results, and accessors give columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lookalike as la
import lookalike.pandas
import lookalike.polars  # noqa: F401

NAN = float("nan")
MIXED = ["a b", NAN, None, pd.NA, np.float64("nan")]
TEXTS = ["the ferry leaves at seven", "a bridge", "The ferry leaves at seven!"]


@pytest.mark.parametrize(
    "data",
    [
        MIXED,
        tuple(MIXED),
        np.array(MIXED, object),
        pd.Series(MIXED, dtype=object),
        [{"text": text} for text in MIXED],
        {"text": MIXED},
        {"text": np.array(MIXED, object)},
        pd.DataFrame({"text": pd.Series(MIXED, dtype=object), "other": [1, "x", None, 2.5, 2**70]}),
    ],
    ids=lambda data: type(data).__name__,
)
def test_marks_of_missing_values_are_missing_texts(data):
    result = la.dedup(data)
    assert result.kept_rows.tolist() == [0] and [row for row, _ in result.rejected] == [1, 2, 3, 4]
    assert all("null" in reason for _, reason in result.rejected)
    assert len(la.pairs(data).rejected) == 4
    with pytest.raises(la.BadRowError, match="data:2: the field `text` is null"):
        la.dedup(data, strict=True)


def test_fingerprints_of_missing_texts_are_masked():
    for texts in (MIXED, pd.Series(MIXED, dtype=object), np.array(MIXED, object)):
        assert np.ma.getmaskarray(la.simhash(texts)).tolist() == [False, True, True, True, True]
        assert np.ma.getmaskarray(la.minhash(texts))[:, 0].tolist() == [False, True, True, True, True]


@pytest.mark.parametrize("mark", [NAN, None, pd.NA], ids=str)
def test_columns_without_any_text(mark):
    marks = [mark, mark]
    for data in (marks, np.array(marks), [{"text": mark}] * 2, {"text": marks}, pd.DataFrame({"text": marks}), pd.Series(marks)):
        result = la.dedup(data)
        assert result.kept_rows.tolist() == [] and len(result.rejected) == 2 and type(result.kept) is type(data)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"text": []}),
        pd.DataFrame({"text": pd.Series([], dtype=object)}),
        pd.DataFrame(),
        pd.Series([], dtype=float),
        pl.DataFrame({"text": []}),
        pl.DataFrame(),
        pa.table({}),
        pa.table({"text": pa.array([], pa.int64())}),
        np.array([]),
        [],
    ],
    ids=lambda data: type(data).__name__,
)
def test_empty_data_give_empty_results(data):
    result = la.dedup(data)
    assert len(result.kept) == 0 and result.removed.num_rows == 0 and result.rejected == []
    assert la.pairs(data).pairs.num_rows == 0
    if type(data) is not list:
        assert type(result.kept) is type(data)


def test_numbers_are_still_no_texts():
    for data in ([1, 2], ["a", 2], {"text": [1.5, NAN]}, pd.DataFrame({"text": [1.5, 2]})):
        with pytest.raises(la.InputError, match="not a string|cannot be used as text|different types"):
            la.dedup(data)


@pytest.mark.parametrize(
    "features, found",
    [
        (lambda text: [1, 2], "a list with 1"),
        (lambda text: text, "'b c a', of the type str"),
        (lambda text: None, "None, of the type NoneType"),
        (lambda text: {"b": 1}, "of the type dict"),
    ],
)
def test_features_that_are_no_list_of_strings_are_refused_in_words(features, found):
    with pytest.raises(la.InputError, match=f"the function features gave .*{found}, for the text at position 1: it must give"):
        la.dedup([None, "b c a"], features=features)


def test_is_duplicate_is_a_column_of_the_frame():
    frame = pd.DataFrame({"text": TEXTS}, index=[5, 6, 7])
    for rows in (frame, frame["text"]):
        found = rows.lookalike.is_duplicate()
        assert isinstance(found, pd.Series) and found.index.tolist() == [5, 6, 7] and found.dtype == bool
        assert rows[found].index.tolist() == [7]
    assert frame["text"].lookalike.unique().index.tolist() == [5, 6]
    polar = pl.DataFrame({"text": TEXTS})
    for rows in (polar, polar["text"]):
        found = rows.lookalike.is_duplicate()
        assert isinstance(found, pl.Series) and found.dtype == pl.Boolean and len(rows.filter(~found)) == 2
        assert found.to_list() == [False, False, True]
    for column in (frame["text"], polar["text"]):
        assert column.lookalike.pairs().pairs.num_rows == 1 and len(column.lookalike.dedup().kept) == 2
        prints = column.lookalike.simhash().to_list()
        assert prints[0] == prints[2]
        assert column.lookalike.minhash().shape == (3, 128)


def test_lazy_frames_have_the_calls():
    lazy = pl.LazyFrame({"text": TEXTS})
    kept = lazy.lookalike.unique()
    assert isinstance(kept, pl.LazyFrame) and kept.collect()["text"].to_list() == TEXTS[:2]
    assert lazy.lookalike.is_duplicate().to_list() == [False, False, True]
    assert lazy.lookalike.pairs().pairs.num_rows == 1 and lazy.lookalike.minhash().shape == (3, 128)
