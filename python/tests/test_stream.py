"""The stream in the process: verdicts of a batch and of the service, the window, and saving."""

import copy
import datetime
import pickle
import threading
import uuid

import pytest

import lookalike as la
from lookalike.results import StreamVerdict
from made import ROOT, read_jsonl


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threshold": 0.5},
        {"method": "simhash", "distance": 6, "verify": "none"},
        {"verify": "levenshtein", "threshold": 0.7},
        {"recipe": {"ngram": 3}},
    ],
)
def test_verdicts_are_those_of_a_batch(documents, options):
    stream = la.Stream(**options)
    answers = [stream.insert(one["text"], one["id"]) for one in documents]
    batch = la.dedup(documents, **options)
    expected = {row["id"]: (row["kept"], row["similarity"]) for row in batch.removed.to_pylist()}
    assert {answer.id: (answer.of, answer.similarity) for answer in answers if not answer.is_kept} == expected
    assert len(stream) == len(batch.kept_rows) and stream.seq == len(documents)
    assert [answer.seq for answer in answers] == list(range(len(documents)))


def test_window_moves_with_the_times_of_documents():
    stream = la.Stream(window="1h")
    text = "The ferry leaves at seven, and nobody misses it."
    assert stream.insert(text, "a", time=0).verdict == "kept"
    assert stream.insert(text, "b", time=3600).of == "a"
    assert stream.insert(text, "c", time=3600.000001).verdict == "kept"
    late = stream.insert(text, "late", time=0)
    assert late.late and late.seq is None and late.verdict == "kept"
    assert stream.insert(text, "d", time=datetime.datetime(1970, 1, 1, 1, 30)).of == "c"
    zone = datetime.timezone(datetime.timedelta(hours=1))
    assert stream.insert(text, "e", time=datetime.datetime(1970, 1, 1, 2, 45, tzinfo=zone)).of == "c"
    refreshed = la.Stream(window=3600, refresh=True)
    for at in range(5):
        assert refreshed.insert(text, at, time=at * 3000).of == (None if at == 0 else 0)


def test_expired_documents_leave_memory():
    stream = la.Stream(window=100)
    for at in range(5000):
        stream.insert(f"document number {at} has words of its own: {at * 7919}", at, time=at)
    assert len(stream) < 120


def test_window_can_count_documents(documents, tmp_path):
    counted, timed = la.Stream(window_documents=50), la.Stream(window=50)
    for at, one in enumerate(documents):
        if at == 300:
            counted.save(tmp_path / "stream")
            counted = la.Stream.open(tmp_path / "stream")
        assert counted.insert(one["text"]).of == timed.insert(one["text"], time=at).of
    assert len(counted) < 60
    with pytest.raises(la.SettingError, match="reaches back by documents"):
        counted.insert("a text", time=1)


def test_query_changes_nothing():
    stream = la.Stream()
    assert stream.query("The ferry leaves at seven.").is_kept
    stream.insert("The ferry leaves at seven.")
    asked = stream.query("the ferry leaves at SEVEN")
    assert (asked.of, asked.similarity, asked.method, asked.seq) == (0, 1.0, "exact", None)
    assert stream.seq == 1 and "duplicate of 0" in repr(asked)


def test_saved_stream_decides_as_the_original_does(documents, tmp_path):
    half = len(documents) // 2
    original = la.Stream(threshold=0.6, window="2d", recipe=la.Recipe("default", ngram=3))
    for one in documents[:half]:
        original.insert(one["text"], one["id"], one["at"])
    path = tmp_path / "stream.arrow"
    original.save(path)
    others = [la.Stream.open(path), pickle.loads(pickle.dumps(original)), copy.deepcopy(original)]
    assert [repr(other) for other in others] == [repr(original)] * 3
    for one in documents[half:]:
        expected = original.insert(one["text"], one["id"], one["at"])
        for other in others:
            answer = other.insert(one["text"], one["id"], one["at"])
            assert (answer.of, answer.similarity, answer.seq) == (expected.of, expected.similarity, expected.seq)
    assert list(tmp_path.iterdir()) == [path]
    empty = la.Stream()
    empty.save(tmp_path / "empty")
    assert la.Stream.open(tmp_path / "empty").insert("a text here").is_kept
    for content in (b"", b"something else"):
        (tmp_path / "wrong").write_bytes(content)
        with pytest.raises(la.InputError, match="not a stream"):
            la.Stream.open(tmp_path / "wrong")


def test_of_equal_documents_of_many_threads_one_is_kept():
    stream = la.Stream()
    texts = [f"the ferry number {number} leaves the island at seven" for number in range(200)]
    answers = []

    def insert():
        answers.extend(stream.insert_many(texts))

    threads = [threading.Thread(target=insert) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sum(answer.is_kept for answer in answers) == len(stream) == len(la.dedup(texts).kept_rows)


def test_wrong_arguments_are_refused():
    for options, message in [
        ({"window": "2 moons"}, "window"),
        ({"threshold": 2}, "threshold"),
        ({"skew": "x"}, "skew"),
        ({"refresh": 1}, "refresh"),
        ({"window": 0}, "window"),
        ({"window_documents": 0}, "window_documents"),
        ({"window": 1, "window_documents": 1}, "leave one of them out"),
    ]:
        with pytest.raises(la.SettingError, match=message):
            la.Stream(**options)
    stream = la.Stream()
    for time in ("noon", float("nan")):
        with pytest.raises(la.SettingError, match="time is"):
            stream.insert("a text", time=time)
    for call in (stream.insert, stream.query):
        for id in (1.5, uuid.UUID(int=7), 2**63, b"a"):
            with pytest.raises(TypeError, match=r"^id is .*: give a string, for example with str\(id\), or a whole number"):
                call("a text", id=id)
        for text in (b"bytes", None):
            with pytest.raises(TypeError, match="^text is .*: give a string$"):
                call(text)
    with pytest.raises(TypeError, match=r"Stream\(\) .*'forms': it learns no forms, and uses those of its recipe"):
        la.Stream(forms="off")


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"id": "r"}, la.InputError, r'documents\[1\] has no "text"'),
        ({"text": "a bridge", "ts": 5}, la.InputError, r"documents\[1\] has the unknown field 'ts': give .* \"time\""),
        ({"text": None}, TypeError, r"documents\[1\]: text is None: give a string"),
        ({"text": "a bridge", "id": 1.5}, TypeError, r"documents\[1\]: id is 1.5: give a string"),
        ({"text": "a bridge", "time": "noon"}, la.SettingError, r"documents\[1\]: time is 'noon'"),
        (7, TypeError, r"documents\[1\]: text is 7: give a string"),
    ],
)
def test_no_document_is_inserted_beside_a_wrong_one(wrong, error, message):
    stream = la.Stream()
    with pytest.raises(error, match=message):
        stream.insert_many(["the ferry leaves at seven", wrong])
    with pytest.raises(error, match=message):
        stream.insert_many(document for document in ({"text": "the ferry leaves at seven"}, wrong))
    assert stream.seq == len(stream) == 0


def test_a_table_of_forms_in_the_recipe_keeps_documents(tmp_path):
    rows = [(row["text"], str(row["id"])) for row in read_jsonl(ROOT / "examples/forms.jsonl")]
    la.learn_forms([text for text, _ in rows], tmp_path / "forms.toml")
    kept = []
    for recipe in ("default", la.Recipe("default", forms=str(tmp_path / "forms.toml"))):
        stream = la.Stream(recipe=recipe)
        kept.append(sum(stream.insert(text, id).is_kept for text, id in rows))
    assert kept == [3, 25]


def test_many_documents_can_be_dictionaries():
    stream = la.Stream(window="1d")
    answers = stream.insert_many(
        [{"text": "the ferry leaves at seven", "id": "a", "time": 5}, "The ferry leaves at seven"]
    )
    assert [answer.verdict for answer in answers] == ["kept", "kept"]
    assert answers[1].id == 1


def test_verdicts_are_values():
    stream = la.Stream(window="1d")
    kept = stream.insert("the ferry leaves at seven", "a", time=9)
    again, late = stream.query("The ferry leaves at seven", "b", time=9), stream.insert("a bridge", 3, time=-(10**6))
    for verdict in (kept, again, late):
        for same in (copy.copy(verdict), copy.deepcopy(verdict), pickle.loads(pickle.dumps(verdict))):
            assert same == verdict and hash(same) == hash(verdict) and repr(same) == repr(verdict)
        assert verdict != verdict.verdict
        with pytest.raises(AttributeError):
            verdict.id = "c"
    assert len({kept, again, late}) == 3 and late.late and late.seq is None
    match again:
        case StreamVerdict(id, "duplicate", of):
            assert (id, of) == ("b", "a")
