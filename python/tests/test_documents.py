"""The examples of the documents in Python are run as they stand there."""

import doctest
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["guide/python.md", "guide/coming-from.md"])
def test_examples_of_page(page):
    result = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0
