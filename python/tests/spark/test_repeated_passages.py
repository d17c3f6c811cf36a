"""Repeated passages in Spark, beside those of the command for the same rows in the order of their ids."""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from alike import by_id, frame_from
from corpora import NOTICE, copied

import lookalike as la
from lookalike import spark as las
from lookalike.spark._session import collect_arrow

COLUMNS = ("id", "first", "start", "end", "first_start", "first_end", "length", "text")


def write_rows(path, table):
    path.write_text("".join(json.dumps(row) + "\n" for row in by_id(table).to_pylist()))


def read_rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def cut_alone(tmp_path, table, against, **settings):
    """The kept rows, the cuts and the numbers of the command."""
    line = ["dedup", "in.jsonl", "--method", "exact", "--passages", "remove", "-o", "out.jsonl", "--cuts", "cuts.jsonl"]
    write_rows(tmp_path / "in.jsonl", table)
    if against is not None:
        write_rows(tmp_path / "known.jsonl", against)
        line += ["--against", "known.jsonl"]
    for name, value in settings.items():
        line += [f"--{name.replace('_', '-')}", str(value)]
    # The directory of the run is another one, so the path of the package must not depend on it.
    package = str(Path(la.__file__).resolve().parent.parent)
    ran = subprocess.run(
        [sys.executable, "-m", "lookalike", *line, "--json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": package}, capture_output=True, text=True,
    )
    assert ran.stdout, ran.stderr
    # 1 says that rows without a text were rejected.
    assert ran.returncode in (0, 1), ran.stderr
    return read_rows(tmp_path / "out.jsonl"), read_rows(tmp_path / "cuts.jsonl"), json.loads(ran.stdout)["passages"]


def check_cuts(session, tmp_path, table, against=None, checkpoint=None, partitions=None, **settings):
    """Asserts that Spark cuts what the command does. Returns the cuts."""
    kept, cuts, numbers = cut_alone(tmp_path, table, against, **settings)
    # The command also removes equal texts.
    ids = {row["id"] for row in kept}
    rows = [row["id"] in ids or row["text"] is None for row in table.to_pylist()]
    table = table.filter(pa.array(rows))
    frame = frame_from(session, table)
    frame = frame if partitions is None else frame.repartition(partitions)
    known = None if against is None else frame_from(session, against)
    result = las.repeated_passages(frame, known, checkpoint=checkpoint, **settings)
    found = collect_arrow(result.cuts).to_pylist()
    assert sorted(tuple(row[name] for name in COLUMNS) for row in found) == sorted(
        tuple(row[name] for name in COLUMNS) for row in cuts
    )
    remaining = collect_arrow(result.kept)
    assert remaining.column_names == table.column_names
    assert {row["id"]: row for row in remaining.to_pylist()} == {row["id"]: row for row in kept}
    assert result.summary["passages"] == numbers
    rejected = {row.id for row in result.rejected.collect()}
    assert rejected == {row["id"] for row in table.to_pylist() if row["text"] is None}
    result.unpersist()
    return cuts


def sentences(rows, seed=5):
    """The texts of `copied` with sentences, so that whole ones are repeated."""
    table = copied(rows, seed=seed)
    texts = [
        None if text is None else text.replace(" ka", ". ka").replace(" mi", ".\nmi").replace("的", "的。")
        for text in table.column("text").to_pylist()
    ]
    return table.set_column(1, "text", pa.array(texts, pa.string()))


SETTINGS = [
    {"min_length": 4},
    {"min_length": 6, "within": "site"},
    {"min_length": 12},
    {"min_length": 4, "recipe": "characters-3"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_cuts_equal_those_of_the_command(spark, tmp_path, settings):
    cuts = check_cuts(spark, tmp_path, sentences(150), **settings)
    assert len(cuts) > 10


def test_known_documents_come_first(spark, tmp_path):
    table = sentences(200, seed=6)
    known, table = table.slice(0, 90), table.slice(90)
    known = known.filter(pa.array([text is not None for text in known.column("text").to_pylist()]))
    ids = table.column("id").to_pylist()
    # Ids of the data that are known ones, too.
    known = known.set_column(0, "id", pa.array(ids[:30] + known.column("id").to_pylist()[30:]))
    cuts = check_cuts(spark, tmp_path, table, against=known, min_length=4, checkpoint=str(tmp_path / "tables"))
    assert len(cuts) > 20
    assert any((tmp_path / "tables").iterdir())


@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_change_nothing(spark, tmp_path, partitions):
    assert check_cuts(spark, tmp_path, sentences(120, seed=7), partitions=partitions, min_length=4)


def test_a_first_occurrence_that_was_cut_is_named_by_what_stays(spark, tmp_path):
    one, two = ("One boat sails out of the harbour.", "Two boats come back at night.")
    texts = [f"{one} Own words.", f"Other. {two}", f"New. {one} {two}", f"{one} {two} Last.", one]
    table = pa.table({"id": ["a", "b", "c", "d", "e"], "text": texts})
    cuts = check_cuts(spark, tmp_path, table, min_length=6)
    # The words around the border of both sentences stand in c first, where they were cut.
    assert [(cut["id"], cut["first"]) for cut in cuts] == [
        ("c", "a"), ("c", "b"), ("d", "a"), ("d", "b"), ("e", "a"),
    ]


def test_shortest_length_is_inclusive(spark, tmp_path):
    words = [f"Word{number}" for number in range(30)]
    for length, found in ((11, 0), (12, 1), (13, 1)):
        passage = " ".join(words[:length])
        table = pa.table({"id": ["a", "b"], "text": [f"One begins. {passage}. One ends.", f"Two begins. {passage}. Two ends."]})
        assert len(check_cuts(spark, tmp_path, table, min_length=12)) == found


def test_empty_tables(spark):
    empty = spark.createDataFrame([], "id string, text string")
    frame = spark.createDataFrame([("a", NOTICE), ("b", None)], "id string, text string")
    for data, known, documents in [(empty, None, 0), (frame, empty, 1), (empty, frame, 0)]:
        result = las.repeated_passages(data, known)
        assert result.cuts.count() == 0
        assert result.kept.count() == documents
        assert result.summary["documents"] == documents


@pytest.mark.parametrize(
    "settings,said",
    [
        ({"min_length": 1}, "min_length is 1: give a whole number from 2 to 10000"),
        ({"within": 3}, "within is 3: give a string"),
        ({"text": ["id", "text"]}, "passages are cut from one column, and the text has 2: name one"),
    ],
)
def test_wrong_options_are_refused(spark, settings, said):
    frame = spark.createDataFrame([("a", "x")], "id string, text string")
    with pytest.raises(la.SettingError) as raised:
        las.repeated_passages(frame, **settings)
    assert said in str(raised.value)


def test_wrong_data_is_refused(spark):
    frame = spark.createDataFrame([("a", "x", ("y",))], "id string, text string, inner struct<text: string>")
    for settings, said in [
        ({"text": "body"}, "no column 'body' among 'id', 'text', 'inner'"),
        ({"text": "inner.text"}, "the text 'inner.text' is within a column"),
        ({"within": "site"}, "no column 'site'"),
    ]:
        with pytest.raises(la.InputError, match=said):
            las.repeated_passages(frame, **settings)
    frame = frame.select("id", "text")
    repeated = spark.createDataFrame([("b", "one"), ("a", "two"), ("b", "three")], "id string, text string")
    with pytest.raises(la.InputError, match="1 ids occur in more than one row, for example 'b'"):
        las.repeated_passages(repeated)
    with pytest.raises(la.InputError, match="1 ids of against occur in more than one row, for example 'b'"):
        las.repeated_passages(frame, repeated)
    for id, what in ((None, "null"), ("", "empty")):
        wrong = spark.createDataFrame([(id, "x")], "id string, text string")
        for given in ((wrong,), (frame, wrong)):
            with pytest.raises(la.InputError, match=f"the id of a row is {what}"):
                las.repeated_passages(*given)


def test_examples_of_the_docstrings(spark):
    for one in (las.repeated_passages, las.RepeatedPassages):
        found = doctest.DocTestFinder(recurse=False).find(one, globs={"spark": spark})
        runner = doctest.DocTestRunner()
        assert [runner.run(test).failed for test in found] == [0]
        assert runner.tries > 3
