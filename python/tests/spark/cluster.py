"""Spark itself, with executors in processes of their own: for `python/test-spark`, not for every run."""

import os
import sys

import pyarrow as pa
import pytest
from alike import check, check_audit_of_all, check_pairs, check_passages, frame_from
from corpora import chained, copied, generated, known_and_new, of_the_repository, real, repeated, skewed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two executors with one core each. Everything listens on this machine alone."""
    pyspark = pytest.importorskip("pyspark")
    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(tmp_path_factory.mktemp("work"))
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "4",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


#: Small runs are linked by the driver, others by tasks.
WAYS = [{}, {"links_on_driver": 2000}]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("rule", [{}, {"threshold": 0.6, "keep": "max:weight"}, {"method": "simhash"}], ids=str)
def test_result_equals_one_machine(cluster, rule, way):
    check(cluster, generated(400, 60), **rule, **way)


#: Links and components in tables, with the destinations of all nodes in every task and without them.
TABLES = [{"links_on_driver": 0}, {"links_on_driver": 0, "filter_memory": 8}]


@pytest.mark.parametrize("way", [*WAYS, *TABLES], ids=str)
def test_within_against_and_features(cluster, way):
    table = generated(500, 30, seed=4)
    table = table.append_column("site", pa.array([at % 3 for at in range(500)]))
    words = [text.lower().split() for text in table.column("text").to_pylist()]
    table = table.append_column("words", pa.array(words))
    known, table = table.slice(0, 150), table.slice(150)
    settings = {"within": "site", "features": "words", "threshold": 0.5}
    _, alone = check(cluster, table, against=known, **settings, **way)
    assert len(alone.removed) > 20


@pytest.mark.parametrize("way", [*WAYS, *TABLES], ids=str)
def test_pairs_with_reference_documents(cluster, way):
    assert len(check_pairs(cluster, *known_and_new(), within="site", threshold=0.6, **way)) > 50


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_audit_equals_one_machine(cluster, way):
    table = generated(220, 40, seed=6)
    rule = {"threshold": 0.6, "method": "simhash", "distance": 3}
    frame = frame_from(cluster, table).repartition(4)
    result, _ = check(cluster, table, frame=frame, audit=len(table), **rule, **way)
    told = check_audit_of_all(result.audit, table, **rule)
    assert told["recall"]["share"] < 1


@pytest.mark.parametrize("settings", [{}, {"max_documents": "none", "offsets": "bytes"}, {"within": "site"}], ids=str)
def test_passages_equal_one_machine(cluster, tmp_path, settings):
    _, alone = check_passages(cluster, copied(300), partitions=3, checkpoint=str(tmp_path), **settings)
    assert len(alone.passages) > 50


def test_passages_of_reference_documents(cluster):
    table = copied(300, seed=6)
    known, table = table.slice(0, 150), table.slice(150)
    _, alone = check_passages(cluster, table, against=known, max_documents=5)
    assert len(alone.passages) > 30


def test_real_texts_of_the_repository(cluster):
    check(cluster, of_the_repository(3000))
    _, alone = check_passages(cluster, of_the_repository(3000))
    assert len(alone.passages) > 100


@pytest.mark.parametrize(
    "name, rows", [("en_docs.jsonl.zst", 1500), ("zh_docs.jsonl.zst", 800), ("zh_short.tsv.zst", 20_000)]
)
def test_real_texts(cluster, name, rows):
    table = real(name, rows)
    if table is None:
        pytest.skip(f"{name} is not there")
    check(cluster, table)


@pytest.mark.parametrize("way", [{}, {"links_on_driver": 60_000}], ids=str)
def test_third_of_all_rows_shares_a_band(cluster, way):
    check(cluster, skewed(16_000, 150, 70), **way)


def test_components_by_joins(cluster, tmp_path):
    for way, checkpoint in zip(TABLES * 2, (None, None, str(tmp_path), str(tmp_path))):
        check(cluster, generated(300, 30), threshold=0.6, checkpoint=checkpoint, **way)


def test_a_text_is_shuffled_once(cluster, tmp_path, monkeypatch):
    """Also where no table is small enough to be broadcast."""
    from lookalike.spark import _dedup_run

    plans = []

    def note(*given, in_order=_dedup_run.in_order):
        ordered = in_order(*given)
        plans.append(ordered._jdf.queryExecution().executedPlan().toString())
        return ordered

    monkeypatch.setattr(_dedup_run, "in_order", note)
    broadcasts = {name: cluster.conf.get(name, None) for name in BROADCASTS}
    try:
        for name in BROADCASTS:
            cluster.conf.set(name, "-1")
        for way in TABLES:
            check(cluster, repeated(1000), checkpoint=str(tmp_path), **way)
    finally:
        for name, value in broadcasts.items():
            cluster.conf.unset(name) if value is None else cluster.conf.set(name, value)
    once, twice = plans
    shuffles = [line for line in once.splitlines() if "Exchange" in line]
    assert len(shuffles) == 1 and "hashpartitioning(destination" in shuffles[0]
    assert sum("Exchange" in line for line in twice.splitlines()) > 1


BROADCASTS = ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.autoBroadcastJoinThreshold")


@pytest.mark.parametrize("way", [{}, {"links_on_driver": 10_000}], ids=str)
def test_component_beyond_the_memory_goes_to_a_file(cluster, way):
    check(cluster, chained(3000), component_memory=3000 * 600, **way)


def jobs_of(cluster):
    return len(cluster.sparkContext.statusTracker().getJobIdsForGroup())


@pytest.mark.parametrize("way", [{}, {"links_on_driver": 10_000}], ids=str)
def test_chain_takes_few_jobs(cluster, way):
    before = jobs_of(cluster)
    _, alone = check(cluster, chained(3000), **way)
    assert len(alone.removed) > 1000
    assert jobs_of(cluster) - before <= 40


def test_more_removed_than_are_broadcast(cluster, monkeypatch):
    from lookalike.spark import _candidates, _results

    monkeypatch.setattr(_results, "_BROADCAST", 100)
    monkeypatch.setattr(_candidates, "_FEW_REPEATS", 100)
    for way in ({"links_on_driver": 2000}, *TABLES):
        _, alone = check(cluster, repeated(4000), **way)
        assert len(alone.removed) > 1800


def test_summary(cluster):
    result, alone = check(cluster, generated(400, 60), links_on_driver=2000)
    told = result.summary()
    assert told == {name: alone.summary[name] for name in told}


def again(frame, mark, deed):
    """The rows of a frame; whenever its second partition is read, ``deed`` gets the number of times."""

    def rows(batches):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 1:
            time = sum(1 for _ in os.scandir(mark))
            open(os.path.join(mark, f"{time}"), "x").close()
            deed(time)
        yield from batches

    return frame.mapInArrow(rows, frame.schema)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("fails", [{0}, {1, 2}, {0, 2}])
def test_repeated_stages_change_no_result(cluster, tmp_path, fails, way):
    table = generated(400, 60, seed=8)

    def deed(time):
        if time in fails:
            raise OSError("this attempt fails")

    frame = again(frame_from(cluster, table).repartition(4), str(tmp_path), deed)
    check(cluster, table, frame=frame, **way)
    assert len(list(tmp_path.iterdir())) > max(fails)


@pytest.mark.parametrize("fails", [{0}, {1}, {0, 1}])
def test_repeated_stages_change_no_passage(cluster, tmp_path, fails):
    table = copied(200, seed=8)

    def deed(time):
        if time in fails:
            raise OSError("this attempt fails")

    frame = again(frame_from(cluster, table).repartition(4), str(tmp_path), deed)
    check_passages(cluster, table, frame=frame)
    assert len(list(tmp_path.iterdir())) > max(fails)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("dies", [0, 1, 2])
def test_killed_executor_changes_no_result(cluster, tmp_path, dies, way):
    """While documents are sketched, collected, or kept ones read: what it held is made again."""
    table = generated(400, 60, seed=9)

    def deed(time):
        if time == dies:
            with open(f"/proc/{os.getppid()}/stat") as stat:
                executor = int(stat.read().rpartition(")")[2].split()[1])
            os.kill(executor, 9)

    frame = again(frame_from(cluster, table).repartition(4), str(tmp_path), deed)
    check(cluster, table, frame=frame, **way)
    assert len(list(tmp_path.iterdir())) > dies + 1
