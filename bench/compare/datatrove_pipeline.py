"""`datatrove`: its four MinHash stages. Usage: datatrove_pipeline.py IN.jsonl OUT.jsonl REMOVED.jsonl [WORKERS]

14 buckets of 8 hashes, word 5-grams, English tokeniser: the tool's own defaults. Candidates are
neither verified nor estimated; clusters are closed transitively and one document of each is kept.
The clock covers the four stages. Splitting the input, one part per worker, is done before it.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("DATATROVE_COLORIZE_LOGS", "0")

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
from datatrove.utils.typeshelper import Languages
from loguru import logger

import common

BUCKETS, ROWS, NGRAM = 14, 8, 5


def split(path, folder, parts):
    """Writes consecutive parts of about equal bytes, so that the order of files is the order of rows."""
    rows = Path(path).read_bytes().splitlines(keepends=True)
    total, written, part = sum(map(len, rows)), 0, 0
    outputs = [open(folder / f"{number:05d}.jsonl", "wb") for number in range(parts)]
    for row in rows:
        outputs[min(part, parts - 1)].write(row)
        written += len(row)
        part = written * parts // total
    for output in outputs:
        output.close()
    return [json.loads(row)["id"] for row in rows]


def run_stages(folder, workers):
    config = MinhashConfig(n_grams=NGRAM, num_buckets=BUCKETS, hashes_per_bucket=ROWS)

    def reader():
        return JsonlReader(str(folder / "in"), text_key="text", id_key="id", compression=None)

    def stage(name, pipeline, tasks, workers):
        LocalPipelineExecutor(
            pipeline=pipeline,
            tasks=tasks,
            workers=workers,
            logging_dir=str(folder / "logs" / name),
            skip_completed=False,
        ).run()

    signatures, buckets, clusters = (str(folder / name) for name in ("sig", "buckets", "clusters"))
    stage(
        "signatures",
        [reader(), MinhashDedupSignature(signatures, config, language=Languages.english)],
        workers,
        workers,
    )
    stage("buckets", [MinhashDedupBuckets(signatures, buckets, config=config)], BUCKETS, workers)
    stage("clusters", [MinhashDedupCluster(buckets, clusters, config=config)], 1, 1)
    writer = JsonlWriter(str(folder / "out"), compression=None)
    stage("filter", [reader(), MinhashDedupFilter(clusters), writer], workers, workers)


if __name__ == "__main__":
    path, out_path, removed_path = sys.argv[1:4]
    workers = int(sys.argv[4]) if len(sys.argv) > 4 else 2
    logger.remove()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        ids = split(path, folder / "in", workers)
        clock = common.Clock()
        run_stages(folder, workers)
        seconds = clock.seconds()
        kept = set()
        with open(out_path, "wb") as out:
            for part in sorted((folder / "out").glob("*.jsonl")):
                for row in part.read_bytes().splitlines(keepends=True):
                    kept.add(json.loads(row)["id"])
                    out.write(row)
    with open(removed_path, "w") as removed:
        for identity in ids:
            if identity not in kept:
                removed.write(json.dumps({"id": identity, "kept": None}, ensure_ascii=False) + "\n")
    settings = {"buckets": BUCKETS, "rows": ROWS, "ngram": NGRAM}
    common.answer(
        "datatrove", path, len(ids), len(kept), seconds, workers, check="none", settings=settings
    )
