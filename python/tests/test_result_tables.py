"""Results as tables and frames: equal columns, and ids in the type of the data wherever a document is named."""

import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lookalike as la

TEXTS = ["the ferry leaves at seven", "The ferry leaves at seven!", "a bridge", "A bridge.", "the ferry leaves at six"]
UUIDS = [uuid.UUID(int=number) for number in range(5)]


def frames_of(result, *table):
    arrow, pandas, polars = result.to_arrow(*table), result.to_pandas(*table), result.to_polars(*table)
    assert arrow.column_names == list(pandas.columns) == polars.columns
    assert arrow.num_rows == len(pandas) == polars.height
    return arrow, pandas, polars


def test_results_are_tables_of_all_kinds():
    data = {"id": [5, 6, 7, 8, 9], "text": TEXTS}
    result = la.dedup(data, threshold=0.5, components=True)
    for name in ("removed", "clusters", "pairs"):
        arrow, pandas, polars = frames_of(result, name)
        assert arrow.equals(getattr(result, name)) and pandas.to_dict("list").keys() == polars.to_dict().keys()
    assert frames_of(result)[0].equals(result.removed)
    found = la.pairs(data, threshold=0.5)
    assert frames_of(found)[2]["a"].to_list() == found.pairs["a"].to_pylist()
    table, compared, _ = frames_of(la.compare(TEXTS[0], TEXTS[4]))
    assert compared.set_index("figure").loc["Jaccard", "value"] == 0.6 and table.schema.field("value").type == pa.float64()
    assert frames_of(la.passages(TEXTS[0], TEXTS[1], min_length=3))[0].to_pylist()[0]["b_end"] == 25
    assert frames_of(la.passages(TEXTS[0], "nothing"))[0].num_rows == 0
    shared = frames_of(la.passages(data, min_length=3))[1]
    assert set(shared["document"]) | set(shared["source"]) == {5, 6, 9} and shared["source"].dtype == np.int64
    quiz = [{"question": "In which year did the first ferry reach the northern lighthouse?", "answer": "1907"}]
    page = "Q: in which year did the first ferry reach the NORTHERN lighthouse? 1907."
    findings = la.decontaminate({"id": [7], "text": [page]}, quiz)
    assert frames_of(findings)[1]["id"].tolist() == [7] and frames_of(findings, "items")[0].num_rows == 1
    index, signed = la.HammingIndex(), la.LshIndex()
    index.add(la.simhash(TEXTS))
    signed.add(la.minhash(TEXTS))
    assert frames_of(index.search(la.simhash(TEXTS[:1])))[1].columns.tolist() == ["query", "id", "distance"]
    assert frames_of(signed.search(la.minhash(TEXTS[:1])))[1].columns.tolist() == ["query", "id", "similarity"]
    with pytest.raises(la.SettingError, match="table is 'kept': give 'removed' or 'clusters' or 'pairs'"):
        result.to_pandas("kept")


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([5, 6, 7, 8, 9], pa.int32()),
        pa.array([5, 6, 7, 8, 9], pa.uint64()),
        pa.array([1.5, 2.5, 3.5, 4.5, 5.5]),
        pa.array(pd.date_range("2020", periods=5)),
        pa.array([5, 6, 7, 8, 9]).dictionary_encode(),
        pa.array(["a", "b", "c", "d", "e"]),
    ],
    ids=lambda ids: str(ids.type)[:12],
)
def test_every_name_of_a_document_has_the_type_of_the_ids(ids):
    kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
    values = ids.to_pylist()
    result = la.dedup(pa.table({"id": ids, "text": TEXTS}), threshold=0.5, components=True)
    for name in ("id", "cluster", "representative", "component"):
        assert result.clusters.schema.field(name).type == kind
        assert result.clusters.schema.field(name).type == result.removed.schema.field("kept").type
    assert result.removed["cluster"].to_pylist() == [values[0], values[2], values[0]]
    assert result.clusters["representative"].to_pylist() == [values[at] for at in (0, 0, 2, 2, 0)]


def test_clusters_are_joined_with_the_data():
    frame = pd.DataFrame({"id": [10, 20, 30, 40, 50], "text": TEXTS})
    clusters = la.dedup(frame, threshold=0.5).to_pandas("clusters")
    joined = clusters.merge(frame, left_on="representative", right_on="id")
    assert joined["text"].tolist() == [TEXTS[0], TEXTS[0], TEXTS[2], TEXTS[2], TEXTS[0]]
    polar = pl.from_pandas(frame)
    assert polar.join(la.dedup(polar).to_polars("clusters"), left_on="id", right_on="cluster").height == 4
    other = la.dedup({"id": [1, 2], "text": TEXTS[:2]}, against={"id": [7, 8], "text": TEXTS[1:3]})
    assert other.clusters["representative"].to_pylist() == [7, 7, 7] and other.removed["cluster"].to_pylist() == [7, 7]


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this pyarrow has no type for UUIDs")
def test_uuids_are_ids():
    rows = [{"id": one, "text": text} for one, text in zip(UUIDS, TEXTS)]
    frame = pd.DataFrame(rows)
    for data in (rows, frame, {"id": UUIDS, "text": TEXTS}):
        result = la.dedup(data)
        assert result.removed["id"].to_pylist() == [UUIDS[1], UUIDS[3]]
        assert result.clusters["cluster"].to_pylist() == [UUIDS[0], UUIDS[0], UUIDS[2], UUIDS[2]]
        assert la.pairs(data).pairs["a"].to_pylist() == [UUIDS[0], UUIDS[2]]
    assert frame.merge(result.to_pandas(), on="id")["text"].tolist() == [TEXTS[1], TEXTS[3]]
    assert result.to_polars()["id"].to_list() == [str(UUIDS[1]), str(UUIDS[3])]
    objects = la.dedup(pl.DataFrame({"id": pl.Series(UUIDS, dtype=pl.Object), "text": TEXTS}))
    assert objects.removed["id"].to_pylist() == [UUIDS[1], UUIDS[3]]
    missing = la.dedup([{**row, "id": row["id"] if at else None} for at, row in enumerate(rows)])
    assert missing.missing_ids == 1 and missing.removed["kept"].to_pylist() == [None, UUIDS[2]]


@pytest.mark.parametrize("base, problem", [(2**65, "whole numbers beyond 64 bits"), ("x", "values of several types")])
def test_ids_that_no_column_holds_are_refused_in_words(base, problem):
    ids = [base, *range(4)]
    rows = [{"id": one, "text": text} for one, text in zip(ids, TEXTS)]
    for data in (rows, pd.DataFrame(rows), {"id": ids, "text": TEXTS}):
        with pytest.raises(la.InputError, match=f"^the ids of data in `id` have {problem}: give strings, or whole numbers"):
            la.dedup(data)
        assert len(la.dedup(data, id=False).kept_rows) == 3, "a column that is not used may have any values"


def test_truth_of_verdicts():
    stream = la.Stream()
    for _ in range(2):
        with pytest.raises(TypeError, match="a verdict has no truth value: use its is_kept"):
            bool(stream.insert(TEXTS[0]))
    assert la.compare(TEXTS[0], TEXTS[1]) and not la.compare(TEXTS[0], TEXTS[2])


def test_whole_numbers_beside_missing_ones_keep_their_values_in_pandas():
    pytest.importorskip("pandas")
    first, third = 2**60 + 1, 2**60 + 3
    rows = {"id": [first, None, third], "text": ["the ferry leaves", "The ferry leaves!", "THE FERRY leaves"]}
    frame = la.dedup(rows).to_pandas("clusters")
    assert frame["id"].dtype == "Int64" and frame["id"].dropna().tolist() == [first, third]
    assert frame["id"].isna().sum() == 1 and set(frame["cluster"]) == {first}
    whole = la.dedup({**rows, "id": [first, 2**60 + 2, third]}).to_pandas()
    assert whole["id"].dtype == "int64" and whole["id"].tolist() == [2**60 + 2, third]
