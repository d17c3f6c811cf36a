"""The commands that a page shows for a bucket, run as they stand there, with a kill on the way."""

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
import pytest
from made import made_documents
from test_object_resuming import bytes_of, kill_when

PAGES = ["docs/training-sets.md", "docs/zh/training-sets.md"]
ROOT = Path(__file__).resolve().parent.parent.parent
QUESTION = "Which harbour had the highest stone mole before the great storm of the winter destroyed its lighthouse?"


def commands_of(page):
    """The arguments of the commands of the block that begins with the plan of a run over a bucket."""
    blocks = (ROOT / page).read_text(encoding="utf-8").split("```\n")
    [block] = [block for block in blocks if block.startswith("lookalike dedup s3://corpus/raw/")]
    commands = [shlex.split(line) for line in block.splitlines()]
    assert all(command[0] == "lookalike" for command in commands)
    return [command[1:] for command in commands]


def rows_of(part):
    """Rows of a month, of which one quotes a question, and some share a notice."""
    notice = " ".join(f"Visitors of pier {number} must register at the gate." for number in range(12))
    rows = made_documents(300)[150 * part : 150 * part + 150]
    for at, row in enumerate(rows):
        row["id"] = f"{part}-{at}"
        row["crawl"] = "abc"[at % 3]
    rows[7]["text"] += f"\n\nAnswer this. {QUESTION} The one in the north."
    for row in rows[20:30]:
        row["text"] += f"\n\n{notice}\n"
    return rows


@pytest.mark.parametrize("page", PAGES)
def test_four_commands_make_a_training_set(store, tmp_path, page):
    for part in range(2):
        rows = rows_of(part)
        columns = {name: [row[name] for row in rows] for name in ("id", "text", "crawl")}
        file = tmp_path / "part.parquet"
        arrow_parquet.write_table(pa.table(columns), file, row_group_size=50)
        store.put(f"raw/2026-0{part + 1}.parquet", file.read_bytes())
    benchmark = tmp_path / "evals/harbours.jsonl"
    benchmark.parent.mkdir()
    benchmark.write_text(json.dumps({"question": QUESTION, "answer": "#### The one in the north"}) + "\n")
    plan, dedup, passages, decontaminate = [
        [word.replace("s3://corpus/", store.url("")) for word in command] for command in commands_of(page)
    ]
    resumed = [*dedup, "--resume"]
    assert "200.0 MB" in store.run(*plan, cwd=tmp_path).out
    is_read = iter(range(10**6))
    kill_when(store, lambda request: bytes_of(request) > 0 and next(is_read) == 1, *dedup, cwd=tmp_path)
    assert all(key.startswith("raw/") for key in store.keys())
    for command in (resumed, passages, decontaminate):
        store.run(*command, cwd=tmp_path)
    rows = []
    for part in range(2):
        file = tmp_path / "clean.parquet"
        file.write_bytes(store.get(f"clean/2026-0{part + 1}.parquet"))
        rows += arrow_parquet.read_table(file).to_pylist()
    assert rows
    assert all(row["copies"] >= 1 and row["sources"] for row in rows)
    assert not any(QUESTION in row["text"] for row in rows)
    assert sum("Visitors of pier 3" in row["text"] for row in rows) == 1
    assert store.get("items.tsv").decode().splitlines()[1].startswith("harbours\t")
    assert "report" in (tmp_path / "report.html").read_text(encoding="utf-8")
