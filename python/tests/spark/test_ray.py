import doctest

import pyarrow as pa
import pytest
from alike import by_id, removed_of
from corpora import generated, skewed

import lookalike as la

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def local():
    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


def check(table, rows=None, **settings):
    from lookalike import ray as lar

    cuts = [0, 100, len(table)] if rows is None else [*range(0, len(table), rows), len(table)]
    data = ray.data.from_arrow([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:])])
    found = lar.dedup(data, **settings)
    alone = la.dedup(by_id(table), id="id", **settings)
    assert removed_of(found.removed.to_pylist()) == removed_of(alone.removed.to_pylist())
    kept = sorted(row["id"] for row in found.kept.take_all())
    assert kept == sorted(alone.kept.column("id").to_pylist())


def test_result_equals_one_machine(local):
    check(generated(400, 60))
    check(generated(300, 20), threshold=0.6, keep="max:weight")


def test_steps_can_leave_empty_blocks(local):
    texts = ["one", "the ferry leaves at seven", "The ferry leaves at seven!", "a bridge", "two and three"]
    check(pa.table({"id": ["a", "b", "c", "d", "e"], "text": texts}), rows=1)


@pytest.mark.parametrize("own", [2, 70])
def test_third_of_all_rows_shares_a_band(local, own):
    check(skewed(15_000, 150, own))


def test_examples_of_the_docstrings(local):
    from lookalike import ray as lar

    ran = doctest.testmod(lar, extraglobs={"ray": ray})
    assert ran.failed == 0 and ran.attempted > 7
