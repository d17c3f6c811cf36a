import numpy
import pyarrow as pa
import pytest
from alike import by_id, check, removed_of, rows_of
from corpora import generated, real, skewed

import lookalike as la
from lookalike import spark as las

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


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_result_is_that_of_one_machine(spark, rule):
    for rows, length in [(400, 20), (300, 150)]:
        check(spark, generated(rows, length), **rule)


@pytest.mark.parametrize("keep", ["first", "last", "longest", "max:weight", "min:weight", "min:name", "max:name"])
def test_the_order_is_that_of_one_machine(spark, keep):
    check(spark, generated(300, 30, seed=2), threshold=0.6, keep=keep)


def test_by_id_is_what_min_id_says_on_one_machine(spark):
    table = generated(300, 30, seed=3)
    alone = la.dedup(table, id="id", keep="min:id")
    for keep in (None, "min:id"):
        found = las.dedup(spark.createDataFrame(table), keep=keep).removed.toArrow()
        assert removed_of(found.to_pylist()) == removed_of(alone.removed.to_pylist())


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


@pytest.mark.parametrize("own", [2, 70])
def test_a_third_of_all_rows_shares_a_band(spark, own):
    """Similar ones cost a comparison each; others meet again by their rarest features."""
    check(spark, skewed(16_000, 150, own))


def test_a_third_of_all_rows_has_one_text(spark):
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


def test_components_are_those_of_a_plain_union(spark, tmp_path):
    job = las.Job.of("default", None, "id")
    frame = spark.createDataFrame([("a", "b")], "id string, text string")
    run = las._Run(frame, "text", "id", job, str(tmp_path), 0)
    chain = [(at + 1, at) for at in range(40)]
    star = [(100, at) for at in range(101, 130)]
    pairs = chain + star + [(300, -5), (-5, 299), (7, 8), (-9, -8)]
    labels = run.components(spark.createDataFrame(pairs, "a bigint, b bigint")).collect()
    expected = {at: 0 for at in range(41)} | {at: 100 for at in range(100, 130)}
    expected |= {300: -5, 299: -5, -5: -5, -9: -9, -8: -9}
    assert {row.node: row.component for row in labels} == expected
    assert len(labels) == len(expected)


def test_tables_beside(spark):
    table = generated(300, 30)
    result, alone = check(spark, table, threshold=0.6)
    assert rows_of(result.clusters.toArrow()) == rows_of(alone.clusters)
    assert rows_of(result.pairs.toArrow()) == rows_of(alone.pairs)
    frame = spark.createDataFrame(table)
    assert rows_of(las.cluster(frame, threshold=0.6).toArrow()) == rows_of(alone.clusters)
    found = las.pairs(frame, threshold=0.6).toArrow()
    assert rows_of(found) == rows_of(la.pairs(by_id(table), id="id", threshold=0.6).pairs)


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


def test_an_empty_table(spark):
    frame = spark.createDataFrame([], "id string, text string")
    result = las.dedup(frame)
    assert result.removed.count() == result.kept.count() == result.clusters.count() == 0


def test_refusals(spark):
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
    with pytest.raises(Exception, match="id"):
        las.dedup(spark.createDataFrame([(None, "x")], "id string, text string")).removed.collect()


def test_parquet_in_and_out_with_checkpoints(spark, tmp_path):
    table = generated(300, 30)
    spark.createDataFrame(table).write.parquet(str(tmp_path / "in"))
    frame = spark.read.parquet(str(tmp_path / "in"))
    result, alone = check(spark, table, frame=frame, checkpoint=str(tmp_path / "checkpoints"))
    result.kept.write.parquet(str(tmp_path / "out"))
    kept = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert rows_of(kept.select(["id", "text"])) == rows_of(alone.kept.select(["id", "text"]))
    assert any((tmp_path / "checkpoints").iterdir())
