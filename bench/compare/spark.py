"""Spark beside one machine: `lookalike.spark` on a local cluster and `lookalike dedup`, on one Parquet file.

    spark.py DATA LOOKALIKE [--rounds 6]

DATA is a folder with en_docs.jsonl.zst, zh_docs.jsonl.zst and zh_short.tsv.zst, LOOKALIKE the command,
built for release. The package that is installed must be, too. Writes bench/results/spark.json.

The cluster is two executors with one core each, and batches of a thousand rows, as docs/spark.md advises.
Its start, and first runs over a few documents that start the Python workers and warm the Java machines, are
not counted; reading Parquet and writing the kept rows as Parquet is, on both sides. Each answer is compared:
the same documents must be removed for the same ones.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]


def documents(path, limit=None):
    """A table of id and text."""
    ids, texts = [], []
    rest = b""
    with pa.input_stream(str(path), compression="zstd") as stream:
        while chunk := stream.read(1 << 24):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if path.name.endswith(".tsv.zst"):
                    row = line.decode().split("\t")
                    if row[0] == "id":
                        continue
                    ids.append(row[0])
                    texts.append(row[3])
                elif line:
                    row = json.loads(line)
                    ids.append(row["id"])
                    texts.append(row["text"])
            if limit and len(ids) >= limit:
                break
    end = limit or len(ids)
    return pa.table({"id": ids[:end], "text": texts[:end]})


def written(table, path):
    """The documents in the order of their ids, in 2 files: one for each core."""
    path.mkdir()
    ids = table.column("id").to_pylist()
    table = table.take(sorted(range(len(ids)), key=lambda row: ids[row].encode()))
    rows = -(-len(ids) // 2)
    for at in range(2):
        pq.write_table(table.slice(at * rows, rows), path / f"{at}.parquet")
    return table


def alone(command, source, out, rounds):
    """Seconds of the command, the best of some rounds, and what it removed."""
    removed = out / "removed.parquet"
    best = None
    for _ in range(rounds):
        begun = time.perf_counter()
        arguments = [command, "dedup", source, "-o", out / "kept.parquet", "--removed", removed, "--threads", "2"]
        subprocess.run(arguments, check=True, capture_output=True)
        seconds = time.perf_counter() - begun
        best = min(best or seconds, seconds)
    return best, rows_of(pq.read_table(removed))


def rows_of(table):
    columns = ("id", "kept", "similarity", "method")
    return {row["id"]: tuple(row[name] for name in columns) for row in table.select(columns).to_pylist()}


def session(work):
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_WORKER_DIR"] = str(work / "executors")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.executor.memory": "3g",
        "spark.driver.memory": "3g",
    }
    builder = SparkSession.builder.master("local-cluster[2,1,3072]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def distributed(spark, source, out, rounds):
    """Seconds of Spark, the best of some rounds, seconds until what is removed is known, and that."""
    from lookalike import spark as las

    best = (1e9, 1e9)
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        begun = time.perf_counter()
        result = las.dedup(spark.read.parquet(str(source)))
        decided = time.perf_counter() - begun
        result.kept.write.parquet(str(out))
        best = min(best, (time.perf_counter() - begun, decided))
        removed = result.removed.toArrow()
        kept = spark.read.parquet(str(out)).count()
        result.unpersist()
    return *best, rows_of(removed), kept


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("lookalike", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    corpora = [("zh_short", rows) for rows in (10_000, 100_000, 1_000_000)]
    corpora += [("en_docs", None), ("zh_docs", None)]
    measured = []
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        spark = session(work)
        for name, limit in corpora:
            path = given.data / f"{name}.{'tsv' if name == 'zh_short' else 'jsonl'}.zst"
            source = work / f"{name}-{limit}"
            table = written(documents(path, limit), source)
            if not measured:
                distributed(spark, source / "0.parquet", work / "warm", 4)
            seconds, expected = alone(given.lookalike, source, work, given.rounds)
            by_spark, decided, removed, kept = distributed(spark, source, work / "kept", given.rounds)
            row = {
                "corpus": name,
                "documents": table.num_rows,
                "megabytes": table.nbytes / 1e6,
                "removed": len(removed),
                "identical": removed == expected and kept == table.num_rows - len(removed),
                "command_seconds": seconds,
                "spark_decided_seconds": decided,
                "spark_seconds": by_spark,
                "share": seconds / by_spark,
                "documents_per_second": table.num_rows / by_spark,
            }
            measured.append(row)
            print(json.dumps(row), flush=True)
        spark.stop()
    result = {"machine": machine(), "measured": measured}
    path = ROOT / "bench" / "results" / "spark.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    if not all(row["identical"] for row in measured):
        sys.exit("an answer differs")


def machine():
    lines = list(open("/proc/cpuinfo"))
    model = [line for line in lines if line.startswith("model name")]
    flags = {flag for line in lines if line.startswith("flags") for flag in line.split()}
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model[0].split(":")[1].strip() if model else platform.machine(),
        "cores": os.cpu_count(),
        "instructions": "avx512" if "avx512bw" in flags else "avx2" if "avx2" in flags else "plain",
        "memory_gib": round(pages / 2**30, 1),
    }


if __name__ == "__main__":
    main()
