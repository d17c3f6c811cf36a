"""The examples of the documents in Python are run as they stand there."""

import doctest
import importlib
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


PAGES = ["python/index.md", "python/texts.md", "python/indexes.md", "guide/coming-from.md"]
#: Packages that a page uses, and that are not there for every version of Python.
PACKAGES = {"python/integrations.md": ["langchain_core.documents"]}


@pytest.mark.parametrize("page", [*PAGES, *PACKAGES])
def test_examples_of_page(page):
    pytest.importorskip("numpy", "2")
    for package in PACKAGES.get(page, ()):
        pytest.importorskip(package)
    result = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


@pytest.fixture
def page_figures(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench/compare"), *sys.path])
    return importlib.import_module("page_figures")


def test_figures_of_pages_are_those_of_the_results(page_figures):
    assert page_figures.find_problems() == []


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("A run takes 0.27 s and\n500 MB.", ["0.27 s", "500 MB"]),
        ("每次查询 1.27 微秒，每秒写入 116,000 条，用时是平时的 3 倍。", ["1.27 µs", "116,000 a second", "3 times"]),
        ("It inserts 24,000 titles a second, 158 MB/s.", ["24,000 a second", "158 MB/s"]),
        ("`--memory 2 GB`, 3 runs, version 1.2\n\n```\nin 4.0 s\n```\n", []),
        ("It takes <!-- figure restart-seconds -->21<!-- / --> s.", []),
    ],
)
def test_amounts_without_a_name_are_found(page_figures, text, amounts):
    assert list(page_figures.find_amounts(text)) == amounts


def test_figures_are_written_by_their_names(page_figures):
    page = page_figures.with_figures("<!-- figure restart-seconds -->20<!-- / --> s")
    assert page == "<!-- figure restart-seconds -->21<!-- / --> s"
    with pytest.raises(SystemExit, match="there is no figure 'nothing'"):
        page_figures.with_figures("<!-- figure nothing -->20<!-- / -->")
