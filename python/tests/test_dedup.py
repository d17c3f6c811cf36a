"""Runs over tables: the verdicts of the command on the same rows."""

import datetime
import pickle

import numpy as np
import pyarrow as pa
import pytest

import lookalike as la
from lookalike.errors import RecipeError
from made import ROOT, made_documents, read_jsonl, write_jsonl

SETTINGS = [
    ({}, []),
    ({"threshold": 0.6}, ["--threshold", "0.6"]),
    ({"threshold": 1.0}, ["--threshold", "1"]),
    ({"method": "minhash", "threshold": 0.8}, ["--method", "minhash", "--threshold", "0.8"]),
    ({"method": "simhash", "distance": 8}, ["--method", "simhash", "--distance", "8"]),
    (
        {"method": "simhash", "distance": 3, "verify": "none"},
        ["--method", "simhash", "--distance", "3", "--verify", "none"],
    ),
    ({"method": "exact"}, ["--method", "exact"]),
    ({"method": "join"}, ["--method", "join"]),
    ({"method": "sentences", "sentences": 2}, ["--method", "sentences", "--sentences", "2"]),
    ({"method": "bottomk"}, ["--method", "bottomk"]),
    ({"verify": "containment"}, ["--verify", "containment"]),
    ({"verify": "cosine"}, ["--verify", "cosine"]),
    ({"verify": "levenshtein", "unit": "words"}, ["--verify", "levenshtein", "--unit", "words"]),
    ({"recipe": "characters-3"}, ["--recipe", "characters-3"]),
    ({"recipe": la.Recipe("default", ngram=3)}, ["--set", "ngram=3"]),
    ({"keep": "last"}, ["--keep", "last"]),
    ({"keep": "longest"}, ["--keep", "longest"]),
    ({"keep": "max:score"}, ["--keep", "max:score"]),
    ({"keep": "min:id"}, ["--keep", "min:id"]),
    ({"keep": "longest,max:score,last"}, ["--keep", "longest,max:score,last"]),
    ({"keep_count": 2}, ["--keep-count", "2"]),
    ({"drop_all": True}, ["--drop-all"]),
    ({"drop_all": 3, "keep": "longest"}, ["--drop-all=3", "--keep", "longest"]),
    (
        {"copies": "n", "sources": "source=from", "most_sources": 2, "weight": "w", "weight_by": "sqrt"},
        ["--copies", "n", "--sources", "source=from", "--most-sources", "2", "--weight", "w", "--weight-by", "sqrt"],
    ),
    ({"within": "source"}, ["--within", "source"]),
    ({"window": "1d", "time": "at"}, ["--window", "1d", "--time", "at"]),
    ({"threads": 1}, ["--threads", "1"]),
]


def named(table, names):
    """Rows of a table of the command with the names that the package has for the sources."""
    sources = ("source", "kept_source", "a_source", "b_source")
    names = {str(path): name for path, name in names.items()}
    renamed = [{key: names[value] if key in sources else value for key, value in row.items()} for row in table]
    return [{**row, **positions(row)} for row in renamed]


def positions(row):
    """The positions from 0, which the package has beside the rows from 1."""
    return {f"{key.removesuffix('row')}position": value - 1 for key, value in row.items() if key.endswith("row")}


def test_repeated_ids_are_counted():
    rows = [{"id": id, "text": text} for id, text in [("x", "one two three"), ("y", "four"), ("x", "One two three")]]
    found = la.dedup(rows)
    assert found.summary["repeated_ids"] == 1
    row = found.removed.to_pylist()[0]
    assert (row["id"], row["kept"], row["source"], row["row"], row["kept_row"]) == ("x", "x", "data", 3, 1)
    assert len(la.pairs(rows).pairs) == 1
    assert len(la.pairs(rows, distinct=True).pairs) == 0
    with pytest.raises(la.InputError, match="is in data:1 and data:3, but ids must differ"):
        la.dedup(rows, strict=True)
    with pytest.raises(la.SettingError, match="give only one of them"):
        la.pairs(rows, all=True, distinct=True)


@pytest.mark.parametrize("arguments,options", SETTINGS, ids=[str(one[0]) for one in SETTINGS])
def test_verdicts_equal_the_command(arguments, options, documents, command, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", documents)
    removed, clusters = tmp_path / "removed.jsonl", tmp_path / "clusters.jsonl"
    kept = tmp_path / "kept.jsonl"
    command("dedup", rows, "-o", kept, "--removed", removed, "--clusters", clusters, "-q", *options)
    found = la.dedup(pa.Table.from_pylist(documents), **arguments)
    assert found.kept.to_pylist() == read_jsonl(kept)
    assert found.removed.to_pylist() == named(read_jsonl(removed), {rows: "data"})
    assert found.clusters.to_pylist() == named(read_jsonl(clusters), {rows: "data"})
    assert 0 < found.summary["removed"] == len(found.removed)


def test_pairs_equal_the_command(documents, command, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", documents)
    counts = []
    for arguments, options in [({"distinct": True}, ["--distinct"]), ({}, []), ({"all": True}, ["--all"])]:
        out = tmp_path / "pairs.jsonl"
        command("pairs", rows, "-o", out, "-q", "--threshold", "0.5", *options)
        found = la.pairs(pa.Table.from_pylist(documents), threshold=0.5, **arguments)
        assert found.pairs.to_pylist() == named(read_jsonl(out), {rows: "data"})
        counts.append(len(found.pairs))
    assert 50 < counts[0] < counts[1] < counts[2]


def test_reference_documents_come_first_and_stay(documents, command, tmp_path):
    known, rest = documents[:200], documents[200:]
    paths = write_jsonl(tmp_path / "known.jsonl", known), write_jsonl(tmp_path / "rest.jsonl", rest)
    kept, removed = tmp_path / "kept.jsonl", tmp_path / "removed.jsonl"
    command("dedup", paths[1], "--against", paths[0], "-o", kept, "--removed", removed, "-q")
    found = la.dedup(pa.Table.from_pylist(rest), against=pa.Table.from_pylist(known))
    assert found.kept.to_pylist() == read_jsonl(kept)
    names = {paths[0]: "against", paths[1]: "data"}
    assert found.removed.to_pylist() == named(read_jsonl(removed), names)
    assert found.summary["against"] == 200


def test_chunks_and_threads_change_no_result(documents):
    table = pa.Table.from_pylist(documents)
    whole = la.dedup(table, threads=1)
    cuts = [0, 1, 2, 50, 50, 311, len(documents)]
    chunks = pa.concat_tables([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:])])
    assert chunks["text"].num_chunks >= 5
    for threads in (1, 2, 3):
        found = la.dedup(chunks, threads=threads)
        assert found.removed == whole.removed
        assert (found.kept_rows == whole.kept_rows).all()


def test_components_and_audit(documents):
    found = la.dedup(pa.Table.from_pylist(documents), components=True, audit=100)
    assert "component" in found.clusters.column_names
    assert found.summary["components"] > 0
    assert found.summary["audit"]
    assert la.dedup(documents_texts(documents), audit=False).summary.get("audit") is None


def test_copies_are_fields_of_the_type_of_the_data():
    rows = [
        {"id": "a", "text": "one two three", "site": "x"},
        {"id": "b", "text": "One two three!", "site": "y"},
        {"id": "c", "text": "something else", "site": None},
        {"id": "d", "text": "one, two, three", "site": "y"},
    ]
    expected = [
        {"id": "a", "text": "one two three", "site": "x", "n": 3, "sources": ["y", "x"], "w": 0.5},
        {"id": "c", "text": "something else", "site": None, "n": 1, "sources": [], "w": 1.0},
    ]
    options = {"copies": "n", "sources": "site", "weight": "w", "weight_by": {1: 1, 2: 0.5}}
    table = pa.Table.from_pylist(rows)
    assert la.dedup(rows, **options).kept == expected
    assert la.dedup(table, **options).kept.to_pylist() == expected
    assert la.dedup(table.to_batches()[0], **options).kept.to_pylist() == expected
    columns = la.dedup(table.to_pydict(), **options).kept
    assert columns["n"] == [3, 1] and columns["sources"] == [["y", "x"], []]
    frame = la.dedup(table.to_pandas(), **options).kept
    assert frame["n"].tolist() == [3, 1] and frame["sources"].tolist() == [["y", "x"], []]
    polars = pytest.importorskip("polars")
    assert la.dedup(polars.from_arrow(table), **options).kept.to_dicts() == expected
    assert la.dedup([], copies="n").kept == []


def test_settings_of_copies_are_checked():
    rows = [{"text": "one two three"}, {"text": "one two three"}]
    for options, said in [
        ({"keep_count": 0}, "keep_count is 0"),
        ({"drop_all": 1}, "drop_all is 1"),
        ({"keep_count": 2, "drop_all": True}, "give only one of them"),
        ({"sources": "=x"}, "sources is '=x'"),
        ({"weight": "w", "weight_by": {2: 1.0}}, "begin with 1"),
        ({"weight": "w", "weight_by": None}, "weight_by is None"),
        ({"copies": "n", "weight": "n"}, "two added fields would have the name `n`"),
    ]:
        with pytest.raises(la.SettingError, match=said):
            la.dedup(rows, **options)
    with pytest.raises(la.InputError, match="already has a field `text`"):
        la.dedup(rows, copies="text")
    with pytest.raises(la.InputError, match="give a table, or a list of dictionaries"):
        la.dedup(["one two three"], copies="n")


def documents_texts(documents):
    return [document["text"] for document in documents]


def test_pairs_of_a_result_support_its_verdicts():
    found = la.dedup(["a b c d", "e f g h", "a b c d!"])
    assert found.pairs.to_pylist() == [{"a": "1", "b": "3", "similarity": 1.0}]
    assert found.kept == ["a b c d", "e f g h"]
    assert found.kept_rows.dtype == np.int64
    assert repr(found) == "<Deduplicated 3 documents: 2 kept, 1 removed in 1 cluster>"


def test_windows_are_given_in_three_ways(documents):
    table = pa.Table.from_pylist(documents)
    answers = [
        la.dedup(table, window=window, time="at").kept_rows.tolist()
        for window in ("36h", 36 * 3600, datetime.timedelta(hours=36))
    ]
    assert answers[0] == answers[1] == answers[2]
    timestamps = pa.array([document["at"] for document in documents], pa.timestamp("s"))
    table = table.set_column(table.column_names.index("at"), "at", timestamps)
    assert la.dedup(table, window="36h", time="at").kept_rows.tolist() == answers[0]


def test_thresholds_are_inclusive():
    # Three features of which two are shared: 2/4.
    texts = ["a b c d", "a b c e"]
    at = la.compare(*texts).similarity
    assert at == 0.5
    assert len(la.dedup(texts, threshold=0.5).removed) == 1
    assert len(la.dedup(texts, threshold=0.5 + 1e-9).removed) == 0
    assert len(la.dedup(texts, threshold=0.5 - 1e-9).removed) == 1


@pytest.mark.parametrize(
    "arguments,error,said",
    [
        ({"distance": 3}, la.SettingError, 'distance=3 is for fingerprints: add method="simhash"'),
        ({"threshold": 0}, la.SettingError, "threshold"),
        ({"threshold": 1.5}, la.SettingError, "1.5"),
        ({"method": "magic"}, la.SettingError, "method is 'magic', which is not one of auto, minhash"),
        ({"verify": "magic"}, la.SettingError, "verify is 'magic', which is not one of jaccard"),
        ({"keep": "best"}, la.SettingError, "keep is 'best': give first, last, longest"),
        ({"threads": 0}, la.SettingError, "threads is 0: give a whole number from 1 to 1024"),
        ({"threads": 1025}, la.SettingError, "threads is 1025"),
        ({"window": "2d"}, la.SettingError, "window needs time"),
        ({"window": "2 days", "time": "at"}, la.SettingError, "window is '2 days': give a number with a unit"),
        ({"window": -1, "time": "at"}, la.SettingError, "window is -1"),
        ({"id": True}, la.SettingError, "id is True"),
        ({"recipe": "nothing"}, RecipeError, "nothing"),
        ({"text": "body"}, la.InputError, "data has no column `body` among `id`"),
        ({"within": "nowhere"}, la.InputError, "no column `nowhere`"),
        (
            {"id": "source", "strict": True},
            la.InputError,
            'ids must differ: name another field with id="FIELD", or number the rows with id=False',
        ),
        ({"audit": True, "method": "exact"}, la.SettingError, 'audit is not possible here: with method="exact"'),
        (
            {"audit": True, "method": "simhash", "verify": "none"},
            la.SettingError,
            'audit is not possible here: without verification there is no similarity to compare with: leave verify="none" out',
        ),
        (
            {"audit": 10, "verify": "indel"},
            la.SettingError,
            'audit compares sets of features, and verify="indel" compares texts',
        ),
        ({"audit": 10, "method": "simhash", "verify": "containment"}, la.SettingError, "audit is not possible here"),
        ({"candidates": "blocks"}, la.SettingError, 'candidates is for fingerprints: add method="simhash"'),
        ({"sentences": 3}, la.SettingError, 'sentences=3 is for method="sentences"'),
        ({"unit": "words"}, la.SettingError, 'unit is for verify="levenshtein", indel and lcs'),
        ({"method": "exact", "threshold": 0.9}, la.SettingError, 'threshold has no effect with method="exact"'),
        (
            {"method": "simhash", "verify": "none", "threshold": 0.9},
            la.SettingError,
            'threshold has no effect with method="simhash" verify="none", where only distance decides',
        ),
        ({"time": "at"}, la.SettingError, "time is for window"),
    ],
)
def test_refusals_name_value_and_place(arguments, error, said, documents):
    with pytest.raises(error, match=None) as raised:
        la.dedup(pa.Table.from_pylist(documents), **arguments)
    assert said in str(raised.value)
    assert "--" not in str(raised.value)
    assert isinstance(raised.value, (la.LookalikeError, ValueError))


def test_preset_is_a_recipe_and_a_threshold():
    documents = [document["text"] for document in made_documents(200)]
    with pytest.raises(TypeError):
        la.presets["own"] = la.presets["nemo"]
    with pytest.raises(TypeError):
        la.presets["nemo"].changes["ngram"] = 3
    with pytest.raises(RecipeError, match=r"is the preset nemo: give its recipe, la.presets\['nemo'\].recipe"):
        la.dedup(["a text"], recipe=la.presets["nemo"])
    for preset in la.presets.values():
        assert pickle.loads(pickle.dumps(preset)) == preset
        assert preset.probability(preset.threshold) == pytest.approx(0.5, abs=0.05)
        found = preset.dedup(documents)
        again = la.dedup(documents, recipe=preset.recipe, threshold=preset.threshold, forms="off")
        assert found.kept == again.kept
        assert str(preset).splitlines()[2].startswith("0.30")
    assert la.presets["fineweb"].probability(0.75) == pytest.approx(0.7716, abs=1e-4)


def test_preset_keeps_no_forms_apart():
    """The pipelines of the presets decide by similarity alone."""
    rows = read_jsonl(ROOT / "examples/forms.jsonl")
    assert len(la.presets["text-dedup-core"].dedup(rows).kept) == 3
    assert len(la.presets["text-dedup-core"].dedup(rows, forms="learn").kept) > 20


def test_representation_counts_what_forms_keep_apart():
    rows = read_jsonl(ROOT / "examples/forms.jsonl")
    result = la.dedup(rows)
    assert result.summary["forms"]["kept_apart"] == 22
    assert repr(result) == "<Deduplicated 32 documents: 25 kept, 7 removed in 3 clusters, 22 kept apart by forms>"
    assert repr(la.dedup(rows, forms="off")) == "<Deduplicated 32 documents: 3 kept, 29 removed in 3 clusters>"


@pytest.mark.parametrize(
    "call, options, message",
    [
        (la.dedup, {"treshold": 0.8}, "dedup() got an unexpected keyword argument 'treshold': perhaps threshold is meant"),
        (la.pairs, {"thread": 2}, "pairs() got an unexpected keyword argument 'thread': perhaps threads is meant"),
        (la.dedup, {"num_perm": 256}, "'num_perm': leave it out, because every match is verified on the texts"),
        (la.dedup, {"colour": "red"}, "dedup() got an unexpected keyword argument 'colour'"),
    ],
)
def test_unknown_arguments_name_the_nearest_one(call, options, message):
    with pytest.raises(TypeError) as raised:
        call(["a text"], **options)
    assert message in str(raised.value)
