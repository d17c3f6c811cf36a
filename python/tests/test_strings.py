"""A string is one text, or a refusal that names the argument; it is never a list of characters or a path by chance."""

import numpy as np
import pytest

import lookalike as la
from lookalike.service import Collection

TEXT = "the ferry leaves at seven"


@pytest.mark.parametrize("given", [TEXT, "posts.jsonl", ""])
def test_a_string_is_not_data(given, tmp_path, monkeypatch):
    (tmp_path / "posts.jsonl").write_text('{"text": "a"}\n')
    monkeypatch.chdir(tmp_path)
    calls = [
        lambda: la.dedup(given),
        lambda: la.pairs(given),
        lambda: la.decontaminate(given, []),
        lambda: la.segment(given),
        lambda: la.learn_forms(given, tmp_path / "forms.toml"),
        lambda: la.Index.build(tmp_path / "x.lib", given),
        lambda: la.Idf.learn(given),
    ]
    for call in calls:
        with pytest.raises(la.InputError, match=f"^data is the string '{given}': give \\['{given}'\\] for one text, or pathlib"):
            call()
    with pytest.raises(la.InputError, match="^against is the string"):
        la.dedup([TEXT], against=given)
    with pytest.raises(la.InputError, match="^against is the string"):
        la.passages([TEXT], against=given)
    with pytest.raises(la.InputError, match="^labelled is the string"):
        la.evaluate(given)


def test_a_long_string_is_not_repeated():
    with pytest.raises(la.InputError, match=r"^data is a string: give \[text\] for one text"):
        la.dedup("a" * 50)


def test_source_stands_in_place_of_data():
    with pytest.raises(la.SettingError, match="data and source were both given"):
        la.dedup([TEXT], source="posts.jsonl")
    with pytest.raises(la.SettingError, match="source is 3: give a path"):
        la.pairs(source=3)
    with pytest.raises(la.InputError, match="source is 'none.jsonl', and no file has that name"):
        la.pairs(source="none.jsonl")
    with pytest.raises(la.InputError, match="data is None"):
        la.dedup()


def test_a_string_is_one_text_where_texts_are_meant(tmp_path):
    assert la.simhash(TEXT).tolist() == la.simhash([TEXT]).tolist()
    assert la.minhash("http://example.org").shape == (1, 128)
    index = la.Index.build(tmp_path / "x.lib", [{"id": "a", "text": TEXT}])
    assert index.search(TEXT).to_pylist() == [{"query": "1", "match": "a", "distance": 0, "query_position": 0}]


def test_a_string_is_not_several_documents():
    stream = la.Stream()
    with pytest.raises(la.SettingError, match="documents is 'the ferry leaves at seven': give a list of texts"):
        stream.insert_many(TEXT)
    with pytest.raises(la.SettingError, match="documents"):
        stream.insert_many({"text": TEXT})
    assert len(stream) == 0


class RecordingClient:
    """Keeps what a collection would send."""

    def __init__(self):
        self.sent = []

    def call(self, method, path, body=None, repeatable=False):
        self.sent.append(body)
        return {"documents": [], "results": []}

    def _lines(self, method, path, documents, repeatable, is_whole):
        self.sent.append(list(documents))
        return []


def test_a_string_is_one_document_of_a_collection():
    client = RecordingClient()
    news = Collection(client, "news")
    news.query(TEXT)
    news.check_and_insert(TEXT)
    assert client.sent == [{"text": TEXT}, {"text": TEXT}]
    news.passages(TEXT, base="a question")
    assert client.sent[-1] == {"text": TEXT, "base": ["a question"]}
    for call in (news.get_many, news.delete_many):
        with pytest.raises(la.SettingError, match="ids is 'abc': give a list"):
            call("abc")
    with pytest.raises(la.SettingError, match="decisions is 'abc'"):
        news.decide("abc")
    with pytest.raises(la.SettingError, match="documents is 'abc'"):
        news.insert_stream("abc")
    with pytest.raises(la.SettingError, match="remove is 'abc'"):
        la.Client("http://127.0.0.1:1").change_aliases(remove="abc")


def test_texts_of_a_list_are_documents():
    from lookalike._client import _json_lines

    assert list(_json_lines([TEXT, {"id": "a"}])) == [b'{"text": "the ferry leaves at seven"}\n', b'{"id": "a"}\n']


def test_strings_of_numpy_are_texts():
    assert la.dedup(np.array([TEXT, TEXT.upper()])).kept_rows.tolist() == [0]
