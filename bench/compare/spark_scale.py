"""Bytes, jobs, time and driver memory of `lookalike.spark.dedup`, by Spark's own metrics, as JSON lines.

    spark_scale.py DATA CORPUS ROWS [--master local-cluster[2,1,2048]] [--links N] [--again]

DATA is a folder with en_docs.jsonl.zst, zh_docs.jsonl.zst and zh_short.tsv.zst. CORPUS is `en_docs`, `zh_docs`,
`zh_short`, or one that is made: `titles` (short texts of which half repeat), `even` and `skew` (long texts of which a
tenth shares one bucket), `chain` (each text similar to the next one alone). The package that is installed must be
built for release if the seconds matter.

`--links` is `links_on_driver`: 0 keeps links, members and components in tables. A line tells the bytes that each stage
wrote for a shuffle, after compression and by document, the number of jobs, and the memory of the driver after a
collection.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent))

#: Rows of one file of an input.
FILE_ROWS = 500_000


def made(kind, rows):
    """Yields tables of id and text."""
    source = random.Random(7)
    word = lambda: f"w{source.randrange(200_000)}"
    template = [word() for _ in range(150)]
    for start in range(0, rows, FILE_ROWS):
        numbers = range(start, min(start + FILE_ROWS, rows))
        if kind == "titles":
            texts = [" ".join(f"t{(at // 2 * 2654435761 + k * 40503) % 1_000_003}" for k in range(6)) for at in numbers]
        elif kind == "chain":
            texts = [" ".join(f"c{word}" for word in range(at, at + 40)) for at in numbers]
        else:
            shared = lambda at: kind == "skew" and at % 10 == 0
            texts = [
                " ".join(template[70:] + [word() for _ in range(70)] if shared(at) else [word() for _ in range(150)])
                for at in numbers
            ]
        yield pa.table({"id": [f"{at:010}" for at in numbers], "text": texts})


def written(given, folder):
    """Writes the input as Parquet files, two at least, and returns the number of rows."""
    count = 0
    if given.corpus in ("titles", "chain", "even", "skew"):
        tables = made(given.corpus, given.rows)
    else:
        from spark import documents

        ending = "tsv" if given.corpus == "zh_short" else "jsonl"
        tables = [documents(given.data / f"{given.corpus}.{ending}.zst", given.rows)]
    for number, table in enumerate(tables):
        half = -(-table.num_rows // 2)
        for at in range(2):
            pq.write_table(table.slice(at * half, half), folder / f"{number}-{at}.parquet")
        count += table.num_rows
    return count


def session(given, work):
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(work / "executors")
    builder = SparkSession.builder.master(given.master)
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(given.partitions),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.executor.memory": given.memory,
        "spark.driver.memory": given.memory,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Metrics:
    """What Spark tells of a session."""

    def __init__(self, spark):
        context = spark.sparkContext
        self.jvm = context._jvm
        self.url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"

    def read(self, what):
        with urllib.request.urlopen(f"{self.url}/{what}") as answer:
            return json.load(answer)

    def stages(self):
        """Bytes that each stage wrote for a shuffle, by its number."""
        return {stage["stageId"]: stage["shuffleWriteBytes"] for stage in self.read("stages")}

    def jobs(self):
        return len(self.read("jobs"))

    def heap(self):
        """Bytes of the driver's heap after collections."""
        for _ in range(3):
            self.jvm.System.gc()
            time.sleep(0.3)
        memory = self.jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
        return memory.getHeapMemoryUsage().getUsed()


def measured(spark, given, source, rows, metrics):
    from lookalike import spark as las

    settings = {} if given.links is None else {"links_on_driver": given.links}
    stages, jobs = metrics.stages(), metrics.jobs()
    begun = time.perf_counter()
    result = las.dedup(spark.read.parquet(str(source)), **settings)
    decided = time.perf_counter() - begun
    result.kept.write.mode("overwrite").parquet(str(source.parent / "kept"))
    seconds = time.perf_counter() - begun
    time.sleep(1)
    by_stage = {stage: size for stage, size in metrics.stages().items() if stage not in stages and size}
    told = {
        "corpus": given.corpus,
        "documents": rows,
        "links_on_driver": given.links,
        "master": given.master,
        "removed": result.removed.count(),
        "decided_seconds": round(decided, 2),
        "seconds": round(seconds, 2),
        "jobs": metrics.jobs() - jobs,
        "shuffled_bytes_a_document": round(sum(by_stage.values()) / rows),
        "by_stage": [round(size / rows, 1) for _, size in sorted(by_stage.items())],
        "driver_heap_megabytes": round(metrics.heap() / 1e6),
    }
    result.unpersist()
    return told


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("corpus")
    parser.add_argument("rows", type=int)
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--links", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        source = work / "in"
        source.mkdir()
        rows = written(given, source)
        spark = session(given, work)
        metrics = Metrics(spark)
        # Starts the Python workers.
        spark.read.parquet(str(source / "0-0.parquet")).limit(10).mapInArrow(lambda it: it, "id string, text string").count()
        for _ in range(given.rounds):
            print(json.dumps(measured(spark, given, source, rows, metrics)), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
