"""The Python package of lookalike over one file, for bench/reproduce. Usage: reproduce_wheel.py IN.jsonl REMOVED.jsonl

Reading the file and writing the answer count, as they do for the other tools.
"""

import json
import sys

import lookalike as la
import pyarrow.json

import common

if __name__ == "__main__":
    path, removed_path = sys.argv[1:]
    clock = common.Clock()
    result = la.dedup(pyarrow.json.read_json(path), recipe="words-3", threshold=0.8, forms="off")
    with open(removed_path, "w") as removed:
        for row in result.removed.to_pylist():
            removed.write(json.dumps({"id": row["id"], "kept": row["kept"]}) + "\n")
    seconds = clock.seconds()
    documents = result.kept.num_rows + result.removed.num_rows
    common.answer("lookalike", path, documents, result.kept.num_rows, seconds, 1, peak_bytes=common.peak_bytes())
