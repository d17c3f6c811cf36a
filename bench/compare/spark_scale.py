"""Bytes, jobs, time and driver memory of `lookalike.spark.dedup`, by Spark's own metrics, as JSON lines.

    spark_scale.py DATA CORPUS ROWS [--master local-cluster[2,1,2048]] [--links N] [--rounds N] [--check] [--write]

DATA is a folder with en_docs.jsonl.zst, zh_docs.jsonl.zst and zh_short.tsv.zst. CORPUS is `en_docs`, `zh_docs`,
`zh_short`, or one that is made: `titles` (short texts of which half repeat), `even`, `skew` and `copies` (long texts, all
different, or with a tenth that shares one bucket, or with a tenth that is one text), `chain` (each text similar to the
next one alone, with ids in no order). The package that is installed must be built for release if the seconds matter.

`--links` is `links_on_driver`: 0 keeps links, members and components in tables. A line tells the bytes that each stage
wrote for a shuffle, after compression and by document, the seconds of each stage, the number of jobs, and the memory of
the driver after a collection. `--check` compares what is removed with `lookalike.dedup` over the same rows. `--write`
puts the best of the rounds into bench/results/spark_scale.json, in the place of an earlier one of the same run.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
import urllib.request
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lookalike

sys.path.insert(0, str(Path(__file__).resolve().parent))
from spark import ROOT, documents, machine, rows_of

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
            texts = [" ".join(f"t{(at // 2 * 2654435761 + k * 40503) % 1_000_000_007}" for k in range(6)) for at in numbers]
        elif kind == "chain":
            texts = [" ".join(f"c{word}" for word in range(3 * at, 3 * at + 40)) for at in numbers]
        else:
            own = {"even": 150, "skew": 70, "copies": 0}[kind]
            texts = [
                " ".join(template[own:] + [word() for _ in range(own)] if at % 10 == 0 else [word() for _ in range(150)])
                for at in numbers
            ]
        # A factor without a common divisor with 10^10 makes other numbers of them, in no order.
        order = 2_654_435_761 if kind == "chain" else 1
        yield pa.table({"id": [f"{at * order % 10**10:010}" for at in numbers], "text": texts})


def written(given, folder):
    """Writes the input as Parquet files, two at least, and returns the number of rows."""
    count = 0
    if given.corpus in ("titles", "chain", "even", "skew", "copies"):
        tables = made(given.corpus, given.rows)
    else:
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


def _seconds_of(stage):
    begun, ended = (
        datetime.strptime(stage[name], "%Y-%m-%dT%H:%M:%S.%fGMT") for name in ("submissionTime", "completionTime")
    )
    return (ended - begun).total_seconds()


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
        """Bytes that each stage wrote for a shuffle and seconds that it took, by its number."""
        done = (stage for stage in self.read("stages") if stage["status"] == "COMPLETE")
        return {stage["stageId"]: (stage["shuffleWriteBytes"], _seconds_of(stage)) for stage in done}

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
    by_stage = [told for stage, told in sorted(metrics.stages().items()) if stage not in stages]
    told = {
        "corpus": given.corpus,
        "documents": rows,
        "links_on_driver": given.links,
        "master": given.master,
        "removed": result.removed.count(),
        "decided_seconds": round(decided, 2),
        "seconds": round(seconds, 2),
        "jobs": metrics.jobs() - jobs,
        "shuffled_bytes_a_document": round(sum(size for size, _ in by_stage) / rows),
        "by_stage": [round(size / rows, 1) for size, _ in by_stage if size],
        "stage_seconds": [round(seconds, 2) for _, seconds in by_stage],
        "driver_heap_megabytes": round(metrics.heap() / 1e6),
    }
    if given.check:
        table = pq.read_table(source)
        alone = lookalike.dedup(table.sort_by("id"), id="id", threads=2, forms="off")
        told["identical"] = rows_of(result.removed.toArrow()) == rows_of(alone.removed)
    result.unpersist()
    return told


def write(told):
    """Puts a run into the results, in the place of an earlier one of the same kind."""
    name = lambda run: tuple(run[field] for field in ("corpus", "documents", "links_on_driver", "master"))
    path = ROOT / "bench" / "results" / "spark_scale.json"
    measured = json.loads(path.read_text())["measured"] if path.exists() else []
    measured = [run for run in measured if name(run) != name(told)] + [told]
    measured.sort(key=lambda run: (run["corpus"], run["documents"], run["links_on_driver"] is not None, run["master"]))
    path.write_text(json.dumps({"machine": machine(), "measured": measured}, indent=1, sort_keys=True) + "\n")


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
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
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
        runs = []
        for _ in range(given.rounds):
            runs.append(measured(spark, given, source, rows, metrics))
            print(json.dumps(runs[-1]), flush=True)
        spark.stop()
    if not all(run.get("identical", True) for run in runs):
        sys.exit("an answer differs")
    if given.write:
        write(min(runs, key=lambda run: run["seconds"]))


if __name__ == "__main__":
    main()
