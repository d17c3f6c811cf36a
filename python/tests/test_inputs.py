"""Inputs: files, dictionaries of columns, data sets, features of one's own, accessors and scikit-learn."""

import gzip
import json
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from made import write_jsonl

import lookalike as la
from lookalike.errors import RecipeError

TEXTS = ["the ferry leaves at seven", "a bridge over the river", "The ferry leaves at seven!"]
KEPT = TEXTS[:2]


def test_files_are_read_by_path_pattern_and_directory(tmp_path):
    rows = [{"id": at, "text": text} for at, text in enumerate(TEXTS)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    pa.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    (tmp_path / "d.csv").write_text("id,text\n" + "".join(f'{row["id"]},"{row["text"]}"\n' for row in rows))
    (tmp_path / "e.tsv").write_text("id\ttext\n" + "".join(f"{row['id']}\t{row['text']}\n" for row in rows))
    (tmp_path / "f.txt").write_text("".join(f"{row['text']}\r\n" for row in rows))
    table = pa.Table.from_pylist(rows)
    pyarrow.feather.write_feather(table, tmp_path / "g.feather")
    with pa.ipc.new_stream(tmp_path / "h.arrow", table.schema) as stream:
        stream.write_table(table)
    for path in sorted(tmp_path.iterdir()):
        for given in (path, [path]):
            assert la.dedup(given).kept["text"].to_pylist() == KEPT, path
        for given in (path, str(path), [path], [str(path)]):
            assert la.dedup(source=given).kept["text"].to_pylist() == KEPT, path
    pattern = la.dedup(source=str(tmp_path / "[a-c]*"))
    assert la.dedup(tmp_path / "[a-c]*").kept_rows.tolist() == pattern.kept_rows.tolist()
    assert pattern.summary["documents"] == 9 and pattern.kept_rows.tolist() == [0, 1]
    everything = la.dedup(tmp_path)
    assert everything.summary["documents"] == 24 and everything.kept_rows.tolist() == [0, 1]
    assert la.dedup(TEXTS, against=tmp_path / "a.jsonl").kept == []
    for wrong, message in [("nothing.jsonl", "no file"), (tmp_path / "i.doc", "no file"), ("", "no file")]:
        with pytest.raises(la.InputError, match=message):
            la.dedup(source=wrong)
    (tmp_path / "i.doc").write_text("x")
    with pytest.raises(la.InputError, match="extension"):
        la.dedup(tmp_path / "i.doc")
    (tmp_path / "broken.jsonl").write_text('{"text": ')
    with pytest.raises(la.InputError, match="broken.jsonl"):
        la.dedup(tmp_path / "broken.jsonl")


def test_files_are_read_by_url(tmp_path, httpserver_url):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    assert la.dedup(f"{httpserver_url(tmp_path)}/a.jsonl").kept["text"].to_pylist() == KEPT
    assert la.dedup(f"file://{tmp_path}/a.jsonl").kept["text"].to_pylist() == KEPT


@pytest.fixture
def httpserver_url():
    import functools
    import http.server
    import threading

    servers = []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def serve(folder):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_dictionaries_of_columns_and_data_sets_keep_their_kind(tmp_path):
    columns = la.dedup({"text": TEXTS, "n": np.arange(3)}).kept
    assert columns["text"] == KEPT and columns["n"].tolist() == [0, 1]
    with pytest.raises(la.InputError, match="different lengths"):
        la.dedup({"text": TEXTS, "n": [1]})
    with pytest.raises(la.InputError, match="a dictionary"):
        la.dedup({"text": "one text"})
    pa.parquet.write_table(pa.table({"text": TEXTS}), tmp_path / "a.parquet")
    assert la.dedup(pa.dataset.dataset(tmp_path)).kept["text"].to_pylist() == KEPT
    splits = datasets.DatasetDict(
        train=datasets.Dataset.from_dict({"text": TEXTS}), test=datasets.Dataset.from_dict({"text": TEXTS[1:]})
    )
    kept = la.dedup(splits).kept
    assert {name: split["text"][:] for name, split in kept.items()} == {"train": KEPT, "test": []}
    streamed = splits["train"].to_iterable_dataset()
    assert [row["text"] for row in la.dedup(streamed).kept] == KEPT


def test_features_can_come_from_a_function():
    texts = ["b c a", "a b c", "x y z", None]
    result = la.dedup(texts, features=str.split, threshold=0.9)
    assert result.kept_rows.tolist() == [0, 2] and len(result.rejected) == 1
    assert la.pairs(texts, features=str.split, threshold=0.9).pairs.num_rows == 1
    assert la.dedup(texts[1:3], against=texts[:1], features=str.split, threshold=0.9).kept_rows.tolist() == [1]
    with pytest.raises(la.SettingError, match="features"):
        la.dedup(texts, features=3)


def test_recipes_can_be_dictionaries():
    assert la.Recipe({"ngram": 3}) == la.Recipe("default", ngram=3)
    assert la.Recipe({"base": "words-3", "simhash": {"bits": 128}}).bits == 128
    assert la.dedup(TEXTS, recipe={"ngram": 1}).kept == KEPT
    with pytest.raises(RecipeError):
        la.Recipe({"nothing": 3})


def test_frames_have_the_calls_of_the_package():
    import lookalike.pandas
    import lookalike.polars  # noqa: F401

    for frame in (pd.DataFrame({"text": TEXTS}, index=[5, 6, 7]), pl.DataFrame({"text": TEXTS})):
        calls = frame.lookalike
        assert list(calls.is_duplicate()) == [False, False, True]
        assert list(calls.unique()["text"]) == KEPT and type(calls.unique()) is type(frame)
        assert calls.pairs().pairs.num_rows == 1
        assert list(calls.simhash())[0] == list(calls.simhash())[2] and calls.minhash().shape == (3, 128)


def test_transformer_is_one_of_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.utils.estimator_checks import check_estimator

    from lookalike.sklearn import FingerprintTransformer

    check_estimator(FingerprintTransformer())
    check_estimator(FingerprintTransformer(kind="minhash"))
    bits = FingerprintTransformer().fit_transform(TEXTS)
    codes = la.simhash(TEXTS)
    assert [int("".join(map(str, row)), 2) for row in bits.tolist()] == codes.tolist()
    wide = FingerprintTransformer(recipe={"simhash": {"bits": 100}}).fit(TEXTS)
    words = la.simhash(TEXTS, recipe={"simhash": {"bits": 100}}).tolist()
    rows = wide.transform(TEXTS).tolist()
    assert [int("".join(map(str, row)), 2) for row in rows] == [low | high << 64 for low, high in words]
    signatures = make_pipeline(FingerprintTransformer(kind="minhash"), FunctionTransformer()).fit_transform(TEXTS)
    assert np.array_equal(signatures, la.minhash(TEXTS))
    assert len(wide.get_feature_names_out()) == 100
    with pytest.raises(ValueError, match="kind"):
        FingerprintTransformer(kind="x").fit(TEXTS)


def test_names_of_other_packages_say_what_to_call():
    for name in ("HNSW",):
        with pytest.raises(AttributeError, match=f"lookalike has no {name}.*la\\."):
            getattr(la, name)
    assert not hasattr(la, "nothing")
    assert Path(la.__file__).exists()


def test_names_of_other_packages_say_what_to_call_where_they_are_imported():
    with pytest.raises(ImportError, match="^lookalike has no HNSW: use la.HammingIndex or la.Index"):
        from lookalike import HNSW  # noqa: F401


def test_patterns_and_prefixes_of_stores(tmp_path):
    for name, text in {"a/1.jsonl": TEXTS[0], "a/2.jsonl": TEXTS[2], "b/1.jsonl": TEXTS[1], "b/notes.md": "x"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"text": text}) + "\n")
    for pattern, expected in {
        "*/1.jsonl": TEXTS[:2],
        "a/*": TEXTS[:1],
        "**/*.jsonl": [TEXTS[0], TEXTS[1]],
        "**": [TEXTS[0], TEXTS[1]],
        "a/[2-9].jsonl": TEXTS[2:],
        "b": TEXTS[1:2],
        "b/": TEXTS[1:2],
    }.items():
        if pattern == "**":
            (tmp_path / "b/notes.md").unlink()
            (tmp_path / "b/empty.jsonl").write_text('{"text": null}\n')
        assert la.dedup(source=f"file://{tmp_path}/{pattern}").kept["text"].to_pylist() == expected, pattern
    for pattern in ("none/*.jsonl", "*.jsonl"):
        with pytest.raises(la.InputError, match="the store has no object of that name or pattern"):
            la.dedup(source=f"file://{tmp_path}/{pattern}")


def test_streamed_splits_are_read():
    parts = {"train": TEXTS, "test": TEXTS[1:]}
    splits = datasets.IterableDatasetDict(
        {name: datasets.Dataset.from_dict({"text": part}).to_iterable_dataset() for name, part in parts.items()}
    )
    kept = la.dedup(splits).kept
    assert {name: split["text"][:] for name, split in kept.items()} == {"train": KEPT, "test": []}
    assert la.pairs(splits).pairs.num_rows == 3


def test_transformer_counts_missing_texts():
    pytest.importorskip("sklearn")
    from lookalike.sklearn import FingerprintTransformer

    transformer = FingerprintTransformer().fit([TEXTS[0], None, float("nan"), pd.NA])
    assert transformer.n_missing_ == 3
    assert transformer.transform([TEXTS[0], None, pd.NA]).sum(axis=1).tolist()[1:] == [0, 0]


def test_transformer_refuses_tables():
    pytest.importorskip("sklearn")
    import scipy.sparse
    from sklearn.compose import ColumnTransformer

    from lookalike.sklearn import FingerprintTransformer

    frame = pd.DataFrame({"text": TEXTS, "page": [1, 2, 3]})
    for table in (frame, frame[["text"]], pl.DataFrame(frame), pa.table(frame), {"text": TEXTS}):
        for call in (FingerprintTransformer().fit, FingerprintTransformer().fit_transform, FingerprintTransformer().fit(TEXTS).transform):
            with pytest.raises(ValueError, match=r'^X is a \w+: give one column, such as X\["text"\]'):
                call(table)
    for table in (frame.to_numpy(), np.array([TEXTS]).T, scipy.sparse.eye(3)):
        with pytest.raises(ValueError, match=r"of 2 dimensions: give an array of one dimension, such as X\[:, 0\]"):
            FingerprintTransformer().fit(table)
    with pytest.raises(ValueError, match='give "text" and not'):
        ColumnTransformer([("f", FingerprintTransformer(), ["text"])]).fit_transform(frame)
    expected = FingerprintTransformer().fit_transform(TEXTS)
    for column in (frame["text"], frame["text"].to_numpy(), pl.Series(TEXTS), pa.chunked_array([TEXTS]).to_pylist(), tuple(TEXTS)):
        assert np.array_equal(FingerprintTransformer().fit_transform(column), expected)
    columns = ColumnTransformer([("f", FingerprintTransformer(), "text")], sparse_threshold=0)
    assert np.array_equal(columns.fit_transform(frame), expected)


def test_transformer_needs_a_fit_for_each_change_of_its_parameters():
    pytest.importorskip("sklearn")
    from sklearn.exceptions import NotFittedError

    from lookalike.sklearn import FingerprintTransformer

    for kind in ("simhash", "minhash"):
        with pytest.raises(NotFittedError):
            FingerprintTransformer(kind=kind).transform(TEXTS)
    with pytest.raises(NotFittedError):
        FingerprintTransformer().get_feature_names_out()
    transformer = FingerprintTransformer().fit(TEXTS)
    transformer.set_params(kind="minhash")
    assert transformer.transform(TEXTS).shape[1] == transformer.n_features_out_ == 64
    assert len(transformer.get_feature_names_out()) == 64
    assert transformer.fit_transform(TEXTS).shape[1] == transformer.n_features_out_ == 128
    with pytest.raises(ValueError, match="threads is -1"):
        FingerprintTransformer(threads=-1).fit(TEXTS)


@pytest.mark.parametrize("kind, columns", [("simhash", 64), ("minhash", 128)])
def test_transformer_takes_no_text_and_texts_that_are_read_once(kind, columns):
    pytest.importorskip("sklearn")
    from lookalike.sklearn import FingerprintTransformer

    transformer = FingerprintTransformer(kind=kind)
    assert transformer.fit_transform([]).shape == (0, columns)
    once = transformer.fit_transform(text for text in TEXTS)
    assert np.array_equal(once, transformer.transform(text for text in TEXTS)) and len(once) == len(TEXTS)
    tags = transformer.__sklearn_tags__()
    assert tags.requires_fit and tags.input_tags.allow_nan and tags.transformer_tags.preserves_dtype == []


@pytest.mark.parametrize("call", [la.dedup, la.pairs])
def test_refusals_of_columns_name_a_remedy(call):
    for numbers in (pd.DataFrame({"text": [1, 2]}), pl.DataFrame({"text": [1.5, 2.5]}), {"text": [1, 2]}):
        with pytest.raises(la.InputError, match=r"cannot be used as text: convert it to strings, .* `\.astype\(str\)`"):
            call(numbers)
    frame = pd.DataFrame({"text": TEXTS}, index=pd.Index(["a", "b", "c"], name="id"))
    with pytest.raises(la.InputError, match=r"`id` is the index of the frame: use `frame\.reset_index\(\)`"):
        call(frame, id="id")
    with pytest.raises(la.InputError, match="data has no column `url` among `text`$"):
        call(frame, id="url")
