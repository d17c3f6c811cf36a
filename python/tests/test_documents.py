"""The examples of the documents in Python are run as they stand there."""

import doctest
import pathlib

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
