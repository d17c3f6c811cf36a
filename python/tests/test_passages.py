"""Shared passages: those of two texts, and those of tables as the command finds them."""

import json
import random
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lookalike as la
from made import write_jsonl

SOURCE = "The ferry leaves at seven. Nobody on the island misses it, because the next one leaves at noon."


def made_copies(count, seed=5):
    """Documents that hold passages of earlier ones, with times, in two scripts."""
    source = random.Random(seed)
    words = [a + b for a in ("ka", "lo", "mi", "ren", "sta", "tu") for b in ("ba", "do", "fen", "gri", "l", "m")]
    han = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了"
    documents = []
    for number in range(count):
        if number % 3 == 2:
            text = "".join(source.choice(han) for _ in range(source.randrange(60, 200)))
        else:
            text = " ".join(source.choice(words) for _ in range(source.randrange(40, 200)))
        if number > 5:
            taken = source.choice(documents)["text"]
            start = source.randrange(len(taken) // 2)
            text += "\n" + taken[start : start + source.randrange(40, 400)]
        documents.append({"id": f"d{number}", "text": text, "at": 1_700_000_000 - number, "site": number % 2})
    return documents


SETTINGS = [
    ({}, []),
    ({"min_length": 20}, ["--min-length", "20"]),
    ({"max_documents": 2}, ["--max-documents", "2"]),
    ({"max_documents": "4%"}, ["--max-documents", "4%"]),
    ({"max_documents": "none"}, ["--max-documents", "none"]),
    ({"time": "at"}, ["--time", "at"]),
    ({"time": "at", "window": "10s"}, ["--time", "at", "--window", "10s"]),
    ({"within": "site"}, ["--within", "site"]),
    ({"offsets": "bytes"}, ["--offsets", "bytes"]),
    ({"order": "longest"}, ["--order", "longest"]),
    ({"order": "copied", "threads": 1}, ["--order", "copied", "--threads", "1"]),
    ({"recipe": "characters-3"}, ["--recipe", "characters-3"]),
    ({"reworded": True}, ["--reworded"]),
]


@pytest.mark.parametrize("arguments,options", SETTINGS, ids=[str(one[0]) for one in SETTINGS])
def test_tables_equal_the_command(arguments, options, command, tmp_path):
    documents = made_copies(90)
    rows, out = write_jsonl(tmp_path / "rows.jsonl", documents), tmp_path / "out.parquet"
    command("passages", rows, "-o", out, "-q", *options)
    found = la.passages(pa.Table.from_pylist(documents), **arguments)
    assert found.passages.equals(pq.read_table(out))
    assert found.summary["passages"] == len(found.passages) > 0


def test_reference_documents_are_the_only_sources(command, tmp_path):
    documents = made_copies(60)
    known, rest = documents[:20], documents[20:]
    paths = write_jsonl(tmp_path / "rest.jsonl", rest), write_jsonl(tmp_path / "known.jsonl", known)
    command("passages", paths[0], "--against", paths[1], "-o", tmp_path / "out.parquet", "-q")
    found = la.passages(rest, against=known)
    assert found.passages.equals(pq.read_table(tmp_path / "out.parquet"))
    assert set(found.passages["source"].to_pylist()) <= {document["id"] for document in known}


def test_frames_and_lists_are_accepted():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    documents = made_copies(30)
    expected = la.passages(documents).passages
    columns = {name: [document[name] for document in documents] for name in ("id", "text")}
    for data in (pa.table(columns), pandas.DataFrame(columns), polars.DataFrame(columns)):
        assert la.passages(data).passages.equals(expected)
    numbered = la.passages(columns["text"]).passages
    assert numbered["document"].to_pylist() == [id.replace("d", "") for id in (
        f"d{int(id[1:]) + 1}" for id in expected["document"].to_pylist()
    )]


def test_places_of_two_texts_lead_to_the_passage():
    passage = "清晨六點，老船長已經把纜繩解開了，岸上的人都知道他今天要去東邊的小島"
    copy = "清晨六点老船长已经把缆绳解开了。岸上的人都知道他今天要去东边的小岛"
    a, b = f"序🏝️。\n{passage}。", f"他说：{copy}！"
    found = la.passages(a, b)
    assert len(found) == 1
    (one,) = found
    assert (a[one.a.start : one.a.end], b[one.b.start : one.b.end]) == (passage, copy)
    assert a.encode()[one.a.start_byte : one.a.end_byte].decode() == passage
    assert (one.a.line, one.kind, one.similarity) == (2, "verbatim", 1.0)
    assert 0.9 < found.share_of_a < 1 and 0.9 < found.share_of_b < 1
    none = la.passages("", "船")
    assert (list(none), none.share_of_a, none.share_of_b) == ([], 0.0, 0.0)
    table = la.passages([b], against=[a]).passages.to_pylist()[0]
    assert [table[name] for name in ("start", "end", "source_start", "source_end", "length", "kind")] == [
        one.b.start, one.b.end, one.a.start, one.a.end, one.length, one.kind
    ]


def test_shortest_length_is_inclusive():
    words = [f"w{number}" for number in range(30)]
    a = " ".join(words[:15])
    for length, found in ((11, 0), (12, 1), (13, 1)):
        assert len(la.passages(a, "x " + " ".join(words[:length]) + " y")) == found


@pytest.mark.parametrize(
    "call,said",
    [
        (lambda: la.passages(SOURCE), "b is of the type NoneType: give a string"),
        (lambda: la.passages(SOURCE, b"x"), "b is of the type bytes: give a string"),
        (lambda: la.passages([SOURCE], "x"), "a is of the type list and b is 'x': give two strings"),
        (lambda: la.passages([SOURCE], [SOURCE]), "b is of the type list: give two strings, or a table"),
        (lambda: la.passages("a", "\ud800"), "b is not valid Unicode text"),
        (lambda: la.passages("a", "b", time="at"), "time is for tables, and has no effect on two texts"),
        (lambda: la.passages("a", "b", order="longest"), "order is for tables"),
        (lambda: la.passages("a", "b", strict=True), "strict is for tables"),
        (lambda: la.passages("a", "b", min_length=1), "min_length is 1: give a whole number from 2 to 10000"),
        (lambda: la.passages("a", "b", min_length=10_001), "min_length is 10001"),
        (lambda: la.passages([SOURCE], min_length=None), "min_length is None"),
        (lambda: la.passages([SOURCE], max_documents=0), "max_documents is 0: give a whole number from 1"),
        (lambda: la.passages([SOURCE], max_documents=0.5), "max_documents is 0.5: give a number of documents"),
        (lambda: la.passages([SOURCE], max_documents="half"), "max_documents is 'half': give a number of documents"),
        (lambda: la.passages([SOURCE], window="2d"), "window needs time"),
        (lambda: la.passages([SOURCE], window="2 days", time="at"), "window is '2 days'"),
        (lambda: la.passages([SOURCE], time="at"), "no column `at`"),
        (lambda: la.passages([SOURCE], within=3), "within is 3: give a string"),
        (lambda: la.passages([SOURCE], offsets="words"), "offsets is 'words', which is not one of characters, bytes"),
        (lambda: la.passages([SOURCE], order=None), "order is None: give position, longest or copied"),
        (lambda: la.passages([SOURCE], threads=0), "threads is 0"),
        (lambda: la.passages([{"body": SOURCE}]), "data has no column `text`"),
        (lambda: la.passages([SOURCE], against=[{"body": SOURCE}]), "against has no column `text`"),
        (lambda: la.passages([SOURCE, None], strict=True), "data:2: the field `text` is null"),
    ],
)
def test_refusals_name_value_and_place(call, said):
    with pytest.raises(la.LookalikeError) as raised:
        call()
    assert said in str(raised.value)
    assert "--" not in str(raised.value)


def test_interrupt_ends_a_search():
    script = textwrap.dedent(
        """
        import lookalike as la, os, random, signal, threading, time
        words = [f"w{number}" for number in range(300)]
        texts = [" ".join(random.choices(words, k=2000)) for _ in range(1500)]
        texts = [text + texts[at - 1][:9000] for at, text in enumerate(texts)]
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        begun = time.monotonic()
        try:
            while True:
                la.passages(texts, max_documents="none", threads=2)
        except KeyboardInterrupt:
            print(time.monotonic() - begun)
        assert len(la.passages(texts[:2]).passages) > 0
        """
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 10


QUESTION = "Why does nobody on the island miss the ferry that leaves at seven in the morning, and who waits for it?"
ANSWER = "The mail is on it, the captain waits for no one, and the next one leaves when the school has already begun"


def test_direction_is_told_only_where_it_is_known():
    """Without times or sources, both documents share; with sources, one is searched."""
    essays = [f"{ANSWER}. That is all.", f"I think so: {ANSWER}.", "nothing of it"]
    shared = la.passages(essays)
    assert shared.directed is False
    assert repr(shared) == "<Passages: 1 passage that 2 of 3 documents share>"
    assert "other document" in shared._repr_html_() and ">source<" not in shared._repr_html_()
    against = la.passages(essays[1:], against=essays[:1])
    assert against.directed is True
    assert repr(against) == "<Passages: 1 passage in 1 of 2 documents>"
    assert ">source<" in against._repr_html_()
    timed = [{"text": text, "at": at} for at, text in enumerate(essays)]
    assert la.passages(timed, time="at").directed is True
    assert repr(la.passages(essays[2:])) == "<Passages: 0 passages in 1 document>"
    assert la.passages(essays[0], essays[1]).directed is False


def test_base_texts_are_left_out(command, tmp_path):
    """What all were given is no passage, in tables as in files of the command and in two texts."""
    essays = [{"id": name, "text": f"{QUESTION} {answer}"} for name, answer in [("a", ANSWER), ("b", f"Well: {ANSWER}"), ("c", "no")]]
    rows, base, out = tmp_path / "in.jsonl", tmp_path / "question.txt", tmp_path / "out.parquet"
    rows.write_text("".join(f"{json.dumps(essay)}\n" for essay in essays))
    base.write_text(QUESTION)
    command("passages", rows, "--base", base, "-o", out, "-q")
    left = la.passages(essays, base=QUESTION)
    assert left.passages.equals(pq.read_table(out))
    assert left.passages.select(["document", "source"]).to_pylist() == [{"document": "b", "source": "a"}]
    assert left.summary["base"] == {"texts": 1, "documents": 3, "tokens": 3 * len(QUESTION.split())}
    assert len(la.passages(essays).passages) == 3
    assert la.passages(essays, base=["other", QUESTION]).passages.equals(left.passages)
    a, b = essays[0]["text"], essays[1]["text"]
    shared = la.passages(a, b, base=QUESTION)
    assert [b[found.b.start : found.b.end] for found in shared] == [ANSWER]
    assert list(la.passages(a, QUESTION, base=[QUESTION])) == []


def test_base_texts_are_checked():
    """A base that is no text is refused with its name."""
    for base, expected in [(7, "base is 7: give a text"), (b"x", "base is b'x'"), ({"text": "x"}, "base is"), (["x", 7], "base")]:
        with pytest.raises((la.SettingError, la.InputError), match=expected):
            la.passages([SOURCE, SOURCE], base=base)
