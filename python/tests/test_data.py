"""What goes in: tables, frames, columns, lists; nulls, empty and odd ones."""

import numpy as np
import pyarrow as pa
import pytest

import lookalike as la

TEXTS = ["the ferry leaves at seven", "The ferry leaves at seven!", "a bridge"]
ROWS = {"id": ["a", "b", "c", "d"], "text": ["hello world again", "HELLO, world again", "bye bye", "渡船七点离开"]}


def frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    yield pa.table(ROWS)
    yield pa.table(ROWS).to_batches()[0]
    yield pa.table(ROWS).to_reader()
    yield polars.DataFrame(ROWS)
    yield polars.DataFrame(ROWS).lazy()
    yield pandas.DataFrame(ROWS)


def test_tables_and_frames():
    for data in frames():
        reader = isinstance(data, pa.RecordBatchReader)
        found = la.dedup(data)
        assert found.kept_rows.tolist() == [0, 2, 3]
        assert found.removed["id"].to_pylist() == ["b"]
        if not reader:
            kept = found.kept
            assert type(kept).__name__ in (type(data).__name__, "DataFrame")
            assert len(kept["text"]) == 3


def test_lazy_frames_are_collected_once():
    polars = pytest.importorskip("polars")
    calls = []

    def seen(frame):
        calls.append(frame.height)
        return frame.reverse() if len(calls) > 1 else frame

    found = la.dedup(polars.DataFrame(ROWS).lazy().map_batches(seen))
    assert found.kept["text"].to_list() == [ROWS["text"][row] for row in [0, 2, 3]]
    assert len(calls) == 1


def test_mixed_columns_are_ignored_unless_used():
    pandas = pytest.importorskip("pandas")
    mixed = {"text": ["a b c", "A, b, c", "x y z"], "meta": [1, "x", None]}
    rows = [dict(zip(mixed, values)) for values in zip(*mixed.values())]
    for data in (rows, pandas.DataFrame(mixed)):
        assert la.dedup(data).kept_rows.tolist() == [0, 2]
        with pytest.raises(la.InputError, match="the ids of data in `meta` have values of several types"):
            la.dedup(data, id="meta")


def test_columns_without_arrow_take_are_kept():
    pc = pytest.importorskip("pyarrow.compute")
    others = {"view": pa.array(["x", "y", "z"]).cast(pa.string_view()), "runs": pc.run_end_encode(pa.array([1, 1, 2]))}
    table = pa.table({"text": ["a b c", "A, b, c", "x y z"], **others})
    kept = la.dedup(table).kept
    assert kept.schema == table.schema
    assert kept["view"].to_pylist() == ["x", "z"] and kept["runs"].to_pylist() == [1, 2]


def test_sequences_keep_their_type_if_possible():
    from collections import deque, namedtuple

    pandas = pytest.importorskip("pandas")
    texts = ["a b c", "A, b, c", "x y z"]
    assert la.dedup(pandas.Index(texts)).kept.tolist() == ["a b c", "x y z"]
    assert list(la.dedup(pandas.array(texts)).kept) == ["a b c", "x y z"]
    assert la.dedup(namedtuple("Three", "a b c")(*texts)).kept == ("a b c", "x y z")
    assert list(la.dedup(deque(texts)).kept) == ["a b c", "x y z"]


def test_nanoarrow():
    """Streams and arrays of what knows the interface alone."""
    nanoarrow = pytest.importorskip("nanoarrow")
    table = pa.table(ROWS)
    found = la.dedup(nanoarrow.Array(table))
    assert found.kept_rows.tolist() == [0, 2, 3]
    assert found.kept["id"].to_pylist() == ["a", "c", "d"]
    found = la.dedup(nanoarrow.ArrayStream(table))
    assert found.kept["id"].to_pylist() == ["a", "c", "d"]
    assert la.simhash(nanoarrow.Array(table["text"]))[0] == la.simhash(ROWS["text"])[0]
    with pytest.raises(la.BadRowError, match="data:2: the field `text` is null"):
        la.dedup(nanoarrow.Array(pa.table({"text": ["a", None]})), strict=True)


def most_allocated(work):
    """The most bytes that pyarrow allocates at a time during a call."""
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        work()
    finally:
        pa.set_memory_pool(before)
    return pool.max_memory()


def test_strings_are_not_copied():
    """Those of pyarrow, polars and nanoarrow stay where they are: pyarrow allocates for results alone."""
    polars = pytest.importorskip("polars")
    nanoarrow = pytest.importorskip("nanoarrow")
    texts = pa.array(["the ferry leaves at seven " * 1000] * 40, pa.large_string())
    table = pa.table({"text": texts})
    few = table.nbytes // 10
    for data in (
        table,
        table.to_batches()[0],
        table.slice(1),
        pa.table({"text": pa.chunked_array([texts[:7], texts[7:]])}),
        texts,
        polars.DataFrame(table),
        nanoarrow.Array(table),
        nanoarrow.Array(texts),
    ):
        for work in (la.dedup, la.pairs):
            assert most_allocated(lambda: work(data, threads=1)) < few
        for work in (la.simhash, la.minhash):
            assert most_allocated(lambda: work(data, threads=1)) < few
        assert len(la.dedup(data).kept_rows) == 1
    before = pa.total_allocated_bytes()
    found = la.dedup(table)
    assert len(found.kept_rows) == 1 and pa.total_allocated_bytes() - before < few
    # A copy would be seen.
    assert most_allocated(lambda: pa.concat_arrays([texts, texts])) > table.nbytes
    assert most_allocated(lambda: la.dedup(texts.to_pylist())) > few


def test_data_sets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict(ROWS)
    kept = la.dedup(data).kept
    assert isinstance(kept, datasets.Dataset) and kept["id"] == ["a", "c", "d"]
    assert la.dedup(datasets.DatasetDict({"train": data})).kept["train"]["id"] == ["a", "c", "d"]


def test_columns_and_lists():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    texts = ROWS["text"]
    for data in (
        texts,
        tuple(texts),
        np.array(texts),
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
        pandas.Series(texts),
        polars.Series(texts),
    ):
        found = la.dedup(data)
        assert list(found.kept_rows) == [0, 2, 3]
        assert type(found.kept) is type(data) or isinstance(found.kept, (pa.Array, pa.ChunkedArray))
    assert la.dedup(text for text in texts).kept_rows.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_all_kinds_of_strings(kind):
    text = pa.array(ROWS["text"], pa.string()).cast(kind) if "dict" not in str(kind) else pa.array(
        ROWS["text"]
    ).dictionary_encode()
    table = pa.table({"text": text, "number": range(len(text))})
    found = la.dedup(table)
    assert found.kept_rows.tolist() == [0, 2, 3]
    assert found.kept.schema == table.schema
    assert found.kept.to_pylist() == [table.to_pylist()[row] for row in [0, 2, 3]]
    assert la.dedup(text).kept.to_pylist() == [ROWS["text"][row] for row in [0, 2, 3]]
    assert la.dedup(table.to_batches()[0]).kept.num_rows == 3
    assert la.simhash(text)[0] == la.simhash(ROWS["text"])[0]


def test_slices_are_read_where_they_are():
    table = pa.table({"text": ["x y z"] * 3 + ROWS["text"]}).slice(3)
    assert la.dedup(table).kept_rows.tolist() == [0, 2, 3]


def test_nulls_are_reported_and_not_kept():
    table = pa.table({"text": ["a b c", None, "a b c"], "id": ["x", "y", None]})
    found = la.dedup(table)
    assert found.kept_rows.tolist() == [0]
    assert found.rejected == [(1, "the field `text` is null, not a string")] and found.missing_ids == 1
    assert found.removed["id"].to_pylist() == ["data:3"] and found.summary["rejected"] == 1
    with pytest.raises(la.BadRowError, match="data:2: the field `text` is null"):
        la.dedup(table, strict=True)
    assert la.dedup(["a b", None, "a b"]).kept == ["a b"]


def test_empty_tables():
    for data in (
        [],
        pa.table({"text": pa.array([], pa.string())}),
        pa.table({"text": pa.chunked_array([], pa.large_string())}),
    ):
        found = la.dedup(data)
        assert len(found.kept_rows) == 0 and found.summary["documents"] == 0
        assert found.removed.column_names == [
            *("id", "kept", "similarity", "method", "threshold", "cluster"),
            *("source", "row", "kept_source", "kept_row", "form", "position", "kept_position"),
        ]
        assert la.pairs(data).pairs.column_names == [
            *("a", "b", "similarity"),
            *("a_source", "a_row", "b_source", "b_row", "form", "a_position", "b_position"),
        ]
    assert la.simhash([]).shape == (0,)
    assert la.minhash([]).shape == (0, 128)


def test_nested_fields_and_numeric_ids():
    table = pa.table(
        {
            "n": [7, 8, 9],
            "doc": [{"title": "t one two", "body": "b"}, {"title": "x y z", "body": None}, {"title": "T one, two", "body": "b"}],
        }
    )
    found = la.dedup(table, text=["doc.title", "doc.body"], id="n")
    assert found.removed.select(["id", "kept"]).to_pylist() == [{"id": 9, "kept": 7}]


def test_given_features_are_accepted():
    lists = pa.table({"f": [["a", "b", "c"], ["c", "b", "a"], ["x", "y"]]})
    assert la.dedup(lists, features="f", threshold=1.0).kept_rows.tolist() == [0, 2]
    words = pa.table({"f": ["a b c", "c b a", "x y"]})
    assert la.dedup(words, features="f", threshold=1.0).kept_rows.tolist() == [0, 2]


@pytest.mark.parametrize(
    "data,said",
    [
        ("one text", "data is the string 'one text': give ['one text'] for one text"),
        (["a", 1], "data[1] is of the type int, not a string"),
        (3, "data is of the type int"),
        (pa.table({"text": [1, 2]}), "which cannot be used as text"),
        (pa.table({"other": ["a"]}), "data has no column `text` among `other`"),
    ],
)
def test_wrong_types_are_refused(data, said):
    with pytest.raises(la.InputError) as raised:
        la.dedup(data)
    assert said in str(raised.value)


def test_sketches_of_too_short_texts_are_masked():
    codes = la.simhash(["The ferry leaves at seven.", "", None, "THE FERRY leaves at seven"])
    assert codes.dtype == np.uint64 and codes.mask.tolist() == [False, True, True, False]
    assert codes[0] == codes[3]
    wide = la.simhash(["The ferry leaves at seven."], recipe=la.Recipe("default", simhash={"bits": 128}))
    assert wide.shape == (1, 2) and wide[0, 0] == codes[0]
    with pytest.raises(la.InputError, match="not strings"):
        la.simhash(pa.array([1, 2]))


def test_many_texts_by_many_threads():
    texts = [f"text number {number} of the ferry {number % 7}" for number in range(5000)]
    one = la.minhash(texts, threads=1)
    assert (one == la.minhash(texts, threads=3)).all()
    assert (la.simhash(texts, threads=1) == la.simhash(texts, threads=2)).all()
    # Few texts are done without threads.
    for count in (1, 63, 64, 65):
        assert (la.minhash(texts[:count]) == one[:count]).all()
    assert (la.minhash([texts[7], "the ferry " * 10_000])[0] == one[7]).all()


@pytest.mark.parametrize("call", [la.dedup, la.pairs, la.passages])
def test_rows_without_columns_are_refused(call):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS})
    for rows in (frame.set_index("text"), pd.DataFrame(index=[1, 2, 3])):
        with pytest.raises(la.InputError, match=r"data has \d rows? and no columns: use `frame.reset_index\(\)`"):
            call(rows)
    with pytest.raises(la.InputError, match="data has 1 row and no columns: give a table"):
        call(pa.table({"a": [1]}).select([]))
    with pytest.raises(la.InputError, match="against has 3 rows and no columns"):
        la.dedup(TEXTS, against=pd.DataFrame(index=[1, 2, 3]))


def test_repeated_columns_are_refused_where_they_are_used():
    pd = pytest.importorskip("pandas")
    numbers = list(range(len(TEXTS)))
    frame = pd.DataFrame({"text": TEXTS, "a": numbers, "b": numbers})

    def named(*names):
        renamed = frame.set_axis(list(names), axis=1)
        return renamed, pa.Table.from_arrays([pa.array(renamed.iloc[:, at]) for at in range(3)], names=list(names))

    for data in named("id", "text", "text"):
        with pytest.raises(la.InputError, match="data has the column `text` twice: rename one of them"):
            la.dedup(data)
    for data in named("text", "id", "id"):
        for call in (la.dedup, la.pairs, la.passages, la.segment):
            with pytest.raises(la.InputError, match="data has the column `id` twice"):
                call(data)
        with pytest.raises(la.InputError, match="against has the column `id` twice"):
            la.dedup(TEXTS, against=data)
        assert len(la.dedup(data, id=False).kept) == 2
    for data in named("text", "w", "w"):
        for options in ({"within": "w"}, {"keep": "first,max:w"}, {"sources": "w"}, {"time": "w", "window": "2d"}, {"features": "w"}):
            with pytest.raises(la.InputError, match="data has the column `w` twice"):
                la.dedup(data, **options)
        with pytest.raises(la.InputError, match="data has the column `w` twice"):
            la.passages(data, within="w")
        assert len(la.dedup(data).kept) == 2


def test_subclasses_of_frames_and_columns_keep_their_type():
    pd = pytest.importorskip("pandas")

    class Mixin:
        __module__ = "elsewhere"

    class Places(Mixin, pd.DataFrame):
        __module__ = "elsewhere"

        @property
        def _constructor(self):
            return Places

    class Place(pd.Series):
        __module__ = "elsewhere"

        @property
        def _constructor(self):
            return Place

    index = list(range(7, 7 + len(TEXTS)))
    places, column = Places({"text": TEXTS}, index=index), Place(TEXTS, index=index)
    rows = la.dedup(TEXTS).kept_rows.tolist()
    for data, kind in ((places, Places), (column, Place)):
        kept = la.dedup(data).kept
        assert type(kept) is kind and kept.index.tolist() == [index[row] for row in rows]
    assert la.dedup(places, copies="copies").kept.columns.tolist() == ["text", "copies"]
    pl = pytest.importorskip("polars")

    class Frame(pl.DataFrame):
        __module__ = "elsewhere"

    assert la.dedup(Frame({"text": TEXTS})).kept["text"].to_list() == [TEXTS[row] for row in rows]
