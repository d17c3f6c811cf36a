"""Indexes that are saved: directories that the command and the package share, pickles and copies."""

import copy
import json
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pytest

import lookalike as la
from made import write_jsonl


def test_saved_fingerprints_are_an_index_of_the_command(command, tmp_path):
    codes = np.random.default_rng(1).integers(0, 2**63, 500, dtype=np.uint64)
    index = la.HammingIndex(distance=3)
    index.add(codes, ids=np.arange(1000, 1500))
    index.remove([1003])
    index.save(tmp_path / "lib")
    queries = tmp_path / "queries.tsv"
    queries.write_text("".join(f"{at}\t{int(code) ^ 5:x}\n" for at, code in enumerate(codes[:20])))
    lines = command("search", tmp_path / "lib", queries, "--fingerprints").stdout.splitlines()[1:]
    found = index.search(codes[:20] ^ np.uint64(5))
    expected = list(zip(found.query.tolist(), found.id.tolist(), found.distance.tolist()))
    assert [tuple(map(int, line.split("\t"))) for line in lines] == expected and len(expected) >= 19
    again = la.HammingIndex.open(tmp_path / "lib")
    assert len(again) == 499 and 1003 not in again
    assert again.search(codes[:20] ^ np.uint64(5)).id.tolist() == found.id.tolist()
    index.save(tmp_path / "lib")


@pytest.mark.parametrize("bits", [16, 64, 100, 128])
def test_codes_survive_saving_pickling_and_copying(bits, tmp_path):
    source = np.random.default_rng(bits)
    words = source.integers(0, 2**63, (300, 1 if bits <= 64 else 2), dtype=np.uint64)
    words[:, -1] >>= np.uint64(64 * words.shape[1] - bits)
    index = la.HammingIndex(distance=4, bits=bits)
    index.add(words)
    index.remove(np.arange(0, 300, 7))
    index.save(tmp_path / "lib")
    for other in (
        la.HammingIndex.open(tmp_path / "lib"),
        pickle.loads(pickle.dumps(index)),
        copy.copy(index),
        copy.deepcopy(index),
        index.copy(),
    ):
        assert (other.bits, other.distance, len(other)) == (bits, 4, len(index))
        assert index.search(words).to_arrow() == other.search(words).to_arrow()
    twin = index.copy()
    twin.add(words[:1])
    assert len(twin) == len(index) + 1 and 300 in twin and 300 not in index


def test_signatures_survive_saving_pickling_and_copying(tmp_path, documents):
    signatures = la.minhash([one["text"] for one in documents[:200]])
    index = la.LshIndex(threshold=0.6)
    index.add(signatures)
    index.remove([2, 3])
    index.save(tmp_path / "index.npz")
    for other in (
        la.LshIndex.open(tmp_path / "index.npz"),
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
        index.copy(),
    ):
        assert repr(other) == repr(index)
        assert index.search(signatures).to_arrow() == other.search(signatures).to_arrow()
        other.add(signatures[:1])
        assert len(other) >= len(index)
    (tmp_path / "wrong.npz").write_bytes(b"nothing of this kind")
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    for name in ("wrong.npz", "other.npz"):
        with pytest.raises(la.InputError, match="not an LshIndex"):
            la.LshIndex.open(tmp_path / name)


def test_index_of_documents_is_that_of_the_command(command, documents, tmp_path):
    source = write_jsonl(tmp_path / "docs.jsonl", documents)
    command("index", "build", tmp_path / "theirs", source, "--texts")
    ours = la.Index.build(tmp_path / "ours", documents, store_texts=True)
    theirs = la.Index.open(tmp_path / "theirs")
    queries = documents[:50]
    for options in ({}, {"distance": 1}, {"threshold": 0.5}, {"verify": "levenshtein"}, {"nearest": 1}, {"limit": 2}):
        assert ours.search(queries, **options) == theirs.search(queries, **options)
    table = command("search", tmp_path / "ours", write_jsonl(tmp_path / "q.jsonl", queries), "--threshold", 0.5)
    lines = [tuple(line.split("\t")) for line in table.stdout.splitlines()[1:]]
    found = ours.search(queries, threshold=0.5).to_pylist()
    assert lines == [(row["query"], row["match"], f"{row['similarity']:.4f}") for row in found] or len(lines) == len(found)
    assert json.loads(command("index", "info", tmp_path / "ours", "--json").stdout)["fingerprints"] == len(ours)
    assert ours.recipe == la.Recipe() and ours.verify()["rows"] == ours.info()["fingerprints"]


def test_index_changes_on_disk(tmp_path, documents):
    index = la.Index.build(tmp_path / "lib", documents[:100])
    before = len(index)
    told = index.add(documents[100:150])
    assert told["added"] == len(index) - before
    assert index.remove(["d1", "none"])["removed"] == 1 and index.summary["missing"] == ["none"]
    with pytest.raises(la.SettingError):
        la.Index.build(tmp_path / "lib", documents)
    assert len(la.Index.build(tmp_path / "lib", ["one text of words", None], replace=True)) == 1
    with pytest.raises(la.LookalikeError):
        la.Index(tmp_path / "nothing")


def test_index_without_its_directory_is_still_shown(tmp_path):
    index = la.Index.build(tmp_path / "news.lib", ["a text of some words"])
    shutil.rmtree(tmp_path / "news.lib")
    assert repr(index) == f"<Index {str(tmp_path / 'news.lib')!r}, which cannot be read>"


def test_summary_is_that_of_the_last_call(tmp_path):
    index = la.Index.build(tmp_path / "news.lib", [{"id": "a", "text": "a text of some words"}])
    assert index.add([{"id": "b", "text": "another text of some words"}]) is index.summary
    index.search("a text of some words")
    assert "added" not in index.summary
    # Ids of matches are strings, so that a join with whole numbers needs a cast.
    numbered = la.Index.build(tmp_path / "numbers.lib", [{"id": 7, "text": "a text of some words"}])
    found = numbered.search([{"id": 7, "text": "a text of some words"}], distance=0)
    assert found["query"].to_pylist() == [7] and found["match"].to_pylist() == ["7"]


def test_index_of_fingerprints(tmp_path):
    codes = np.array([1, 2, 2**40], dtype=np.uint64)
    index = la.Index.build(tmp_path / "lib", codes, distance=2)
    assert index.recipe is None
    assert index.search(codes[:1], distance=0).to_pylist() == [{"query": "0", "match": "0", "distance": 0, "query_position": 0}]
    masked = np.ma.MaskedArray(codes, [False, True, False])
    assert index.search(masked, distance=0)["query"].to_pylist() == ["0", "2"]
    wide = la.simhash(["the ferry leaves at seven"], recipe={"simhash": {"bits": 128}})
    both = la.Index.build(tmp_path / "wide", wide)
    assert both.info()["bits"] == 128 and both.search(wide)["distance"].to_pylist() == [0]
    named = la.Index.build(tmp_path / "named", [{"id": "x", "text": "the ferry leaves at seven"}])
    with pytest.raises(la.InputError, match="'x'"):
        la.HammingIndex.open(named.path)


def test_queries_have_their_ids_and_positions(tmp_path):
    index = la.Index.build(tmp_path / "x.lib", [{"id": "a", "text": "the ferry leaves at seven"}])
    texts = ["a bridge", "the ferry leaves at seven", None, "The FERRY leaves at seven!"]
    found = index.search({"id": [7, 8, 9, 8], "text": texts})
    assert found.select(["query", "match", "query_position"]).to_pylist() == [
        {"query": 8, "match": "a", "query_position": 1},
        {"query": 8, "match": "a", "query_position": 3},
    ]
    named = index.search(pa.table({"name": ["p", "q", "r", "s"], "text": texts}), id="name", threshold=0.8)
    assert named["query"].to_pylist() == ["q", "s"] and named["query_position"].to_pylist() == [1, 3]
    missing = index.search({"id": [7, None, 9, 8], "text": texts})
    assert missing["query"].to_pylist() == [None, 8] and missing["query"].type == pa.int64()
    assert index.search(texts)["query"].to_pylist() == ["2", "4"]
    assert index.search({"id": [7], "text": [texts[1]]}, id=False)["query"].to_pylist() == ["1"]
    assert index.search(["nothing like it"])["query_position"].type == pa.int64()
