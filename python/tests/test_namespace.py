"""The names of the package: where they are, what is loaded with them, and where former names lead."""

import inspect
import json
import pickle
import re
import subprocess
import sys
import typing
import warnings

import numpy as np
import pytest
from made import ROOT

import lookalike as la
from lookalike import _former_names, errors, results, service
from lookalike.compat import datasketch, rensa, simhash

MODULES = (datasketch, rensa, simhash, errors, results, service)
#: Parts of the standard library and packages that most programs with this package do not need.
HEAVY = ("asyncio", "concurrent.futures", "glob", "http.client", "ssl", "tempfile", "urllib.request", "zipfile")
OTHER_PACKAGES = ("pandas", "polars", "pyarrow", "redis", "datasets", "tqdm")


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_top_has_the_names_of_the_product():
    assert len(la.__all__) == len(set(la.__all__)) <= 25
    assert all(getattr(la, name) is not None for name in la.__all__) and set(la.__all__) <= set(dir(la))
    lowered = [name.lower() for name in la.__all__]
    assert len(set(lowered)) == len(lowered), "two names differ by capitals alone"
    assert la.__version__


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_modules_have_the_names_that_they_list(module):
    for name in module.__all__:
        assert getattr(module, name).__doc__


def test_an_import_loads_neither_clients_nor_other_packages():
    names = HEAVY + OTHER_PACKAGES
    code = f"import sys, numpy; there = set(sys.modules); import lookalike; print(*(set({names!r}) & (set(sys.modules) - there)))"
    assert run_python(code).split() == []
    code = "import sys, lookalike; print(*sorted(name for name in sys.modules if name.startswith('lookalike')))"
    assert run_python(code).split() == ["lookalike", "lookalike._engine", "lookalike._errors"]
    code = "import sys, lookalike as la; la.Client; print('ssl' in sys.modules); la.AsyncClient; print('asyncio' in sys.modules)"
    assert run_python(code).split() == ["True", "True"]


def test_modules_need_no_import_of_their_own():
    code = "import lookalike as la; print(la.errors.LimitError.__name__, la.results.Pairs, la.service.Client, la.compat.rensa.RMinHash)"
    assert run_python(code).startswith("LimitError")
    code = "import lookalike as la; print(*dir(la)); print(*dir(la.compat))"
    names, classes = (line.split() for line in run_python(code).splitlines())
    shown = {name for name in names if not name.startswith("__")}
    assert shown == {*la.__all__, "compat", "errors", "results", "service"}
    assert {name for name in classes if not name.startswith("__")} == {"datasketch", "rensa", "simhash"}


def test_former_names_work_with_a_warning():
    assert not set(_former_names.FORMER_NAMES) & set(la.__all__)
    for name, (module, current) in _former_names.FORMER_NAMES.items():
        with pytest.warns(DeprecationWarning, match=f"^lookalike.{name} is now {module}.{current}; .* removed in 0.2$") as told:
            found = getattr(la, name)
        assert told[0].filename == __file__
        if name != "RECIPES":
            assert found is getattr(sys.modules[module], current)
    with pytest.warns(DeprecationWarning, match="lookalike.Recipe.built_in"):
        assert la.RECIPES == la.Recipe.built_in and "words-3" in la.RECIPES
    # The warning names the line of the user, also for `from lookalike import …`.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        from lookalike import MinHash  # noqa: F401
    assert [one.filename for one in told] == [__file__]


def test_current_names_give_no_warning():
    code = "import lookalike\nfor name in lookalike.__all__: getattr(lookalike, name)\n"
    code += "".join(f"from {module.__name__} import *\n" for module in MODULES)
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize(
    "place, former, current",
    [
        ("_hamming", "Near", results.HammingMatches),
        ("_hamming", "Alike", results.SignatureMatches),
        ("_passages", "Spot", results.PassagePlace),
        ("_texts", "Figure", results.MeasuredValue),
        ("_texts", "Steps", results.RecipeSteps),
        ("_labelled", "Tuned", results.TuningResult),
    ],
)
def test_pickles_with_former_names_are_read(place, former, current):
    # Protocol 0 has module and name as text.
    assert pickle.loads(f"clookalike.{place}\n{former}\n.".encode()) is current
    assert current.__name__ != former


@pytest.mark.parametrize("module", (la, *MODULES), ids=lambda module: module.__name__)
def test_annotations_can_be_evaluated(module):
    for name in module.__all__:
        value = getattr(module, name)
        members = [inspect.getattr_static(value, member) for member in dir(value)] if isinstance(value, type) else []
        for one in (value, *members):
            one = getattr(one, "fget", None) or getattr(one, "__func__", one)
            if inspect.isfunction(one) or isinstance(one, type):
                typing.get_type_hints(one)


def test_an_index_shows_its_parameters():
    assert list(inspect.signature(datasketch.MinHashLSH).parameters)[:3] == ["threshold", "num_perm", "weights"]


def test_the_reference_has_the_names_of_all_modules():
    page = (ROOT / "docs/python/reference.md").read_text(encoding="utf-8")
    for name in ("pandas.LookalikeAccessor", "polars.LookalikeNamespace", "sklearn.FingerprintTransformer", "datasets.dedup"):
        assert f"## {name}\n" in page
    for name in ("datatrove.LookalikeDedup", "langchain.LookalikeDedup", "llama_index.LookalikeDedup"):
        assert f"## {name}\n" in page
    for part in ("ForwardRef", str(sys.maxsize), "Literal[removed", "A value of type `dict`", "\n----------\n"):
        assert part not in page


def test_results_are_pickled():
    index = la.HammingIndex(distance=1)
    index.add(np.array([3, 4], np.uint64))
    near = index.search([2])
    again = pickle.loads(pickle.dumps(near))
    assert type(again) is results.HammingMatches and again.id.tolist() == [0]


def test_a_pickled_class_names_the_module_of_its_import():
    assert datasketch.MinHash.__module__ == "lookalike.compat.datasketch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(datasketch.MinHash)) is datasketch.MinHash


def test_types_have_no_former_names(tmp_path):
    pytest.importorskip("mypy")
    code = tmp_path / "names.py"
    code.write_text(
        "from lookalike import Dedupp\nfrom lookalike import MinHash\nfrom lookalike import Client\n"
        "from lookalike.compat.datasketch import HNSW\nfrom lookalike.compat.datasketch import MinHashLSH\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "--config-file", ROOT / "pyproject.toml", code],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
        env={"MYPYPATH": str(ROOT / "python"), "PATH": ""},
    )
    lines = [int(line) for line in re.findall(r"names\.py:(\d+): error: Module .* has no attribute", checked.stdout)]
    assert lines == [1, 2, 4], checked.stdout + checked.stderr


def test_names_of_other_packages_say_what_to_call():
    with pytest.raises(ImportError, match="lookalike has no HNSW: use lookalike.HammingIndex"):
        from lookalike.compat.datasketch import HNSW  # noqa: F401
    assert not hasattr(datasketch, "nothing")


def test_a_migration_is_one_import():
    import datasketch as theirs

    # Classes that datasketch has in other modules, and those for other stores.
    left_out = {"HNSW"}
    missing = {name for name in theirs.__all__} - set(datasketch.__all__) - left_out
    assert not missing, json.dumps(sorted(missing))
