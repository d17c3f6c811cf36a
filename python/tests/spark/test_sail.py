import doctest
import random
import re

import numpy
import pyarrow as pa
import pytest
from alike import by_id, check, check_audit_of_all, check_pairs, removed_of, rows_of
from corpora import chained, filled_forms, generated, known_and_new, of_the_repository, real, repeated, skewed

import lookalike as la
from lookalike import _engine, _steps
from lookalike import spark as las
from lookalike._steps import Job
from lookalike.spark import _calls, _candidates, _dedup_run, _linking, _results, _session
from lookalike.spark._columns import Columns
from lookalike.spark._dedup_run import DedupRun, RunLimits
from lookalike.spark._linking import Linking

RULES = [
    {},
    {"threshold": 0.6},
    {"threshold": 0.9, "method": "minhash"},
    {"threshold": 0.5, "method": "join"},
    {"method": "exact"},
    {"method": "simhash", "distance": 8},
    {"method": "simhash", "distance": 3, "verify": "none"},
    {"method": "sentences"},
    {"method": "bottomk", "threshold": 0.8},
    {"verify": "containment"},
    {"verify": "levenshtein", "threshold": 0.8},
    {"verify": "cosine", "recipe": "words-3"},
]


#: Linked by the driver as small runs are, by tasks as larger ones, and by joins as the largest; the last has no memory
#: for the destinations of nodes, and a filter that every text passes.
WAYS = [{}, {"links_on_driver": 2000}, {"links_on_driver": 0}, {"links_on_driver": 0, "filter_memory": 8}]


@pytest.mark.parametrize("way", WAYS[:2], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_result_equals_one_machine(spark, tmp_path, rule, way):
    for rows, length in [(400, 20), (300, 150)]:
        check(spark, generated(rows, length), checkpoint=str(tmp_path), **rule, **way)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_forms_keep_what_one_machine_keeps(spark, tmp_path, way):
    table, forms = filled_forms(tmp_path)
    result, alone = check(spark, table, forms=forms, checkpoint=str(tmp_path), **way)
    # Of the notices, the repeats alone are removed.
    assert len(alone.removed) == 24, alone.summary
    check_pairs(spark, table.slice(0, 60), table.slice(60), forms=forms)
    # The tasks have the table with the job, so they need no file.
    job = Job.of("default", None, "id", forms=forms)
    forms.unlink()
    assert "notice" in job.forms and job.open().threshold == 0.75
    recipe = la.Recipe("default")
    assert Job.of(recipe, None, "id", forms="off") == Job.of(recipe, None, "id")
    with pytest.raises(la.SettingError, match="learn_forms"):
        las.dedup(None, forms="learn")
    with pytest.raises(la.InputError, match="forms.toml"):
        las.dedup(None, forms=forms)


def test_options_select_distinct_algorithms(spark, tmp_path, monkeypatch):
    taken = []
    steps = [(_dedup_run, "connect_links"), (_candidates, "by_filters"), (_candidates, "by_destinations")]
    for owner, name in ((DedupRun, "linked_by_driver"), (Linking, "link"), *steps):
        def note(*given, name=name, step=getattr(owner, name)):
            taken.append(name)
            return step(*given)

        monkeypatch.setattr(owner, name, note)
    expected_steps = [
        ["linked_by_driver"],
        ["link", "by_filters"],
        ["link", "connect_links", "by_destinations"],
        ["link", "connect_links", "by_filters"],
    ]
    for way, expected in zip(WAYS, expected_steps):
        taken.clear()
        check(spark, generated(400, 30), threshold=0.6, checkpoint=str(tmp_path), **way)
        assert taken == expected


@pytest.mark.parametrize("keep", ["first", "last", "longest", "max:weight", "min:weight", "min:name", "max:name"])
def test_order_equals_one_machine(spark, keep):
    check(spark, generated(300, 30, seed=2), threshold=0.6, keep=keep)


@pytest.mark.parametrize(
    "keep",
    ["max:weight,longest", "min:name,max:weight,last", "longest,min:weight,max:id", "min:weight, max:name,longest,first"],
)
def test_keys_decide_one_after_another_as_on_one_machine(spark, keep):
    known, table = known_and_new()
    check(spark, table, threshold=0.6, keep=keep)
    check(spark, table, against=known, within="site", threshold=0.6, keep=keep, links_on_driver=2000)


@pytest.mark.parametrize("keep", ["max:weight", "min:weight"])
@pytest.mark.parametrize(
    "weights",
    [
        pa.array([2**53 + 1, 2**53, 2**53 + 2, None], pa.int64()),
        pa.array([-(2**53) - 1, -(2**53), 0, 1], pa.int64()),
        pa.array(["NaN", " 9 ", "10", ""]),
        pa.array(["inf", "10", "a", "-inf"]),
        pa.array([-0.0, 0.0, 0.5, float("nan")]),
    ],
    ids=["above", "below", "numbers", "infinite", "zeros"],
)
def test_values_are_ordered_as_on_one_machine(spark, weights, keep):
    table = pa.table({"id": list("abcd"), "text": ["the ferry leaves at seven every day"] * 4, "weight": weights})
    check(spark, table, keep=keep)
    # Without the value that decides, the next one decides.
    check(spark, table.slice(1), keep=keep)
    check(spark, table.slice(0, 2), keep=keep)


def test_by_id_equals_min_id_on_one_machine(spark):
    table = generated(300, 30, seed=3)
    alone = la.dedup(table, id="id", keep="min:id", forms="off")
    for keep in (None, "min:id"):
        found = las.dedup(spark.createDataFrame(table), keep=keep).removed.toArrow()
        assert removed_of(found.to_pylist()) == removed_of(alone.removed.to_pylist())


def test_last_ties_by_id_equal_min_id_on_one_machine(spark):
    table = generated(300, 30, seed=3)

    def removed_here(keep):
        return removed_of(la.dedup(table, id="id", keep=keep, forms="off").removed.to_pylist())

    for keys in ("max:weight,longest", "min:name,max:weight"):
        expected = removed_here(f"{keys},min:id")
        assert expected != removed_here(f"{keys.split(',')[0]},min:id")
        found = las.dedup(spark.createDataFrame(table), keep=keys).removed.toArrow()
        assert removed_of(found.to_pylist()) == expected


@pytest.mark.parametrize(
    "settings",
    [{"copies": "n"}, {"weight": "share", "weight_by": {1: 1.0, 2: 1.5, 3: 4}}, {"copies": "n", "weight": "share"}],
    ids=str,
)
def test_copies_and_weights_equal_one_machine(spark, tmp_path, monkeypatch, settings):
    table = generated(300, 30, seed=2)
    alone = la.dedup(by_id(table), id="id", threshold=0.6, forms="off", **settings)
    added = [name for name in alone.kept.column_names if name not in table.column_names]
    assert all(len(set(alone.kept[name].to_pylist())) > 2 for name in added)
    for most in (1_000_000, 0):
        monkeypatch.setattr(_results, "_BROADCAST", most)
        result = las.dedup(spark.createDataFrame(table), threshold=0.6, checkpoint=str(tmp_path), **settings)
        kept = _session.collect_arrow(result.kept)
        assert kept.column_names == alone.kept.column_names
        by_name = [{row["id"]: row for row in rows.to_pylist()} for rows in (kept, alone.kept)]
        assert by_name[0] == by_name[1] and len(kept) == len(alone.kept)


def test_copies_of_nothing_removed(spark):
    frame = spark.createDataFrame([("a", "one two three"), ("b", "a bridge")], "id string, text string")
    kept = las.dedup(frame, copies="n", weight="share", weight_by="sqrt").kept.collect()
    assert sorted(tuple(row) for row in kept) == [("a", "one two three", 1, 1.0), ("b", "a bridge", 1, 1.0)]


@pytest.mark.parametrize("way", WAYS[:2], ids=str)
def test_real_texts_of_the_repository(spark, tmp_path, way):
    _, alone = check(spark, of_the_repository(3000), checkpoint=str(tmp_path), **way)
    assert {"exact", "join", "minhash"} <= set(alone.removed["method"].to_pylist())
    assert len(alone.removed) > 100


@pytest.mark.parametrize(
    "name, rows, every",
    [("en_docs.jsonl.zst", 1500, 1), ("zh_docs.jsonl.zst", 1200, 1), ("zh_short.tsv.zst", 20_000, 1)],
)
def test_real_texts(spark, name, rows, every):
    table = real(name, rows, every)
    if table is None:
        pytest.skip(f"{name} is not there")
    result, _ = check(spark, table)
    assert result.removed.count() > 1


@pytest.mark.parametrize("way", [{}, {"links_on_driver": 60_000}], ids=str)
@pytest.mark.parametrize("own", [2, 70])
def test_third_of_all_rows_shares_a_band(spark, tmp_path, own, way):
    """Similar ones cost a comparison each; others meet again by their rarest features."""
    check(spark, skewed(16_000, 150, own), checkpoint=str(tmp_path), **way)


@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_chain_is_one_component(spark, tmp_path, way):
    _, alone = check(spark, chained(1500), checkpoint=str(tmp_path), **way)
    assert len(alone.removed) > 500


@pytest.mark.parametrize("keep", ["first", "last"])
@pytest.mark.parametrize("way", WAYS[1:], ids=str)
def test_half_of_all_rows_repeat(spark, tmp_path, monkeypatch, way, keep):
    """With repeated texts and removed ids in broadcasts and not."""
    table = repeated(2000)
    check(spark, table, checkpoint=str(tmp_path), keep=keep, **way)
    monkeypatch.setattr(_candidates, "_FEW_REPEATS", 10)
    monkeypatch.setattr(_results, "_BROADCAST", 10)
    _, alone = check(spark, table, checkpoint=str(tmp_path), keep=keep, **way)
    assert len(alone.removed) > 900


def test_many_tables_are_added_by_tasks(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(_linking, "_TABLES", 0)
    check(spark, generated(400, 20), checkpoint=str(tmp_path), links_on_driver=2000)


def test_filters_that_are_too_small_change_no_result(spark, tmp_path):
    """Every text passes a filter of a few bits."""
    table = generated(400, 30)
    check(spark, table, checkpoint=str(tmp_path), links_on_driver=2000, filter_memory=8)


def test_both_sides_of_the_limit_of_destinations(spark, tmp_path, monkeypatch):
    """Four bytes for each node with a link are the least for a table of destinations."""
    table = generated(400, 30)
    taken = []
    for name in ("by_filters", "by_destinations"):
        def note(selection, *given, name=name, step=getattr(_candidates, name)):
            taken.append((name, selection.nodes))
            return step(selection, *given)

        monkeypatch.setattr(_candidates, name, note)
    settings = {"threshold": 0.6, "checkpoint": str(tmp_path), "links_on_driver": 0}
    check(spark, table, **settings)
    ((name, nodes),) = taken
    for memory in (5 * nodes, 4 * nodes, 4 * nodes - 1):
        check(spark, table, filter_memory=memory, **settings)
    assert [name for name, _ in taken] == ["by_destinations"] * 3 + ["by_filters"]


def test_summary_and_repr(spark):
    result, alone = check(spark, generated(400, 30), threshold=0.6)
    told = result.summary()
    assert told == {name: alone.summary[name] for name in told}
    assert f"{told['removed']} documents removed" in repr(result)


AUDITED = [
    {"threshold": 0.6},
    {"threshold": 0.6, "method": "simhash", "distance": 3},
    {"threshold": 0.7, "method": "minhash", "verify": "containment"},
]


@pytest.mark.parametrize("way", WAYS[:2], ids=str)
@pytest.mark.parametrize("rule", AUDITED, ids=str)
def test_audit_of_all_documents_equals_one_machine(spark, tmp_path, rule, way):
    table = generated(220, 40, seed=6)
    result = las.dedup(spark.createDataFrame(table), audit=len(table), checkpoint=str(tmp_path), **rule, **way)
    told = check_audit_of_all(result.audit, table, **rule)
    assert told["pairs"] > 50 and told["precision"]["cases"] > 20
    assert result.summary()["audit"] == result.audit
    if rule.get("method") == "simhash":
        assert result.audit["recall"]["high"] < 1 and result.audit["left_together"]["low"] > 0


def test_later_documents_of_an_audit_are_later_in_the_order(spark):
    table = generated(220, 40, seed=6)
    result = las.dedup(spark.createDataFrame(table), audit=len(table), keep="last", threshold=0.6)
    backwards = lambda table: by_id(table).take(list(range(len(table)))[::-1])
    check_audit_of_all(result.audit, table, order=backwards, threshold=0.6)


def test_audit_within_and_against_equals_one_machine(spark, tmp_path):
    table = generated(260, 40, seed=4)
    table = table.append_column("site", pa.array([at % 2 for at in range(len(table))]))
    known, table = table.slice(0, 80), table.slice(80)
    # Some ids are those of known documents, too.
    ids = known.column("id").to_pylist()[:30] + table.column("id").to_pylist()[30:]
    table = table.set_column(0, "id", pa.array(ids))
    for settings in ({"within": "site"}, {"within": "site", "method": "simhash", "distance": 4}):
        settings = {"threshold": 0.6, **settings}
        frames = [spark.createDataFrame(part) for part in (table, known)]
        result = las.dedup(
            frames[0], against=frames[1], audit=len(table) * 2, checkpoint=str(tmp_path), **settings
        )
        told = check_audit_of_all(result.audit, table, known, **settings)
        assert told["pairs"] > 30


def test_audit_does_not_depend_on_partitions(spark, tmp_path):
    table = generated(900, 40, seed=10)
    found = []
    for partitions, way in ((1, {}), (5, {}), (3, {"links_on_driver": 2000})):
        frame = spark.createDataFrame(table).repartition(partitions)
        rule = {"method": "simhash", "threshold": 0.6, "distance": 4}
        found.append(las.dedup(frame, audit=150, checkpoint=str(tmp_path), **rule, **way).audit)
    assert found[0]["sampled"] == 150 and found[0]["pairs"] > 100
    assert 0 < found[0]["recall"]["share"] < 1
    assert found[1:] == found[:1] * 2


def test_audit_of_given_features_plants_nothing(spark, tmp_path):
    table = generated(200, 30, seed=3)
    words = pa.array([text.lower().split() for text in table.column("text").to_pylist()])
    table = table.append_column("words", words)
    frame = spark.createDataFrame(table)
    told = las.dedup(frame, features="words", threshold=0.6, audit=True, checkpoint=str(tmp_path)).audit
    alone = la.dedup(by_id(table), id="id", features="words", threshold=0.6, audit=True).summary["audit"]
    assert told["sampled"] == alone["sampled"] and told["recall"] == alone["recall"]
    assert "planted" not in told and "planted" not in alone


def test_plans_that_cannot_be_audited_are_refused(spark):
    frame = spark.createDataFrame(generated(20, 20))
    for rule, said in [
        ({"method": "exact"}, 'audit is not possible here: with method="exact" there is nothing to estimate'),
        ({"verify": "levenshtein"}, 'audit compares sets of features, and verify="levenshtein" compares texts'),
        ({"method": "simhash", "verify": "none"}, 'leave verify="none" out'),
    ]:
        with pytest.raises(la.SettingError, match=re.escape(said)):
            las.dedup(frame, audit=True, **rule)
    with pytest.raises(la.SettingError, match="audit is 0: give a whole number from 1"):
        las.dedup(frame, audit=0)
    result = las.dedup(frame, audit=False)
    assert result.audit is None and "audit" not in result.summary()


def test_audit_of_no_documents(spark):
    frame = spark.createDataFrame([], "id string, text string")
    told = las.dedup(frame, audit=True).audit
    assert told["sampled"] == told["pairs"] == 0 and told["recall"]["share"] is None


def test_old_spark_is_refused():
    class Session:
        version = "3.4.1"

    with pytest.raises(la.InputError, match="needs Spark 3.5 or later, and this session has 3.4.1"):
        _session.refuse_old_spark(Session())
    Session.version = "3.5.4"
    _session.refuse_old_spark(Session())


def test_third_of_all_rows_has_one_text(spark):
    table = generated(3000, 40)
    texts = table.column("text").to_pylist()
    hot = [texts[7] if at % 3 == 0 else text for at, text in enumerate(texts)]
    table = table.set_column(1, "text", pa.array(hot))
    check(spark, table, threshold=0.5)


def test_components_by_joins(spark, tmp_path):
    """The way of runs whose links do not fit the driver."""
    for keep in ("first", "max:weight"):
        check(
            spark, generated(300, 30), threshold=0.6, keep=keep, checkpoint=str(tmp_path), links_on_driver=0
        )


def test_components_equal_a_plain_union(spark, tmp_path):
    job = Job.of("default", None, "id")
    frame = spark.createDataFrame([("a", "b")], "id string, text string")
    run = DedupRun(frame, Columns(["text"], "id"), job, str(tmp_path), RunLimits())
    chain = [(at + 1, at) for at in range(40)]
    star = [(100, at) for at in range(101, 130)]
    pairs = chain + star + [(300, -5), (-5, 299), (7, 8), (-9, -8)]
    blocks = [(numpy.array(some, "<i8").tobytes(),) for some in (pairs[:30], pairs[30:])]
    labels = _dedup_run.connect_links(run, spark.createDataFrame(blocks, "block binary")).collect()
    expected = {at: 0 for at in range(41)} | {at: 100 for at in range(100, 130)}
    expected |= {300: -5, 299: -5, -5: -5, -9: -9, -8: -9}
    assert {row.node: row.component for row in labels} == expected
    assert len(labels) == len(expected)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("rule", [{"threshold": 0.6}, {"method": "simhash", "distance": 8}], ids=str)
def test_within_equal_values(spark, tmp_path, way, rule):
    """Numbers and strings, with nulls: of a text in several parts one is kept in each."""
    table = generated(400, 30, seed=4)
    sites = [[None, "a", "b", "ab"][at * 7 % 4] for at in range(400)]
    years = [[None, 2001, 2002][at * 5 % 3] for at in range(400)]
    table = table.append_column("site", pa.array(sites)).append_column("year", pa.array(years))
    for within in ("site", "year"):
        _, alone = check(spark, table, within=within, checkpoint=str(tmp_path), **way, **rule)
        everywhere = la.dedup(by_id(table), id="id", forms="off", **rule)
        assert 0 < len(alone.removed) < len(everywhere.removed)


def test_within_equal_values_of_a_hot_text(spark):
    table = skewed(12_000, 150, 70)
    table = table.append_column("site", pa.array([at % 3 for at in range(12_000)]))
    check(spark, table, within="site")


def test_pairs_within_equal_values(spark):
    table = generated(300, 30)
    table = table.append_column("site", pa.array([at % 2 for at in range(300)]))
    found = las.pairs(spark.createDataFrame(table), threshold=0.6, within="site").toArrow()
    settings = dict(id="id", threshold=0.6, distinct=True, forms="off")
    alone = la.pairs(by_id(table), within="site", **settings).pairs
    assert rows_of(found) == rows_of(alone.select(found.column_names))
    assert 0 < len(alone) < len(la.pairs(by_id(table), **settings).pairs)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_given_features_are_accepted(spark, tmp_path, way):
    """As lists, as maps to weights, and as strings; rows whose features are none are rejected."""
    table = generated(300, 30, seed=6)
    words = [text.lower().split() for text in table.column("text").to_pylist()]
    table = table.drop_columns(["text"])
    lists = [None if at == 7 else words[at] for at in range(300)]
    maps = [
        {word: -1.0 if at == 9 else 0.5 + len(word) for word in words[at]} if words[at] else {"w": 1.0}
        for at in range(300)
    ]
    strings = [" ".join(words[at]) for at in range(300)]
    table = table.append_column("lists", pa.array(lists))
    table = table.append_column("maps", pa.array([list(it.items()) for it in maps], pa.map_("string", "double")))
    table = table.append_column("strings", pa.array(strings))
    frame = spark.createDataFrame(table)
    for features, bad in [("lists", 7), ("maps", 9), ("strings", None)]:
        for rule in ({"threshold": 0.6}, {"verify": "cosine", "threshold": 0.7}):
            result, alone = check(
                spark, table, frame=frame, features=features, checkpoint=str(tmp_path), **way, **rule
            )
            assert len(alone.removed) > 10
            assert list(result.reasons) == ([] if bad is None else [table.column("id")[bad].as_py()])
            assert all("features" in reason for reason in result.reasons.values())


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_several_columns_of_text(spark, tmp_path, way):
    table = generated(300, 30, seed=7)
    texts = table.column("text").to_pylist()
    titles = [None if at % 5 == 0 else text[:40] for at, text in enumerate(texts)]
    bodies = [None if at % 7 == 0 else text[40:] for at, text in enumerate(texts)]
    table = table.drop_columns(["text"]).append_column("title", pa.array(titles))
    table = table.append_column("body", pa.array(bodies))
    result, alone = check(
        spark, table, text=["title", "body"], threshold=0.6, checkpoint=str(tmp_path), **way
    )
    assert len(alone.removed) > 10
    assert len(alone.rejected) == 9


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("keep", ["first", "last", "max:weight"])
def test_reference_documents(spark, tmp_path, way, keep):
    """Known documents come first and are never removed, whatever their ids are and whatever they match."""
    table = generated(500, 30, seed=8)
    against, table = table.slice(0, 200), table.slice(200)
    ids = table.column("id").to_pylist()
    # Ids of the data that are known ones, too.
    known = pa.array(ids[:50] + against.column("id").to_pylist()[50:])
    against = against.set_column(0, "id", known)
    _, alone = check(
        spark, table, against=against, threshold=0.6, keep=keep, checkpoint=str(tmp_path), **way
    )
    of_known = set(alone.removed.column("kept").to_pylist()) & set(known.to_pylist())
    assert len(of_known) > 10


@pytest.mark.parametrize("within", [None, "site"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_pairs_with_reference_documents(spark, tmp_path, way, within):
    found = check_pairs(spark, *known_and_new(), within=within, threshold=0.6, checkpoint=str(tmp_path), **way)
    assert len(found) > 100


def test_similar_reference_documents_both_stay(spark):
    """What repeats the second of two that match wholly names the first, as on one machine."""
    known = pa.table({"id": ["g1", "g2", "g3"], "text": ["a b c d e f", "a b c d e f a b c d e f", "z y x w v u"]})
    texts = ["a b c d e f a b c d e f", "A b c d e f a b c d e f", "z y x w v u", "z y x, w v u", "more of it"]
    table = pa.table({"id": ["1", "2", "3", "4", "5"], "text": texts})
    for way in WAYS[:2]:
        _, alone = check(spark, table, against=known, recipe="words-1", verify="containment", **way)
        assert len(alone.removed) == 4


def test_clusters_and_pairs_equal_one_machine(spark):
    table = generated(300, 30)
    result, alone = check(spark, table, threshold=0.6)
    def check_equal(found, expected):
        """Spark has no source and row: there the id says which row it is."""
        assert rows_of(found) == rows_of(expected.select(found.column_names))

    check_equal(result.clusters.toArrow(), alone.clusters)
    check_equal(result.pairs.toArrow(), alone.pairs)
    frame = spark.createDataFrame(table)
    check_equal(las.cluster(frame, threshold=0.6).toArrow(), alone.clusters)
    found = las.pairs(frame, threshold=0.6).toArrow()
    check_equal(found, la.pairs(by_id(table), id="id", threshold=0.6, distinct=True, forms="off").pairs)


def test_fingerprints(spark):
    table = generated(100, 20)
    rows = las.fingerprint(spark.createDataFrame(table)).collect()
    codes = la.simhash(table.column("text").to_pylist())
    assert [row.id for row in rows] == table.column("id").to_pylist()
    without = numpy.ma.getmaskarray(codes)
    expected = ["-" if none else f"{int(code):016x}" for code, none in zip(codes.data, without)]
    assert [row.fingerprint for row in rows] == expected
    assert 0 < sum(without) < 100


def test_other_columns_types_and_names(spark):
    table = pa.table(
        {
            "id": pa.array([3, 1, 20, 4]),
            "body": ["one two three four five", "One, two, three, four, five!", "else", None],
            "more": [[1], [2], None, []],
        }
    )
    result = las.dedup(spark.createDataFrame(table), text="body")
    assert [row.id for row in result.removed.collect()] == ["3"]
    assert sorted(row.id for row in result.kept.collect()) == [1, 20]
    assert [row.id for row in result.rejected.collect()] == [4]
    assert result.kept.columns == ["id", "body", "more"]
    result.unpersist()


def test_empty_table(spark):
    frame = spark.createDataFrame([], "id string, text string")
    result = las.dedup(frame)
    assert result.removed.count() == result.kept.count() == result.clusters.count() == 0


def test_invalid_arguments_are_refused(spark):
    rows = [("b", "one"), ("a", "two"), ("b", "three")]
    frame = spark.createDataFrame(rows, "id string, text string")
    with pytest.raises(la.InputError, match="'b'"):
        las.dedup(frame)
    with pytest.raises(la.SettingError, match="0"):
        las.dedup(frame, threshold=0)
    with pytest.raises(la.SettingError, match="distance"):
        las.dedup(frame, method="minhash", distance=3)
    with pytest.raises(la.SettingError, match="most"):
        las.dedup(frame, keep="most:x")
    with pytest.raises(la.SettingError, match="keep"):
        las.pairs(frame, keep="first")
    for settings, what in [
        ({"keep_count": 2}, "keep_count is not available on Spark"),
        ({"drop_all": True}, "drop_all is not available on Spark"),
        ({"sources": "site"}, "sources is not available on Spark"),
        ({"words": 3}, "dedup has no argument words"),
        ({"resume": True}, "dedup has no argument resume: only the command goes on"),
        ({"filter_memory": "400M"}, "filter_memory is '400M': give a whole number"),
        ({"component_memory": 0}, "component_memory is 0: give a whole number from 1"),
        ({"links_on_driver": -1}, "links_on_driver is -1: give a whole number from 0"),
        ({"copies": "n", "against": frame}, "cannot be combined with against"),
        ({"copies": "text"}, "already has a field `text`"),
        ({"copies": "n", "weight": "n"}, "copies and weight are both 'n'"),
        ({"weight": "n", "weight_by": {2: 1.0}}, "begins at 2 copies"),
    ]:
        with pytest.raises(la.LookalikeError, match=re.escape(what)):
            las.dedup(frame, **settings)
    for call in (las.dedup, las.pairs, las.passages, las.fingerprint, lambda data: las.decontaminate(data, "none")):
        with pytest.raises(TypeError, match="the data is of the type dict: give a DataFrame of Spark"):
            call({"text": ["x"]})
    for id, what in ((None, "null"), ("", "empty")):
        with pytest.raises(Exception, match=f"the id of a row is {what}"):
            las.dedup(spark.createDataFrame([(id, "x")], "id string, text string"))
    frame = spark.createDataFrame([("a", "x", 1, [1])], "id string, text string, n int, list array<int>")
    for settings, what in [
        ({"text": "body"}, "no column 'body' among 'id', 'text', 'n', 'list'"),
        ({"id": "key"}, "no column 'key'"),
        ({"keep": "max:date"}, "no column 'date'"),
        ({"keep": "longest,max:date"}, "no column 'date'"),
        ({"within": "site"}, "no column 'site'"),
        ({"features": "words"}, "no column 'words'"),
        ({"text": "n"}, "'n' is of the type int"),
        ({"text": ["text", "n"]}, "'n' is of the type int"),
        ({"id": "list"}, "'list' is of the type array<int>"),
        ({"within": "list"}, "'list' is of the type array<int>"),
        ({"against": spark.createDataFrame([("a",)], "id string")}, "no column 'text' among 'id'"),
    ]:
        with pytest.raises(la.InputError, match=what):
            las.dedup(frame, **settings)
    with pytest.raises(la.SettingError, match="window"):
        las.dedup(frame, window="2d", time="n")
    known = spark.createDataFrame([("b", "one"), ("b", "two")], "id string, text string")
    with pytest.raises(la.InputError, match="of against occur in more than one row, for example 'b'"):
        las.dedup(frame.select("id", "text"), against=known)


def test_components_stay_whole_beyond_the_memory_of_small_ones(spark, tmp_path):
    """More than 32 MB of texts in a partition, after which components are decided, and members far apart."""
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        source = random.Random(3)
        texts = [" ".join(f"w{source.randrange(1_000_000)}" for _ in range(6000)) for _ in range(500)]
        texts += [f"{text} more" for text in texts]
        table = pa.table({"id": [f"{at:04}" for at in range(1000)], "text": texts})
        assert sum(map(len, texts)) > 40_000_000
        result = las.dedup(spark.createDataFrame(table), checkpoint=str(tmp_path))
        assert sorted(row.id for row in result.removed.collect()) == [f"{at:04}" for at in range(500, 1000)]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "3")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_component_beyond_the_memory_goes_to_a_file(spark, tmp_path, way):
    """A chain of 1,500 texts is one component, and takes its memory without the texts, which are 285 bytes each."""
    table = chained(1500)
    _, alone = check(spark, table, checkpoint=str(tmp_path), component_memory=1500 * 600, **way)
    assert len(alone.removed) > 500
    frame = spark.createDataFrame(table)
    found = las.pairs(frame, checkpoint=str(tmp_path), component_memory=1500 * 600, **way).toArrow()
    assert rows_of(found) == rows_of(la.pairs(by_id(table), id="id", distinct=True).pairs.select(found.column_names))


def test_too_large_component_is_refused(spark):
    text = "one two three four five six seven eight nine ten"
    frame = spark.createDataFrame([(str(at), f"{text} {at}") for at in range(50)], "id string, text string")
    assert las.dedup(frame, component_memory=50 * 600).removed.count() == 49
    with pytest.raises(Exception, match="first 34 texts take 20400 beside the texts themselves"):
        las.dedup(frame, component_memory=20_000).removed.count()


def component_of(texts):
    """The rows of `collect` for one component, whose links are given."""
    import struct

    job = Job.of("default", None, "id")
    rows = pa.record_batch({"id": [f"{at:04}" for at in range(len(texts))], "text": texts})
    (named,) = _steps.candidate_texts(job, _Everything(), None)([rows])
    nodes = named.column("node").to_pylist()
    links = b"".join(struct.pack("<2q", nodes[0], node) for node in nodes[1:])
    return job, list(_steps.collect(job, _engine.members([links], []))([rows]))


class _Everything:
    """A table that has every key."""

    def destinations(self, keys):
        return numpy.zeros(len(keys), numpy.int32), numpy.ones(len(keys), bool)


def test_texts_beyond_the_memory_go_to_the_directories_of_spark(tmp_path, monkeypatch):
    job, rows = component_of([f"one two three four five six seven eight nine {at}" for at in range(20)])
    expected = [batch.to_pylist() for batch in _steps.settle(job)(rows)]
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / 'none'},{tmp_path}")
    settle = _steps.settle(job, limit=20 * 600)
    assert [batch.to_pylist() for batch in settle(rows)] == expected
    assert not list(tmp_path.iterdir())
    (tmp_path / "full").symlink_to("/proc")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "full"))
    with pytest.raises(la.LookalikeError, match="cannot create a temporary file in .*full.*spark.local.dir"):
        list(settle(rows))


def test_parquet_round_trip_with_checkpoints(spark, tmp_path):
    table = generated(300, 30)
    spark.createDataFrame(table).write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in"))
    result, alone = check(spark, table, frame=frame, checkpoint=str(tmp_path / "checkpoints"))
    result.kept.write.parquet(str(tmp_path / "out"))
    kept = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows_of(kept.select(["id", "text"])) == rows_of(alone.kept.select(["id", "text"]))
    assert any((tmp_path / "checkpoints").iterdir())


def test_examples_of_the_docstrings(spark):
    ran = [doctest.testmod(module, extraglobs={"spark": spark}) for module in (las, _calls, _results)]
    assert sum(it.failed for it in ran) == 0 and sum(it.attempted for it in ran) > 15
