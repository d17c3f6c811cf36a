import doctest

import pyarrow as pa
import pytest
from alike import by_id, check_audit_of_all, removed_of, rows_of
from corpora import filled_forms, generated, known_and_new, skewed

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
    against = settings.pop("against", None)
    known = None if against is None else ray.data.from_arrow(against)
    found = lar.dedup(data, against=known, **settings)
    alone = la.dedup(by_id(table), id="id", against=None if against is None else by_id(against), **{"forms": "off", **settings})
    assert removed_of(found.removed.to_pylist()) == removed_of(alone.removed.to_pylist())
    kept = sorted(row["id"] for row in found.kept.take_all())
    assert kept == sorted(alone.kept.column("id").to_pylist())
    told = found.summary()
    assert told == {name: alone.summary[name] for name in told}


def test_forms_keep_what_one_machine_keeps(local, tmp_path):
    table, forms = filled_forms(tmp_path)
    check(table, forms=forms)


def test_result_equals_one_machine(local):
    check(generated(400, 60))
    check(generated(300, 20), threshold=0.6, keep="max:weight")
    check(generated(300, 20), threshold=0.6, keep="min:name,longest,max:weight")


def test_copies_and_weights_equal_one_machine(local):
    from lookalike import ray as lar

    table = generated(300, 20)
    settings = {"copies": "n", "weight": "share", "weight_by": "sqrt", "threshold": 0.6}
    found = lar.dedup(ray.data.from_arrow([table.slice(0, 100), table.slice(100)]), **settings)
    alone = la.dedup(by_id(table), id="id", forms="off", **settings)
    columns = ("id", "n", "share")
    kept = sorted(tuple(row[name] for name in columns) for row in found.kept.take_all())
    assert kept == rows_of(alone.kept.select(columns))
    assert max(row[1] for row in kept) > 2


def test_within_against_and_pairs(local):
    from lookalike import ray as lar

    table = generated(400, 30, seed=4).append_column("site", pa.array([at % 3 for at in range(400)]))
    known, table = table.slice(0, 150), table.slice(150)
    check(table, against=known, within="site", threshold=0.6)
    data = ray.data.from_arrow([table.slice(0, 100), table.slice(100)])
    found = lar.pairs(data, within="site", threshold=0.6)
    alone = la.pairs(by_id(table), id="id", within="site", threshold=0.6, distinct=True, forms="off").pairs
    assert rows_of(found) == rows_of(alone.select(found.column_names))
    assert len(found) > 10


def test_pairs_with_known_documents(local):
    from lookalike import ray as lar

    known, table = known_and_new()
    data = ray.data.from_arrow([table.slice(0, 100), table.slice(100)])
    found = lar.pairs(data, against=ray.data.from_arrow(known), threshold=0.6)
    alone = la.pairs(by_id(table), id="id", against=by_id(known), threshold=0.6, distinct=True, forms="off").pairs
    assert rows_of(found) == rows_of(alone.select(found.column_names))
    assert len(found) > 50


@pytest.mark.parametrize("rule", [{}, {"method": "simhash", "distance": 3}], ids=str)
def test_audit_of_all_documents_equals_one_machine(local, rule):
    from lookalike import ray as lar

    table = generated(260, 40, seed=6)
    known, table = table.slice(0, 60), table.slice(60)
    rule = {"threshold": 0.6, **rule}
    found = []
    for cuts in ([0, len(table)], [0, 70, 71, len(table)]):
        data = ray.data.from_arrow([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:])])
        found.append(lar.dedup(data, against=ray.data.from_arrow(known), audit=2 * len(table), **rule))
    assert found[0].audit == found[1].audit == found[0].summary()["audit"]
    told = check_audit_of_all(found[0].audit, table, known, **rule)
    assert told["pairs"] > 50
    with pytest.raises(la.SettingError, match="audit is not possible here"):
        lar.dedup(data, audit=True, method="exact")


def test_unknown_arguments_and_columns_are_named(local):
    from lookalike import ray as lar

    data = ray.data.from_arrow(pa.table({"id": ["a"], "text": ["one"]}))
    with pytest.raises(la.SettingError, match="has no argument window"):
        lar.dedup(data, window="2d")
    with pytest.raises(la.SettingError, match="sources is not available on Ray"):
        lar.dedup(data, sources="site")
    with pytest.raises(la.InputError, match="no column 'body' among 'id', 'text'"):
        lar.dedup(data, text="body")


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
