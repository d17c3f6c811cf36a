"""Arguments with a few values: type checkers know them, they are those of the engine, and messages speak Python."""

import inspect
import re
import subprocess
import sys
from typing import get_args

import pytest
from made import ROOT

import lookalike as la
from lookalike import _choices, _options
from lookalike._messages import python_words
from lookalike.results import Deduplicated

TEXTS = ["the ferry leaves at seven", "The ferry leaves at seven!"]


@pytest.mark.parametrize(
    "kind, call",
    [
        ("Method", lambda name: la.dedup(TEXTS, method=name)),
        ("Measure", lambda name: la.dedup(TEXTS, verify=name)),
        ("Candidates", lambda name: la.dedup(TEXTS, candidates=name)),
        ("Unit", lambda name: la.dedup(TEXTS, unit=name)),
        ("Offsets", lambda name: la.passages(TEXTS, offsets=name)),
        ("PassageOrder", lambda name: la.passages(TEXTS, order=name)),
        ("Cut", lambda name: la.decontaminate(TEXTS, [{"question": "who?"}], cut=name)),
    ],
)
def test_choices_are_those_of_the_engine(kind, call):
    with pytest.raises(la.SettingError) as raised:
        call("foo")
    known = re.search(r"is 'foo', which is not one of (.*)", str(raised.value))
    assert known and known[1].split(", ") == list(get_args(getattr(_choices, kind)))


@pytest.mark.parametrize("call", [la.dedup, la.pairs, la.passages, la.decontaminate, la.simhash, la.minhash])
def test_docstrings_list_arguments_results_and_errors(call):
    text = inspect.getdoc(call)
    titles = re.findall(r"^(\w+)\n-{4,}$", text, re.MULTILINE)
    assert titles == ["Parameters", "Returns", "Raises"]
    listed = text.split("Parameters\n----------\n")[1].split("\nReturns\n")[0]
    entries = re.findall(r"^[a-z][\w, ]*?(?= : |$)", listed, re.MULTILINE)
    names = [name for entry in entries for name in entry.split(", ")]
    known = list(inspect.signature(call).parameters)
    assert len(names) == len(set(names)) and set(names) <= set(known)
    # The others of `pairs` are those of `dedup`.
    assert call is la.pairs or set(names) == set(known)


def test_the_reference_shows_arguments_as_a_list():
    page = (ROOT / "docs" / "python" / "reference.md").read_text(encoding="utf-8")
    assert "- `threshold` (float, default 0.75): Smallest similarity that matches (≥)." in page
    assert "Literal['removed', 'clusters', 'pairs']" in page
    assert "ForwardRef" not in page and "9223372036854775807" not in page and "----" not in page


WRONG = """
import pathlib; import lookalike as la; from lookalike._accessor import RowsAccessor
la.dedup(["a"], method="fast")
la.pairs(["a"], verify="dice")
la.compare("a", "b", unit="lines")
la.passages(["a"], order="shortest")
la.decontaminate(["a"], "x", cut="word")
la.dedup(["a"], id=True)
la.dedup(["a"]).to_pandas("kept")
la.evaluate([], method=["auto", "fast"])
la.dedup(["a"], method="join", verify="cosine", id=False).to_polars("clusters")
la.dedup()
la.dedup("a text")
la.pairs(42)
la.presets["fineweb"].dedup(["a"], treshold=1)
la.dedup(["a"], progress=lambda done: None)
la.pairs(["a"], keep="first")
words: str = la.dedup(["a"]).kept[0]
number: int = la.dedup(["a"]).kept[0]
lengths: list[int] = la.dedup(iter([{"text": "a"}])).kept
la.dedup(source="docs/*.jsonl", progress=lambda stage, done, total: None)
la.pairs({"text": ["a"]}, threshold=0.8)
la.dedup(pathlib.Path("docs.jsonl"))
RowsAccessor(["a"]).unique(treshold=1)
RowsAccessor(["a"]).unique(threshold=1)
la.Stream().insert("a", time="yesterday")
"""

#: Keyword arguments as a type, with the call that has them and those that are not for data in memory.
OPTIONS = [
    (_options.DedupOptions, la.dedup),
    (_options.PairsOptions, la.pairs),
    (_options.SketchOptions, la.simhash),
    (_options.SketchOptions, la.minhash),
]


@pytest.mark.parametrize("options, call", OPTIONS, ids=lambda value: value.__name__)
def test_options_are_those_of_the_call(options, call):
    listed = inspect.signature(call, eval_str=False).parameters.values()
    own = {one.name: one.annotation for one in listed if one.kind == one.KEYWORD_ONLY and one.name != "source"}
    assert {name: getattr(kind, "__forward_arg__", kind) for name, kind in options.__annotations__.items()} == own


def test_type_checkers_know_the_choices(tmp_path):
    pytest.importorskip("mypy")
    code = tmp_path / "calls.py"
    code.write_text(WRONG)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--config-file", ROOT / "pyproject.toml", code],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
        env={"MYPYPATH": str(ROOT / "python"), "PATH": ""},
    )
    lines = sorted({int(line) for line in re.findall(r"calls\.py:(\d+): error", checked.stdout)})
    assert lines == [3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 19, 20, 24, 26], checked.stdout + checked.stderr


def test_messages_of_indexes_speak_python(tmp_path):
    index = la.Index.build(tmp_path / "x.lib", TEXTS)
    calls = {
        "add to it with `Index.add`, or replace it with replace=True": lambda: la.Index.build(tmp_path / "x.lib", TEXTS),
        "build it with store_texts=True, or leave verify and threshold out": lambda: index.search(
            TEXTS, verify="levenshtein", threshold=0.5
        ),
        "or build an index with distance=9": lambda: index.search(TEXTS, distance=9),
    }
    for advice, call in calls.items():
        with pytest.raises(la.SettingError) as raised:
            call()
        assert advice in str(raised.value) and "--" not in str(raised.value)


@pytest.mark.parametrize(
    "told, reworded",
    [
        ("give more --memory", "give more memory"),
        ("name the field with --id, or build the index with --id-row", "name the field with id, or build the index with id=False"),
        ("or build the program with `--features object-store`", "or use a wheel of a release"),
        ("a text -- with dashes", "a text -- with dashes"),
        ("give --index-memory 64", "give index_memory=64"),
    ],
)
def test_options_become_arguments(told, reworded):
    assert python_words(told) == reworded


def test_results_keep_their_class():
    assert isinstance(la.dedup(TEXTS, method="join"), Deduplicated)
