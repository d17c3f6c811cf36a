"""The notebooks of the package are complete, run from the first to the last cell, and give what they say."""

import ast
import json

import pytest
from made import ROOT

FOLDER = ROOT / "python/examples/notebooks"
NAMES = ("clean_a_training_set", "from_datasketch", "stream_in_a_web_handler")


def run_notebook(name):
    """Runs the code of a notebook. Returns its names, and the values of the cells that end with an expression."""
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    names, values = {"__name__": "__main__"}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [] and cell["execution_count"] is None, "outputs are not stored"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            values.append(eval(compile(ast.Expression(last.value), name, "eval"), names))
    return names, values


def test_every_notebook_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


def test_from_datasketch():
    pytest.importorskip("pandas")
    names, (candidates, pairs, removed) = run_notebook("from_datasketch")
    assert candidates == ["eight", "seven"]
    assert pairs.values.tolist() == [[0.0, 1.0, 0.8]]
    assert removed["id"].tolist() == ["eight"] and removed["kept"].tolist() == ["seven"]


def test_clean_a_training_set():
    pytest.importorskip("pandas")
    names, (removed, findings, kept) = run_notebook("clean_a_training_set")
    assert len(removed) == 1 and len(names["result"].rejected) == 1
    assert findings["benchmark"].tolist() == ["ropes"]
    assert len(kept) == 3 and not any("metres" in row["text"] for row in kept)
    assert (names["folder"] / "clean.parquet").exists()


def test_stream_in_a_web_handler():
    names, (_, answers, opened) = run_notebook("stream_in_a_web_handler")
    assert answers == {
        "a": {"new": True, "repeats": None},
        "b": {"new": False, "repeats": "a"},
        "c": {"new": True, "repeats": None},
    }
    assert opened == (2, "a")
