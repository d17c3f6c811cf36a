"""Operators of Data-Juicer over Chinese samples, by themselves and in a run of its command."""

import doctest
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import lookalike as la
import pytest
from made import ROOT, blocks_of, read_jsonl, write_jsonl

pytest.importorskip("data_juicer.ops", reason="py-data-juicer is not installed: integrations/test-data-juicer runs this")

import datasets  # noqa: E402
import lookalike.data_juicer  # noqa: E402
from data_juicer.core.data import NestedDataset  # noqa: E402
from data_juicer.core.tracer import Tracer  # noqa: E402
from data_juicer.ops import load_ops  # noqa: E402
from lookalike.data_juicer import LookalikeDeduplicator, LookalikePassagesDeduplicator  # noqa: E402

HAN = "渡船七点离开岛上没有人会错过它清晨老长已经把缆绳解了北方海面风浪很大灯塔照亮港口"
NOTICE = "【本站声明】转载须注明出处，渡船时刻以港务处当日公告为准，遇大风停航恕不另行通知。"


@pytest.fixture(scope="module")
def rows():
    """Chinese samples. Every fourth one repeats the one before it, and every tenth one has the same notice."""
    source = random.Random(1)
    rows = []
    for number in range(240):
        text = "".join(source.choice(HAN) for _ in range(120))
        if number % 4 == 1:
            text = rows[-1]["text"] + "！"
        if number % 10 == 2:
            text = f"{text[:60]}。{NOTICE}{text[60:]}"
        rows.append({"id": f"样本{number}", "text": text, "meta": {"source": "甲乙"[number % 2]}, "score": number % 7})
    return rows


def test_kept_samples_are_those_of_the_library(rows):
    expected = la.dedup(rows, threshold=0.8)
    kept = LookalikeDeduplicator(threshold=0.8).run(datasets.Dataset.from_list(rows))
    assert isinstance(kept, NestedDataset)
    assert kept.to_list() == expected.kept and len(kept) == 180


def test_traditional_characters_and_width_do_not_count():
    texts = ["清晨六點，老船長已經把纜繩解開了。", "渡船七点离开岛上。", "清晨六点,老船长已经把缆绳解开了!"]
    kept = LookalikeDeduplicator(keep="last").run(datasets.Dataset.from_dict({"text": texts}))
    assert kept["text"][:] == texts[1:]


@pytest.mark.parametrize("settings", [{"keep": "max:score"}, {"within": "meta.source"}, {"keep": "longest", "forms": "off"}])
def test_settings_are_those_of_the_library(rows, settings):
    kept = LookalikeDeduplicator(**settings).run(datasets.Dataset.from_list(rows))
    assert kept.to_list() == la.dedup(rows, **settings).kept


def test_another_field_has_the_text(rows):
    renamed = datasets.Dataset.from_list(rows).rename_column("text", "content")
    assert len(LookalikeDeduplicator(text_key="content").run(renamed)) == 180


def test_process_is_what_other_deduplicators_have(rows):
    """The interface of Data-Juicer's own operators: a hash of each sample, then samples and pairs."""
    operator = LookalikeDeduplicator()
    hashed = NestedDataset(datasets.Dataset.from_list(rows)).map(operator.compute_hash)
    kept, pairs = operator.process(hashed, show_num=5)
    assert len(kept) == 180 and len(pairs) == 5
    for number, (first, second) in pairs.items():
        assert second["text"] == rows[number]["text"] == first["text"] + "！"
    assert operator.process(hashed.select([0]))[1] == {}
    assert len(operator.run(hashed, reduce=False)) == 240


def test_the_tracer_gets_pairs(rows, tmp_path):
    tracer = Tracer(str(tmp_path), ["lookalike_deduplicator"], show_num=3)
    LookalikeDeduplicator().run(datasets.Dataset.from_list(rows), tracer=tracer)
    traced = read_jsonl(tmp_path / "trace/duplicate-lookalike_deduplicator.jsonl")
    assert len(traced) == 3 and all(row["dup2"]["text"] == row["dup1"]["text"] + "！" for row in traced)


def test_samples_without_a_text_pass():
    data = datasets.Dataset.from_dict({"text": ["渡船七点离开岛上。", None, "渡船七点离开岛上！"]})
    assert LookalikeDeduplicator().run(data)["text"][:] == ["渡船七点离开岛上。", None]


def test_passages_are_marked_with_their_places(rows):
    operator = LookalikePassagesDeduplicator(min_length=15, max_documents="none", id_key="id")
    marked = operator.run(datasets.Dataset.from_list(rows))
    assert marked.remove_columns("passages").to_list() == rows
    expected = la.passages(rows, min_length=15, max_documents="none").passages.to_pylist()
    found = [{"document": row["id"], **passage} for row in marked.to_list() for passage in row["passages"]]
    assert found == expected and len(found) > 60
    texts = {row["id"]: row["text"] for row in rows}
    passage = next(passage for passage in found if passage["document"] == "样本12")
    assert texts["样本12"][passage["start"] : passage["end"]] in NOTICE
    by_place = LookalikePassagesDeduplicator(min_length=15, max_documents="none").run(datasets.Dataset.from_list(rows)).to_list()
    assert {passage["source"] for row in by_place[12:13] for passage in row["passages"]} == {2}


def test_passages_are_removed_but_for_the_first(rows):
    features = datasets.Dataset.from_list(rows).features
    operator = LookalikePassagesDeduplicator(min_length=15, action="remove", max_documents="none")
    cut = operator.run(datasets.Dataset.from_list(rows))
    assert isinstance(cut, NestedDataset) and cut.features == features and len(cut) == len(rows)
    texts = cut["text"][:]
    assert sum("转载须注明出处" in text for text in texts) == 1 and NOTICE in texts[2]
    assert texts[0] == rows[0]["text"] and len(texts[1]) < 3
    assert cut.remove_columns("text").to_list() == datasets.Dataset.from_list(rows).remove_columns("text").to_list()


def test_operators_are_made_by_name_and_settings_are_checked():
    process = [{"lookalike_deduplicator": {"threshold": 0.9}}, {"lookalike_passages_deduplicator": {"min_length": 20}}]
    assert [type(operator) for operator in load_ops(process)] == [LookalikeDeduplicator, LookalikePassagesDeduplicator]
    with pytest.raises(la.SettingError, match="action is 'cut': give 'mark' or 'remove'"):
        LookalikePassagesDeduplicator(action="cut")
    with pytest.raises(la.SettingError, match="the threshold 2"):
        LookalikeDeduplicator(threshold=2).run(datasets.Dataset.from_dict({"text": ["一"]}))


def test_command_of_data_juicer_runs_both(rows, tmp_path):
    """As the page shows it: a file of one line registers the operators."""
    write_jsonl(tmp_path / "samples.jsonl", rows)
    (tmp_path / "operators.py").write_text("import lookalike.data_juicer\n")
    [recipe] = blocks_of("docs/python/integrations.md", "yaml")
    (tmp_path / "recipe.yaml").write_text(recipe)
    program = Path(sys.executable).parent / "dj-process"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run([program, "--config", "recipe.yaml"], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    written = read_jsonl(tmp_path / "out/samples.jsonl")
    assert [row["id"] for row in written] == [row["id"] for row in la.dedup(rows, threshold=0.8).kept]
    assert sum("转载须注明出处" in json.dumps(row, ensure_ascii=False) for row in written) == 1


def test_examples_of_the_docstrings():
    result = doctest.testmod(lookalike.data_juicer)
    assert result.attempted > 8 and not result.failed
