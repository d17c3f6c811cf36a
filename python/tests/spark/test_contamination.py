"""Items of benchmarks in Spark, beside those of one machine for the same rows."""

import doctest

import pyarrow as pa
import pytest
from alike import by_id, frame_from, rows_of
from made_benchmarks import ISLANDS, LIGHTS, SUMS, made_corpus

import lookalike as la
from lookalike import spark as las
from lookalike.spark import _text_cuts
from lookalike.spark._session import collect_arrow

ALL = {"lights": LIGHTS, "islands/test": ISLANDS, "sums": SUMS}


def frequent(copies):
    """Documents of which so many have one question alone, one has it with its answer, and one with its choices."""
    question = LIGHTS[1]["question"]
    texts = [f"Number {number}. {question}" for number in range(copies)]
    texts += [f"{question} Old Skarvoy harbour.", LIGHTS[0]["question"]]
    return pa.table({"id": [f"f{number:02}" for number in range(len(texts))], "text": texts})


def check(session, table, benchmarks=ALL, frame=None, checkpoint=None, **settings):
    """Asserts that Spark finds what one machine finds; returns the results of both."""
    frame = frame_from(session, table) if frame is None else frame
    result = las.decontaminate(frame, benchmarks, checkpoint=checkpoint, **settings)
    alone = la.decontaminate(by_id(table), benchmarks, threads=2, **{"id": "id", **settings})
    found = collect_arrow(result.findings)
    assert found.column_names == alone.findings.column_names[:9]
    assert rows_of(found) == rows_of(alone.findings.select(found.column_names))
    assert rows_of(collect_arrow(result.items)) == rows_of(alone.items)
    ids = by_id(table)["id"].to_pylist()
    kept = collect_arrow(result.kept)
    assert kept.column_names == table.column_names
    assert rows_of(kept) == rows_of(alone.kept)
    assert sorted(row.id for row in result.rejected.select("id").collect()) == [ids[row] for row, _ in alone.rejected]
    left_out = {"seconds", "index_bytes", "missing_ids"}
    assert result.summary == {name: value for name, value in alone.summary.items() if name not in left_out}
    return result, alone


@pytest.mark.parametrize("partitions", [1, 3, 9])
def test_findings_equal_one_machine(spark, tmp_path, partitions):
    table = pa.Table.from_pylist(made_corpus())
    frame = frame_from(spark, table).repartition(partitions)
    for checkpoint in (None, str(tmp_path)):
        _, alone = check(spark, table, frame=frame, checkpoint=checkpoint)
        assert alone.summary["removed"] == 7


@pytest.mark.parametrize("cut", ["passage", "sentence"])
def test_texts_lack_what_one_machine_cuts(spark, tmp_path, monkeypatch, cut):
    table = pa.Table.from_pylist(made_corpus())
    frame = frame_from(spark, table).repartition(5)
    for checkpoint, most in ((None, 1_000_000), (str(tmp_path), 0)):
        # More cuts than are broadcast are joined.
        monkeypatch.setattr(_text_cuts, "_BROADCAST", most)
        result, alone = check(spark, table, frame=frame, checkpoint=checkpoint, cut=cut)
        assert [result.summary["removed"], result.summary["cut"]] == [1, 6]
        assert alone.kept["text"].to_pylist() != table["text"].to_pylist()
        assert repr(result) == "<Decontaminated DataFrame: 1 document removed, 6 cut; summary counts the others>"


def test_cuts_of_boilerplate_and_of_nothing(spark):
    for table in (frequent(21), pa.table({"id": ["a"], "text": ["Nothing of it."]})):
        check(spark, table, cut="sentence")
    empty = las.decontaminate(spark.createDataFrame([], "id string, text string"), ALL, cut="passage")
    assert (empty.kept.count(), empty.summary["cut"]) == (0, 0)


def test_cut_texts_must_be_those_that_were_searched():
    assert _text_cuts._rest("ab灯c", 6.0, [2, 5]) == "abc"
    assert _text_cuts._rest(None, None, None) is None
    for text in ("ab灯", None):
        with pytest.raises(la.InputError, match="a text of the data differs from the one that was searched"):
            _text_cuts._rest(text, 6.0, [2, 5])


@pytest.mark.parametrize("copies", [20, 21])
def test_questions_in_many_documents_are_boilerplate_everywhere(spark, copies):
    table = frequent(copies)
    result, alone = check(spark, table, frame=frame_from(spark, table).repartition(4))
    named = alone.summary["boilerplate_questions"]
    if copies == 20:
        assert named == [] and alone.summary["removed"] == 22
    else:
        assert [(one["item"], one["documents"]) for one in named] == [("lights-2", 21)]
        assert alone.summary["removed"] == 2 and result.summary["boilerplate"] == 21


def test_rows_that_are_not_valid_are_rejected(spark):
    rows = made_corpus()[:12]
    rows[3]["text"] = None
    check(spark, pa.Table.from_pylist(rows))


def test_nothing_found_and_nothing_there(spark):
    table = pa.table({"id": ["a", "b"], "text": ["Nothing of it.", "什么也没有。"]})
    _, alone = check(spark, table)
    assert alone.summary["findings"] == 0
    empty = las.decontaminate(spark.createDataFrame([], "id string, text string"), ALL)
    assert (empty.findings.count(), empty.kept.count(), empty.summary["documents"]) == (0, 0, 0)


def test_other_columns_and_fields(spark):
    rows = [
        {"url": row["id"], "head": "A page", "body": row["text"]} for row in made_corpus()[:14]
    ]
    asked = [{"ask": item["question"], "key": item["choices"][item["answer"]]} for item in LIGHTS]
    settings = {"text": ["head", "body"], "id": "url", "fields": {"question": "ask", "answer": "key"}}
    result = las.decontaminate(spark.createDataFrame(rows), asked, **settings)
    alone = la.decontaminate(rows, asked, **settings)
    found = collect_arrow(result.findings)
    assert rows_of(found) == rows_of(alone.findings.select(found.column_names))
    assert len(alone.findings) == 3
    assert result.kept.columns == sorted(rows[0])


def test_refusals(spark):
    rows = [(id, LIGHTS[0]["question"]) for id in ("a", "b", "a")]
    frame = spark.createDataFrame(rows, "id string, text string")
    with pytest.raises(la.InputError, match="1 ids occur in more than one row, for example 'a'"):
        las.decontaminate(frame, LIGHTS)
    with pytest.raises(la.InputError, match="the data has no column 'body'"):
        las.decontaminate(frame, LIGHTS, text="body")
    with pytest.raises(la.SettingError, match="fields names the field of 'query'"):
        las.decontaminate(frame, LIGHTS, fields={"query": "q"})
    with pytest.raises(la.InputError, match="benchmarks has no benchmark"):
        las.decontaminate(frame, [])
    with pytest.raises(la.SettingError, match="cut is 'word', which is not one of document, passage"):
        las.decontaminate(frame, LIGHTS, cut="word")
    with pytest.raises(la.SettingError, match="cut is None: give document, passage or sentence"):
        las.decontaminate(frame, LIGHTS, cut=None)
    with pytest.raises(la.LookalikeError, match='leave out whole documents with cut="document"'):
        las.decontaminate(frame, LIGHTS, text=["id", "text"], cut="passage")
    nested = spark.createDataFrame([("a", ("x",))], "id string, page struct<body: string>")
    with pytest.raises(la.SettingError, match="the text `page.body` is within a column"):
        las.decontaminate(nested, LIGHTS, text="page.body", cut="passage")


def test_examples_of_the_docstrings(spark):
    for one in (las.decontaminate, las.Decontaminated):
        found = doctest.DocTestFinder(recurse=False).find(one, globs={"spark": spark})
        runner = doctest.DocTestRunner()
        assert [runner.run(test).failed for test in found] == [0]
        assert runner.tries > 3
