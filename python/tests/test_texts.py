"""Comparisons, tokens, recipes, tables of document frequencies, labels."""

import json
import pickle

import pyarrow as pa
import pytest

import lookalike as la
from lookalike.errors import RecipeError
from made import made_documents, write_jsonl


def test_compare_equals_the_command(command):
    a, b = "The ferry leaves at seven, and nobody misses it.", "the FERRY leaves at eight and nobody misses it"
    for arguments, options in [
        ({}, []),
        ({"method": "simhash", "distance": 10}, ["--method", "simhash", "--distance", "10"]),
        ({"verify": "levenshtein", "threshold": 0.9}, ["--verify", "levenshtein", "--threshold", "0.9"]),
    ]:
        told = json.loads(command("compare", "--literal", a, b, "--json", *options, check=False).stdout)
        found = la.compare(a, b, **arguments)
        assert (found.match, found.similarity, found.why) == (told["match"], told["similarity"], told["why"])
        assert found.distance == told["distance"]
        assert sorted(figure.value or 0 for figure in found.figures.values()) == sorted(
            figure["value"] or 0 for figure in told["figures"].values()
        )
        assert found.a.tokens == told["a"]["tokens"]
        assert f"{found.a.fingerprint:016x}" == told["a"]["fingerprint"]
        assert found.b.signature == told["b"]["signature"]


def test_segment_equals_the_command(command, documents, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", documents[:50])
    table = pa.Table.from_pylist(documents[:50])
    for weights, options in ((False, []), (True, ["--weights"])):
        out = tmp_path / "out.jsonl"
        command("segment", rows, "-o", out, "-q", *options)
        told = [json.loads(line) for line in out.read_text().splitlines()]
        assert la.segment(table, weights=weights).to_pylist() == told


def test_recipes(tmp_path):
    base = la.Recipe()
    assert base.name == "default-1" and base == la.Recipe("default-1") and hash(base) == hash(la.Recipe("default"))
    assert la.Recipe("default", ngram=3) == la.Recipe("words-3") != base
    assert pickle.loads(pickle.dumps(base)) == base
    changed = la.Recipe("default", ngram=3, simhash={"bits": 128}, normalize=["nfkc", "fold"], name="mine")
    assert (changed.name, changed.bits, changed.ngram) == ("mine", 128, 3)
    path = tmp_path / "mine.toml"
    path.write_text(changed.toml)
    assert la.Recipe(path) == la.Recipe(changed.toml) == changed
    assert la.Recipe(changed.toml, ngram=2).ngram == 2
    for recipe, changes, said in (
        ("none", {}, "none"),
        ("default", {"ngram": 33}, "default with ngram=33: recipe 'default-1+': ngram is 33, but must be 1 to 32"),
        ("default", {"simhash": {"bit": 3}}, "`simhash.bit`: a recipe has no such field"),
        (tmp_path / "no.toml", {}, "cannot read the recipe"),
        ("ngram = \n", {}, "the recipe: "),
    ):
        with pytest.raises(RecipeError) as raised:
            la.Recipe(recipe, **changes)
        assert said in str(raised.value)
    assert set(la.Recipe.built_in) >= {"default-1", "words-3", "datasketch-legacy"}


def test_idf_equals_the_command(command, documents, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", documents)
    command("idf", rows, "-o", tmp_path / "command.tsv", "-q")
    table = la.Idf.learn(pa.Table.from_pylist(documents))
    table.save(tmp_path / "python.tsv")
    assert (tmp_path / "python.tsv").read_bytes() == (tmp_path / "command.tsv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["command.tsv", "python.tsv", "rows.jsonl"]
    halves = [la.Idf.learn(pa.Table.from_pylist(half)) for half in (documents[:300], documents[300:])]
    merged = halves[0].merge(halves[1])
    assert (merged.documents, merged.terms, merged._content) == (table.documents, table.terms, table._content)
    loaded = la.Idf.load(tmp_path / "command.tsv")
    assert (loaded.documents, loaded.terms) == (table.documents, table.terms)
    pruned = table.prune(min_documents=3)
    assert pruned.terms == la.Idf.learn(pa.Table.from_pylist(documents), min_documents=3).terms < table.terms
    assert table.prune(top=7).terms == 7
    weighted = la.Recipe("jieba", simhash={"weights": "tfidf", "table": tmp_path / "python.tsv"})
    assert la.simhash(["the ferry leaves at seven"], recipe=weighted).shape == (1,)
    with pytest.raises(la.LookalikeError):
        la.Idf.load(tmp_path / "rows.jsonl")


def labelled_pairs():
    documents = [one["text"] for one in made_documents(160, seed=9) if len(one["text"]) > 20]
    pairs = []
    for number, text in enumerate(documents[:60]):
        pairs.append({"a": text, "b": text + " one more", "label": 1})
        pairs.append({"a": text, "b": documents[-1 - number], "label": 0})
    seen, distinct = set(), []
    for pair in pairs:
        key = frozenset((pair["a"], pair["b"]))
        if len(key) == 2 and key not in seen:
            seen.add(key)
            distinct.append(pair)
    return distinct


def without_seconds(told):
    if isinstance(told, dict):
        return {key: without_seconds(value) for key, value in told.items() if "second" not in key}
    return [without_seconds(one) for one in told] if isinstance(told, list) else told


def test_evaluate_equals_the_command(command, tmp_path):
    pairs = labelled_pairs()
    rows = write_jsonl(tmp_path / "pairs.jsonl", pairs)
    told = json.loads(
        command("eval", rows, "--json", "--method", "auto", "--method", "simhash", "--recipe", "default", "--recipe", "words-3").stdout
    )
    found = la.evaluate(pairs, method=["auto", "simhash"], recipe=["default", "words-3"])
    assert without_seconds(found) == without_seconds(told)
    assert len(found["settings"]) == 4


def test_tune_accepts_recipes_with_files(tmp_path):
    (tmp_path / "stop.txt").write_text("的\n", encoding="utf-8")
    base = la.Recipe("words-1", filter={"stopwords": [str(tmp_path / "stop.txt")]})
    beside = base.toml.replace(str(tmp_path / "stop.txt"), "stop.txt")
    (tmp_path / "mine.toml").write_text(beside, encoding="utf-8")
    found = la.tune(labelled_pairs(), recipe=tmp_path / "mine.toml")
    assert str(tmp_path / "stop.txt") in found.recipe.toml
    assert la.Recipe(found.recipe.toml) == found.recipe


def test_tune_equals_the_command(command, tmp_path):
    pairs = labelled_pairs()
    rows = write_jsonl(tmp_path / "pairs.jsonl", pairs)
    told = json.loads(command("tune", rows, "--json").stdout)
    found = la.tune(pa.Table.from_pylist(pairs))
    assert found.summary["settings"] == told["settings"]
    assert found.recipe == la.Recipe(told["recipe"])
    assert found.method == told["settings"][told["chosen"]]["method"]
    with pytest.raises(la.SettingError, match="goal is 'best': give f1"):
        la.tune(pairs, goal="best")
    with pytest.raises(la.InputError, match="labelled"):
        la.evaluate([{"a": "x", "b": "y"}])
    with pytest.raises(la.LookalikeError, match="or grades with positive and negative"):
        la.evaluate([{"a": "x", "b": "y", "label": "maybe"}])
