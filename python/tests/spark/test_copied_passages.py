"""Copied passages in Spark, beside those of one machine for the same rows in the order of their ids."""

import doctest

import pyarrow as pa
import pytest
from alike import check_passages, rows_of
from corpora import NOTICE, copied

import lookalike as la
from lookalike import spark as las

SETTINGS = [
    {},
    {"min_length": 6},
    {"min_length": 20, "offsets": "bytes"},
    {"max_documents": 2},
    {"max_documents": 3},
    {"max_documents": "4%"},
    {"max_documents": "none", "min_length": 8},
    {"within": "site"},
    {"within": "site", "max_documents": 5},
    {"recipe": "characters-3"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_passages_equal_one_machine(spark, settings):
    table = copied(150)
    _, alone = check_passages(spark, table, **settings)
    kinds = set(alone.passages.column("kind").to_pylist())
    assert "verbatim" in kinds and len(alone.passages) > 20
    assert (alone.summary["boilerplate"]["grams"] > 0) == (settings.get("max_documents") != "none")


@pytest.mark.parametrize("settings", [{}, {"max_documents": 4}, {"within": "site", "offsets": "bytes"}], ids=str)
def test_reference_documents_are_the_only_sources(spark, settings):
    table = copied(200, seed=6)
    known, table = table.slice(0, 90), table.slice(90)
    ids = table.column("id").to_pylist()
    # Ids of the data that are known ones, too.
    known = known.set_column(0, "id", pa.array(ids[:30] + known.column("id").to_pylist()[30:]))
    _, alone = check_passages(spark, table, against=known, **settings)
    assert len(alone.passages) > 20
    assert set(alone.passages.column("source").to_pylist()) & set(ids[:30])


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("shuffled", ["1", "5"])
def test_partitions_change_nothing(spark, partitions, shuffled):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", shuffled)
    try:
        _, alone = check_passages(spark, copied(120, seed=7), partitions=partitions, max_documents=6)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert set(alone.passages.column("kind").to_pylist()) == {"verbatim", "edited", "reordered"}


def test_groups_are_compared_across_batches(spark):
    """Sixty copies of one text, more than a batch of Arrow has."""
    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        texts = [f"{at} {NOTICE} {at}" for at in range(60)]
        table = pa.table({"id": [f"{at * 37 % 60:02}" for at in range(60)], "text": texts})
        _, alone = check_passages(spark, table, max_documents="none")
        assert len(alone.passages) == 60 * 59 // 2
        _, alone = check_passages(spark, table, max_documents=59)
        # Grams that begin with a number are in one text each; all others are boilerplate.
        assert len(alone.passages) == 0 and alone.summary["boilerplate"]["documents"] == 60
        _, alone = check_passages(spark, table, max_documents=60)
        assert len(alone.passages) == 60 * 59 // 2
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)


def test_several_columns_of_text_and_other_types(spark, tmp_path):
    table = copied(90, seed=8)
    texts = table.column("text").to_pylist()
    titles = [None if at % 5 == 0 or text is None else text[:40] for at, text in enumerate(texts)]
    bodies = [None if at % 7 == 0 or text is None else text[40:] for at, text in enumerate(texts)]
    numbers = [int(id, 16) for id in table.column("id").to_pylist()]
    columns = {"key": numbers, "title": pa.array(titles, pa.string()), "body": pa.array(bodies, pa.string())}
    frame = spark.createDataFrame(pa.table(columns))
    found = las.passages(frame, id="key", text=["title", "body"], checkpoint=str(tmp_path))
    order = sorted(range(90), key=lambda at: str(numbers[at]))
    alone = la.passages(pa.table(columns).take(order), id="key", text=["title", "body"])
    # Spark has ids of documents as strings, and one machine in their type.
    expected = [(str(document), str(source), *rest) for document, source, *rest in rows_of(alone.passages)]
    assert rows_of(found.passages.toArrow()) == sorted(expected)
    assert len(alone.passages) > 10
    assert any(tmp_path.iterdir())


def test_shortest_length_is_inclusive(spark):
    words = [f"w{number}" for number in range(30)]
    known = pa.table({"id": ["k"], "text": [" ".join(words[:15])]})
    for length, found in ((11, 0), (12, 1), (13, 1)):
        table = pa.table({"id": ["d"], "text": ["x " + " ".join(words[:length]) + " y"]})
        result, _ = check_passages(spark, table, against=known)
        assert result.passages.count() == found


def test_empty_tables(spark):
    empty = spark.createDataFrame([], "id string, text string")
    frame = spark.createDataFrame([("a", NOTICE), ("b", None)], "id string, text string")
    for data, known, documents in [(empty, None, 0), (frame, empty, 1), (empty, frame, 0), (frame, None, 1)]:
        result = las.passages(data, known)
        assert result.passages.count() == 0
        assert result.summary["documents"] == documents
        assert result.rejected.count() == documents
        result.unpersist()


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"window": "2d"}, "window and time are not available on Spark"),
        ({"time": "at"}, "window and time are not available on Spark"),
        ({"order": "longest"}, "order is not available on Spark"),
        ({"min_length": 1}, "min_length is 1: give a whole number from 2 to 10000"),
        ({"min_length": None}, "min_length is None"),
        ({"max_documents": 0}, "max_documents is 0: give a whole number from 1"),
        ({"max_documents": 0.5}, "max_documents is 0.5: give a number of documents"),
        ({"max_documents": "half"}, "max_documents is 'half': give a number of documents"),
        ({"offsets": "words"}, "offsets is 'words', which is not one of characters, bytes"),
        ({"offsets": None}, "offsets is None: give characters or bytes"),
        ({"within": 3}, "within is 3: give a string"),
    ],
)
def test_wrong_options_are_refused(spark, settings, said):
    frame = spark.createDataFrame([("a", "x")], "id string, text string")
    with pytest.raises(la.SettingError) as raised:
        las.passages(frame, **settings)
    assert said in str(raised.value)


def test_wrong_data_is_refused(spark):
    frame = spark.createDataFrame([("a", "x", [1]), ("b", "y", [2])], "id string, text string, list array<int>")
    other = spark.createDataFrame([("a",)], "id string")
    for settings, said in [
        ({"text": "body"}, "no column 'body' among 'id', 'text', 'list'"),
        ({"id": "key"}, "no column 'key'"),
        ({"within": "site"}, "no column 'site'"),
        ({"text": "list"}, "'list' is of the type array<int>"),
        ({"within": "list"}, "'list' is of the type array<int>"),
        ({"against": other}, "no column 'text' among 'id'"),
    ]:
        with pytest.raises(la.InputError, match=said):
            las.passages(frame, **settings)
    frame = frame.select("id", "text")
    repeated = spark.createDataFrame([("b", "one"), ("a", "two"), ("b", "three")], "id string, text string")
    with pytest.raises(la.InputError, match="1 ids occur in more than one row, for example 'b'"):
        las.passages(repeated)
    with pytest.raises(la.InputError, match="1 ids of against occur in more than one row, for example 'b'"):
        las.passages(frame, repeated)
    for id, what in ((None, "null"), ("", "empty")):
        wrong = spark.createDataFrame([(id, "x")], "id string, text string")
        for given in ((wrong,), (frame, wrong)):
            with pytest.raises(Exception, match=f"the id of a row is {what}"):
                las.passages(*given)


def test_examples_of_the_docstrings(spark):
    for one in (las.passages, las.Passages):
        found = doctest.DocTestFinder(recurse=False).find(one, globs={"spark": spark})
        runner = doctest.DocTestRunner()
        assert [runner.run(test).failed for test in found] == [0]
        assert runner.tries > 3
