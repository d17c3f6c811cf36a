"""Blocks in pipelines of datatrove, beside the command over the same files."""

import gzip
import json
import os
import subprocess
import sys

import lookalike as la
from lookalike.errors import OutputError
import pyarrow as pa
import pytest
from made import ROOT, blocks_of, made_documents, read_jsonl, write_jsonl

pytest.importorskip("datatrove.pipeline", reason="datatrove is not installed: python/requirements-test.txt names it")

from datatrove.data import Document  # noqa: E402
from datatrove.executor import LocalPipelineExecutor  # noqa: E402
from datatrove.pipeline.readers import JsonlReader  # noqa: E402
from datatrove.pipeline.writers.jsonl import JsonlWriter  # noqa: E402
from lookalike.datatrove import (  # noqa: E402
    LookalikeDedup,
    LookalikeDedupFilter,
    LookalikeDedupTexts,
    LookalikeDedupVerdicts,
)

TASKS = 4


def run_command(*arguments):
    subprocess.run([sys.executable, "-m", "lookalike", *map(str, arguments)], check=True, capture_output=True)


def run_pipeline(pipeline, logs, tasks=1):
    LocalPipelineExecutor(pipeline, tasks=tasks, workers=min(tasks, 2), logging_dir=str(logs)).run()


@pytest.fixture
def corpus(tmp_path):
    """A folder of seven files, so that the order of tasks is not that of files. Readers leave out empty texts."""
    folder = tmp_path / "in"
    folder.mkdir()
    documents = [row for row in made_documents(700) if row["text"]]
    for number in range(7):
        write_jsonl(folder / f"{number}.jsonl", documents[number * 90 : (number + 1) * 90])
    return folder


def reader(folder):
    return JsonlReader(str(folder), compression=None)


def writer(folder):
    return JsonlWriter(str(folder), compression=None)


def rows_of(folder):
    """The written rows, with their metadata beside id and text as in the input."""
    rows = [row for path in sorted(folder.glob("*.jsonl")) for row in read_jsonl(path)]
    return [{"id": row["id"], "text": row["text"], **row["metadata"]} for row in rows]


def expected_rows(corpus, output, *options):
    run_command("dedup", *sorted(corpus.glob("*.jsonl")), "-o", output, *options)
    return read_jsonl(output)


def without_path(rows):
    return [{name: value for name, value in row.items() if name != "file_path"} for row in rows]


def run_stages(corpus, work, logs, output, fields=(), exclusion_writer=None, **settings):
    run_pipeline([reader(corpus), LookalikeDedupTexts(work, fields)], logs / "1", TASKS)
    run_pipeline([LookalikeDedupVerdicts(work, **settings)], logs / "2")
    run_pipeline(
        [reader(corpus), LookalikeDedupFilter(work, exclusion_writer=exclusion_writer), writer(output)], logs / "3", TASKS
    )


def test_one_task_keeps_what_the_command_keeps(corpus, tmp_path):
    run_pipeline([reader(corpus), LookalikeDedup(), writer(tmp_path / "out")], tmp_path / "logs")
    expected = expected_rows(corpus, tmp_path / "expected.jsonl")
    assert 200 < len(expected) < 600
    assert without_path(rows_of(tmp_path / "out")) == expected


def test_several_tasks_keep_what_the_command_keeps(corpus, tmp_path):
    run_stages(corpus, tmp_path / "work", tmp_path / "logs", tmp_path / "out")
    written = rows_of(tmp_path / "out")
    written.sort(key=lambda row: row["file_path"])
    assert without_path(written) == expected_rows(corpus, tmp_path / "expected.jsonl")
    removed = pa.ipc.open_file(tmp_path / "work/removed.arrow").read_all()
    assert removed.num_rows == 630 - len(written)
    assert not (tmp_path / "work/run").exists()


@pytest.mark.parametrize("settings", [{"keep": "max:score", "within": "source"}, {"threshold": 0.5, "keep": "last"}])
def test_settings_are_those_of_the_command(corpus, tmp_path, settings):
    options = [f"--{name}={value}" for name, value in settings.items()]
    expected = expected_rows(corpus, tmp_path / "expected.jsonl", *options)
    run_pipeline([reader(corpus), LookalikeDedup(**settings), writer(tmp_path / "one")], tmp_path / "logs")
    run_stages(
        corpus, tmp_path / "work", tmp_path / "logs", tmp_path / "several", ["score", "source"], memory="1G", threads=1, **settings
    )
    assert without_path(rows_of(tmp_path / "one")) == expected
    several = {row["id"] for row in rows_of(tmp_path / "several")}
    assert several == {row["id"] for row in expected}


def test_removed_documents_go_to_their_writer(corpus, tmp_path):
    block = LookalikeDedup(exclusion_writer=writer(tmp_path / "removed"))
    run_pipeline([reader(corpus), block, writer(tmp_path / "out")], tmp_path / "logs")
    run_stages(
        corpus, tmp_path / "work", tmp_path / "logs", tmp_path / "several", exclusion_writer=writer(tmp_path / "also removed")
    )
    kept = {row["id"] for row in rows_of(tmp_path / "out")}
    told = {row["id"]: (row["duplicate_of"], row["similarity"]) for row in rows_of(tmp_path / "removed")}
    assert len(told) == 630 - len(kept) and not kept & told.keys()
    assert all(of in kept and 0.75 <= similarity <= 1 for of, similarity in told.values())
    also = {row["id"]: (row["duplicate_of"], row["similarity"]) for row in rows_of(tmp_path / "also removed")}
    assert also == told
    assert not any("duplicate_of" in row for row in rows_of(tmp_path / "out"))


def test_documents_that_cannot_be_compared_pass(tmp_path):
    rows = [("a", "Ferry times", "2026-01-01"), ("b", "Ferry times", None), ("c", "Ferry times!", "2026-01-02")]
    made = [Document(text, id=id, metadata={"time": time}) for id, text, time in rows]
    settings = {"window": "9d", "time": "time"}
    assert [document.id for document in LookalikeDedup(**settings).run(made)] == ["a", "b"]
    work = tmp_path / "work"
    LookalikeDedupTexts(work, ["time"]).run(made)
    LookalikeDedupVerdicts(work, **settings).run()
    assert [document.id for document in LookalikeDedupFilter(work).run(made)] == ["a", "b"]


def test_a_run_that_was_killed_goes_on(tmp_path, monkeypatch):
    """Its directory is left, and the next run takes it."""
    work = tmp_path / "work"
    made = [Document("Ferry times", id="a"), Document("ferry times!", id="b")]
    LookalikeDedupTexts(work).run(made)
    text_file = work / "texts/00000/00000.arrow"
    run_command("dedup", text_file, "--work", work / "run", "--removed", work / "removed.arrow", "--threshold=0.8")
    assert (work / "run").exists()
    with monkeypatch.context() as patched:
        patched.setattr("lookalike.datatrove._COMMAND", "import os; os.kill(os.getpid(), 9)")
        with pytest.raises(OutputError, match="ended by the signal 9: run this stage again"):
            LookalikeDedupVerdicts(work, threshold=0.8).run()
    LookalikeDedupVerdicts(work, threshold=0.8).run()
    assert [document.id for document in LookalikeDedupFilter(work).run(made)] == ["a"]
    run_command("dedup", text_file, "--work", work / "run", "--removed", work / "removed.arrow", "--threshold=0.8")
    with pytest.raises(la.SettingError, match="begun with the threshold 0.8, and now the threshold is 0.6; delete the directory"):
        LookalikeDedupVerdicts(work, threshold=0.6).run()


def test_ids_may_repeat_and_be_numbers(tmp_path):
    made = [Document(text, id=7) for text in ("Ferry times", "Bridge tolls", "ferry times!", "A map of the island")]
    assert [document.text for document in LookalikeDedup().run(made)] == ["Ferry times", "Bridge tolls", "A map of the island"]
    LookalikeDedupTexts(tmp_path).run(made)
    LookalikeDedupVerdicts(tmp_path).run()
    kept = [document.text for document in LookalikeDedupFilter(tmp_path).run(made)]
    assert kept == ["Ferry times", "Bridge tolls", "A map of the island"]


def test_what_does_not_fit_together_is_refused(tmp_path):
    made = [Document("Ferry times", id="a"), Document("ferry times!", id="b")]
    with pytest.raises(la.SettingError, match="this pipeline has 4: set tasks=1, or use LookalikeDedupTexts"):
        next(LookalikeDedup().run(made, 0, 4))
    with pytest.raises(la.SettingError, match="the threshold 2 is not above 0"):
        LookalikeDedup(threshold=2)
    with pytest.raises(la.SettingError, match="s3://bucket/work: give a directory"):
        LookalikeDedupTexts("s3://bucket/work")
    with pytest.raises(la.InputError, match="the texts of no task"):
        LookalikeDedupVerdicts(tmp_path).run()
    with pytest.raises(la.InputError, match="run LookalikeDedupVerdicts before"):
        next(LookalikeDedupFilter(tmp_path).run(made))
    LookalikeDedupTexts(tmp_path).run(made, 0, 2)
    with pytest.raises(la.InputError, match="1 of 2 tasks, and not of task 1"):
        LookalikeDedupVerdicts(tmp_path).run()
    LookalikeDedupTexts(tmp_path).run([], 1, 2)
    with pytest.raises(la.SettingError, match="in one task, and this pipeline has 2"):
        LookalikeDedupVerdicts(tmp_path).run(None, 0, 2)
    with pytest.raises(la.SettingError, match="ended with 2: .*threshold"):
        LookalikeDedupVerdicts(tmp_path, threshold=2).run()
    LookalikeDedupVerdicts(tmp_path).run()
    assert [document.id for document in LookalikeDedupFilter(tmp_path).run(made, 0, 2)] == ["a"]
    assert not list(LookalikeDedupFilter(tmp_path).run([], 1, 2))
    with pytest.raises(la.InputError, match="verdicts of 2 tasks, and this pipeline has 3: set tasks=2"):
        next(LookalikeDedupFilter(tmp_path).run(made, 0, 3))
    with pytest.raises(la.InputError, match="document 2 of this task is x and was b"):
        list(LookalikeDedupFilter(tmp_path).run([made[0], Document("A bridge", id="x")], 0, 2))
    with pytest.raises(la.InputError, match="this task has 1 documents and had 2"):
        list(LookalikeDedupFilter(tmp_path).run(made[:1], 0, 2))
    LookalikeDedupTexts(tmp_path).run(made, 0, 1)
    with pytest.raises(la.InputError, match="pipelines with 1 and with 2 tasks"):
        LookalikeDedupVerdicts(tmp_path).run()
    (tmp_path / "texts/00000.json").write_text("{")
    with pytest.raises(la.InputError, match="00000.json is damaged"):
        LookalikeDedupVerdicts(tmp_path).run()


def test_values_of_several_types_and_other_texts_are_refused():
    broken = [Document("Ferry times", id="a"), Document("Ferry \ud800 times", id="b")]
    with pytest.raises(la.InputError, match="the text of the document b is not valid Unicode"):
        list(LookalikeDedup().run(broken))
    made = [Document("Ferry times", id="a", metadata={"score": 1}), Document("A map", id="b", metadata={"score": "x"})]
    with pytest.raises(la.InputError, match="`score` of the metadata has values of several types"):
        list(LookalikeDedup(keep="max:score").run(made))


def test_fields_that_no_document_has_are_refused(tmp_path):
    made = [Document("Ferry times", id="a", metadata={"score": 1}), Document("ferry times!", id="b", metadata={"lang": "en"})]
    for settings in ({"within": "nope"}, {"keep": "max:nope"}, {"sources": "nope=origins"}):
        with pytest.raises(la.InputError, match="no document has the field `nope` in its metadata, which has `score`, `lang`"):
            list(LookalikeDedup(**settings).run(made))
    # A field that some documents have is enough.
    assert [document.id for document in LookalikeDedup(keep="max:score", within="lang").run(made)] == ["a", "b"]
    assert not list(LookalikeDedup(within="nope").run([]))
    for rank in range(2):
        LookalikeDedupTexts(tmp_path, ["score", "nope"]).run(made[rank:][:1], rank, 2)
    with pytest.raises(la.InputError, match="has the field `nope` in its metadata: run LookalikeDedupTexts"):
        LookalikeDedupVerdicts(tmp_path, within="nope").run()
    for rank in range(2):
        LookalikeDedupTexts(tmp_path, ["score"]).run(made[rank:][:1], rank, 2)
    LookalikeDedupVerdicts(tmp_path, keep="min:score").run()


def test_another_threshold_needs_the_later_stages_alone(tmp_path):
    made = [Document("The ferry leaves at seven.", id="a"), Document("The ferry leaves at eight.", id="b")]
    LookalikeDedupTexts(tmp_path).run(made)
    for threshold, kept in ((0.9, ["a", "b"]), (0.5, ["a"]), (0.9, ["a", "b"])):
        LookalikeDedupVerdicts(tmp_path, threshold=threshold).run()
        assert [document.id for document in LookalikeDedupFilter(tmp_path).run(made)] == kept


def test_tasks_without_files_are_ordered_by_rank(tmp_path):
    parts = [[Document(f"text {number} of a row of texts", id=f"{rank}-{number}") for number in (rank, 9)] for rank in range(3)]
    for rank, part in enumerate(parts):
        LookalikeDedupTexts(tmp_path).run(part, rank, 3)
    LookalikeDedupVerdicts(tmp_path, threshold=1).run()
    kept = [[document.id for document in LookalikeDedupFilter(tmp_path).run(part, rank, 3)] for rank, part in enumerate(parts)]
    assert kept == [["0-0", "0-9"], ["1-1"], ["2-2"]]
    assert json.loads((tmp_path / "verdicts.json").read_text())["summary"]["removed"] == 2


def test_scripts_of_the_page(corpus, tmp_path):
    """As they stand there, in the folder of the corpus."""
    corpus.rename(tmp_path / "corpus")
    scripts = blocks_of("docs/python/integrations.md", "python")
    assert len(scripts) == 2
    expected = {row["id"] for row in expected_rows(tmp_path / "corpus", tmp_path / "expected.jsonl", "--threshold=0.8")}
    for number, script in enumerate(scripts):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / "corpus").symlink_to(tmp_path / "corpus")
        (folder / "pipeline.py").write_text(script)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        subprocess.run([sys.executable, "pipeline.py"], cwd=folder, check=True, capture_output=True, env=environment)
        written = [json.loads(line) for path in (folder / "kept").glob("*.jsonl.gz") for line in gzip.open(path)]
        assert {row["id"] for row in written} == expected and len(written) == len(expected)
