"""Items of benchmarks in documents: what the command finds and keeps, from every kind of data and of benchmark."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lookalike as la
from made import read_jsonl, write_jsonl
from made_benchmarks import ISLANDS, LIGHTS, SUMS, made_corpus


@pytest.fixture
def files(tmp_path):
    """The data and a directory of benchmarks."""
    folder = tmp_path / "evals"
    (folder / "islands").mkdir(parents=True)
    write_jsonl(folder / "lights.jsonl", LIGHTS)
    write_jsonl(folder / "islands/test.jsonl", ISLANDS)
    write_jsonl(folder / "sums.jsonl", SUMS)
    return write_jsonl(tmp_path / "rows.jsonl", made_corpus()), folder


def run_command(command, rows, benchmarks, *options):
    """Returns the tables of the command, the kept rows and the summary."""
    folder = rows.parent
    paths = [folder / name for name in ("out.jsonl", "findings.parquet", "items.parquet")]
    ran = command(
        "decontaminate", rows, "--benchmarks", benchmarks, "-o", paths[0], "--findings", paths[1], "--items", paths[2],
        "--json", "-q", *options,
    )  # fmt: skip
    return read_jsonl(paths[0]), pq.read_table(paths[1]), pq.read_table(paths[2]), json.loads(ran.stdout)


def findings_without_places(table):
    return table.select([name for name in table.column_names if name not in ("source", "position")]).to_pylist()


@pytest.mark.parametrize("cut", ["document", "passage", "sentence"])
def test_rows_equal_those_of_the_command(cut, files, command):
    rows, folder = files
    kept, findings, items, summary = run_command(command, rows, folder, "--cut", cut)
    found = la.decontaminate(made_corpus(), folder, cut=cut)
    assert findings_without_places(found.findings) == findings_without_places(findings)
    assert found.items.equals(items)
    assert found.kept == kept
    assert {name: value for name, value in found.summary.items() if name not in ("bytes", "seconds", "missing_ids")} == {
        name: value for name, value in summary.items() if name not in ("bytes", "seconds")
    }
    named = {(row["id"], row["benchmark"], row["item"]) for row in found.findings.to_pylist()}
    assert {
        ("d4", "lights", "lights-1"), ("d7", "lights", "lights-2"), ("d10", "lights", "lights-1"), ("d16", "sums", "1"),
        ("d22", "lights", "lights-2"), ("d5", "islands/test", "1"), ("d8", "islands/test", "2"),
    } == named  # fmt: skip
    # A document that is an item and nothing else is removed whatever is cut.
    assert [found.summary["removed"], found.summary["cut"]] == ([7, 0] if cut == "document" else [1, 6])


def test_cut_text_lacks_the_item_and_nothing_else():
    documents = made_corpus()
    texts = {row["id"]: row["text"] for row in documents}
    cut = {row["id"]: row["text"] for row in la.decontaminate(documents, {"all": LIGHTS + SUMS}, cut="passage").kept}
    assert "northern lighthouse" not in cut["d4"] and "1907" not in cut["d4"]
    assert len(cut["d4"]) > 200 and all(part in texts["d4"] for part in cut["d4"].split(". ")[:2])
    assert [id for id in cut if cut[id] != texts[id]] == ["d4", "d7", "d10", "d16"]
    whole = la.decontaminate(documents, {"all": LIGHTS + SUMS}, cut="sentence").kept
    assert "We ask you" not in next(row["text"] for row in whole if row["id"] == "d4")


def test_data_set_of_texts_alone_is_cut():
    """Without its text it would have no columns, and so no rows."""
    import datasets

    texts = [f"Read this. {LIGHTS[0]['question']} The end.", "A bridge over the river."]
    cut = la.decontaminate(datasets.Dataset.from_dict({"text": texts}), LIGHTS, cut="passage").kept
    assert cut.column_names == ["text"] and len(cut) == 2
    assert LIGHTS[0]["question"] not in cut["text"][0] and cut["text"][1] == texts[1]


def kinds_of_data(documents):
    """The same data in every type, and what makes rows of it again."""
    import datasets
    import pandas
    import polars

    columns = {name: [row[name] for row in documents] for name in ("id", "text", "site")}
    table = pa.table(columns)
    view = table.set_column(1, "text", table["text"].cast(pa.string_view()))
    chunks = pa.concat_tables([table.slice(0, 9), table.slice(9)])
    return {
        "rows": (documents, lambda kept: kept),
        "tuple": (tuple(documents), list),
        "iterator": (iter(documents), lambda kept: kept),
        "table": (table, lambda kept: kept.to_pylist()),
        "chunks": (chunks, lambda kept: kept.to_pylist()),
        "views": (view, lambda kept: kept.to_pylist()),
        "batch": (table.to_batches()[0], lambda kept: kept.to_pylist()),
        "reader": (table.to_reader(), lambda kept: kept.to_pylist()),
        "columns": (columns, lambda kept: pa.table(kept).to_pylist()),
        "arrays": ({**columns, "text": np.array(columns["text"])}, lambda kept: pa.table(kept).to_pylist()),
        "pandas": (pandas.DataFrame(columns), lambda kept: kept.to_dict("records")),
        "polars": (polars.DataFrame(columns), lambda kept: kept.to_dicts()),
        "lazy": (polars.DataFrame(columns).lazy(), lambda kept: kept.to_dicts()),
        "dataset": (datasets.Dataset.from_dict(columns), lambda kept: kept.to_list()),
        "splits": (
            datasets.DatasetDict({
                "a": datasets.Dataset.from_list(documents[:6]), "b": datasets.Dataset.from_list(documents[6:]),
            }),
            lambda kept: [*kept["a"], *kept["b"]],
        ),
    }  # fmt: skip


@pytest.mark.parametrize("cut", ["document", "sentence"])
def test_every_kind_of_data_keeps_its_type(cut):
    for module in ("datasets", "pandas", "polars"):
        pytest.importorskip(module)
    documents = made_corpus()
    expected = la.decontaminate(documents, {"lights": LIGHTS}, cut=cut)
    assert expected.kept != documents
    for name, (data, rows_of) in kinds_of_data(documents).items():
        found = la.decontaminate(data, {"lights": LIGHTS}, cut=cut)
        assert found.findings.equals(expected.findings), name
        assert rows_of(found.kept) == expected.kept, name
        if name in ("table", "chunks", "views", "batch"):
            assert found.kept.schema == data.schema, name
    table = kinds_of_data(documents)["dataset"][0]
    assert la.decontaminate(table, {"lights": LIGHTS}, cut=cut).kept.features == table.features


def test_lists_columns_and_paths_of_texts(files):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rows, folder = files
    texts = [row["text"] for row in made_corpus()]
    expected = la.decontaminate(texts, folder, cut="passage")
    assert expected.findings["id"].to_pylist()[0] == "5"
    kinds = [
        (tuple(texts), list), (np.array(texts), lambda kept: kept.tolist()), (pa.array(texts), lambda kept: kept.to_pylist()),
        (pa.chunked_array([texts[:9], texts[9:]]), lambda kept: kept.to_pylist()), (pandas.Series(texts), list),
        (polars.Series("x", texts), lambda kept: kept.to_list()),
    ]  # fmt: skip
    for data, texts_of in kinds:
        found = la.decontaminate(data, folder, cut="passage")
        assert type(found.kept) is type(data) and texts_of(found.kept) == expected.kept
    of_file = la.decontaminate(rows, folder, cut="passage")
    assert of_file.kept["text"].to_pylist() == expected.kept


def test_every_kind_of_benchmark_has_the_same_items(files, tmp_path):
    datasets, pandas, polars = (pytest.importorskip(module) for module in ("datasets", "pandas", "polars"))
    _, folder = files
    documents = made_corpus()

    def findings(benchmarks, **options):
        table = la.decontaminate(documents, benchmarks, **options).findings
        return [(row["id"], row["item"], row["found"], row["start"], row["item_end"]) for row in table.to_pylist()]

    expected = findings(folder / "lights.jsonl")
    assert len(expected) == 4
    table = pa.Table.from_pylist(LIGHTS)
    pq.write_table(table, tmp_path / "lights.parquet")
    kinds = [
        LIGHTS, tuple(LIGHTS), [LIGHTS], {"x": LIGHTS}, table, {"quiz/test": table}, pandas.DataFrame(LIGHTS),
        polars.DataFrame(LIGHTS), datasets.Dataset.from_list(LIGHTS),
        datasets.DatasetDict({"test": datasets.Dataset.from_list(LIGHTS)}), str(tmp_path / "lights.parquet"),
        [tmp_path / "lights.parquet"], str(folder / "li*.jsonl"),
        [{**item, "choices": np.array(item["choices"])} for item in LIGHTS], iter(LIGHTS),
    ]  # fmt: skip
    for benchmarks in kinds:
        assert findings(benchmarks) == expected
    renamed = [
        {"ask": item["question"], **dict(zip("abcd", item["choices"])), "key": "ABCD"[item["answer"]], "n": item["id"]}
        for item in LIGHTS
    ]
    fields = {"question": "ask", "choices": ["a", "b", "c", "d"], "answer": "key", "id": "n"}
    assert findings(renamed, fields=fields) == expected
    assert findings(renamed, fields="question=ask,choices=a+b+c+d,answer=key,id=n") == expected


def test_benchmarks_have_names(files):
    _, folder = files

    def names(benchmarks):
        found = la.decontaminate(made_corpus(), benchmarks)
        assert set(found.findings["benchmark"].to_pylist()) <= {one["name"] for one in found.summary["benchmarks"]}
        return [one["name"] for one in found.summary["benchmarks"]]

    assert names(LIGHTS) == ["benchmark"]
    assert names([LIGHTS, pa.Table.from_pylist(SUMS)]) == ["benchmark1", "benchmark2"]
    assert sorted(names([folder / "lights.jsonl", SUMS])) == ["benchmark", "lights"]
    assert sorted(names({"v1.5/dev.v2": LIGHTS, "sums": SUMS})) == ["sums", "v1.5/dev.v2"]
    assert names(folder) == ["islands/test", "lights", "sums"]


def test_ids_keep_their_type_and_bad_rows_are_told():
    documents = [{"key": number + 100, "text": row["text"]} for number, row in enumerate(made_corpus())]
    documents[1]["text"] = None
    documents[7]["key"] = None
    found = la.decontaminate(documents, LIGHTS, id="key", cut="passage")
    assert found.findings.schema.field("id").type == pa.int64()
    places = [(row["id"], row["position"], row["row"]) for row in found.findings.to_pylist()]
    assert places == [(104, 4, 5), (None, 7, 8), (110, 10, 11), (122, 22, 23)]
    assert found.rejected == [(1, "the field `text` is null, not a string")]
    assert found.missing_ids == 1
    assert found.kept_rows.dtype == np.int64 and found.kept_rows.tolist() == [
        row for row in range(60) if row not in (1, 22)
    ]
    assert "lighthouse" not in found.kept[3]["text"]
    assert repr(found) == (
        "<Decontaminated 59 documents: 58 kept, 1 removed, 3 cut, 2 of 3 items found, 1 row rejected, 1 row without an id>"
    )
    assert "lights-1" in found._repr_html_()


def test_threads_and_progress_do_not_change_the_result(files):
    _, folder = files
    told = []
    found = [
        la.decontaminate(made_corpus(), folder, threads=threads, progress=lambda *step: told.append(step)).findings
        for threads in (1, 2, 5)
    ]
    assert found[0].equals(found[1]) and found[0].equals(found[2])


@pytest.mark.parametrize(
    "call,said",
    [
        (lambda: la.decontaminate(["a"], []), "benchmarks has no benchmark"),
        (lambda: la.decontaminate(["a"], {}), "benchmarks has no benchmark"),
        (lambda: la.decontaminate(["a"], None), "benchmarks['benchmark'] is None"),
        (lambda: la.decontaminate(["a"], "/none/x.jsonl"), "/none/x.jsonl"),
        (lambda: la.decontaminate(["a"], {"../x": LIGHTS}), "benchmarks has the name '../x'"),
        (lambda: la.decontaminate(["a"], {"x": "a.jsonl"}), "benchmarks['x'] is 'a.jsonl': give a table"),
        (lambda: la.decontaminate(["a"], [LIGHTS, 5]), "benchmarks['benchmark2'] is of the type int"),
        (
            lambda: la.decontaminate(["a"], {"quiz": [{"ask": "How long is it?"}]}),
            'quiz.jsonl:1: its fields are those of no known benchmark: `ask`; say which field is the question, for example '
            'fields="question=ask"',
        ),
        (lambda: la.decontaminate(["a"], LIGHTS, fields={"question": "q"}), "the field `q`, which fields names for"),
        (lambda: la.decontaminate(["a"], LIGHTS, fields={"query": "q"}), "fields names the field of 'query'"),
        (lambda: la.decontaminate(["a"], LIGHTS, fields={"question": "a,b"}), "fields['question'] is ['a,b']"),
        (lambda: la.decontaminate(["a"], LIGHTS, fields=5), "fields is 5: give a dictionary"),
        (lambda: la.decontaminate(["a"], LIGHTS, fields="answer=key"), "fields is `answer=key` has no question"),
        (lambda: la.decontaminate(["a"], LIGHTS, cut="word"), "cut is 'word', which is not one of document, passage"),
        (lambda: la.decontaminate(["a"], LIGHTS, cut=None), "cut is None: give document, passage or sentence"),
        (lambda: la.decontaminate([{"body": "a"}], LIGHTS), "data has no column `text`"),
        (lambda: la.decontaminate([{"body": "a"}], LIGHTS, cut="passage"), "data has no column `text`"),
        (
            lambda: la.decontaminate([{"a": "x", "b": "y"}], LIGHTS, text=["a", "b"], cut="passage"),
            'leave out whole documents with cut="document"',
        ),
        (
            lambda: la.decontaminate([{"a": {"b": "x"}}], LIGHTS, text="a.b", cut="passage"),
            "the text `a.b` is within a column",
        ),
        (
            lambda: la.decontaminate(pa.table({"text": pa.array(["a"]).dictionary_encode()}), LIGHTS, cut="passage"),
            "the text `text` is of the type dictionary",
        ),
        (lambda: la.decontaminate(["a"], LIGHTS, threads=0), "threads is 0"),
        (lambda: la.decontaminate(["a", None], LIGHTS, strict=True), "data:2: the field `text` is null"),
    ],
)
def test_refusals_name_value_and_place(call, said):
    with pytest.raises(la.LookalikeError) as raised:
        call()
    assert said in str(raised.value)
    assert "--" not in str(raised.value) and "lookalike-" not in str(raised.value)


def test_data_without_rows():
    found = la.decontaminate([], LIGHTS)
    assert (found.kept, found.kept_rows.tolist(), found.findings.num_rows, found.items.num_rows) == ([], [], 0, 0)
    assert found.summary["items"] == 3


def test_rejected_rows_of_benchmarks_name_no_temporary_file():
    quiz = [*LIGHTS, {"question": " ", "choices": ["a", "b"], "answer": 0}]
    told = la.decontaminate(["a"], {"quiz": quiz}).summary["benchmarks"][0]
    assert told["rejected_rows"] == [{"place": "quiz.jsonl:4", "reason": "the question is empty"}]


def test_texts_in_place_of_benchmarks_are_refused_by_name(tmp_path):
    texts = ["the ferry leaves at seven", "a bridge", "a tower", "a school"]
    with pytest.raises(la.InputError, match="benchmarks: there is none of the files 'the ferry leaves at seven', .*, …: give paths"):
        la.decontaminate(texts, texts)
    with pytest.raises(la.InputError, match="benchmarks: there is no file 'nowhere.jsonl'"):
        la.decontaminate(texts, "nowhere.jsonl")
    (tmp_path / "quiz.jsonl").write_text('{"question": "which ferry leaves at seven in the morning?", "answer": "7"}\n')
    assert la.decontaminate(texts, str(tmp_path / "q*.jsonl")).summary["items"] == 1
