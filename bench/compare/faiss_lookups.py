"""Look-ups among 10 million 64-bit fingerprints within distance 3: faiss beside lookalike.

All get the same evenly distributed fingerprints and the same queries, stored fingerprints with up to
three flipped bits, and one thread. faiss answers from memory, as `lookalike-bench hamming --words` does
under the default plan and under the fastest; the time of `lookalike search` is without opening the
library, so reading the queries and writing the matches count. Every answer is checked: the planted
fingerprint must be found, and on a sample the matches must be those of the exhaustive index. Writes
bench/results/faiss.json.
"""

import argparse
import json
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path

import faiss
import numpy as np

from compare import ROOT, machine

DISTANCE = 3
RESULTS_OF_WORDS = ROOT / "bench/results/hamming_given.json"


def planted(codes, count, random):
    """Rows of stored codes, and the codes with 0 to 3 flipped bits."""
    rows = random.integers(len(codes), size=count)
    queries = codes[rows].copy()
    for flips in range(1, DISTANCE + 1):
        bits = np.uint64(1) << random.integers(64, size=count, dtype=np.uint64)
        queries ^= np.where(np.arange(count) % (DISTANCE + 1) >= flips, bits, np.uint64(0))
    return rows, queries


def as_bytes(codes):
    return codes.view(np.uint8).reshape(len(codes), 8)


def measure_faiss(index, codes, rows, queries):
    """Microseconds for a look-up, and the matches of every query."""
    limits, _, matches = index.range_search(as_bytes(queries[:10]), DISTANCE + 1)
    start = time.perf_counter()
    limits, _, matches = index.range_search(as_bytes(queries), DISTANCE + 1)
    seconds = time.perf_counter() - start
    found = [set(matches[limits[at]:limits[at + 1]].tolist()) for at in range(len(queries))]
    assert all(row in some for row, some in zip(rows.tolist(), found))
    return seconds / len(queries) * 1e6, found


def multi_hash(codes):
    index = faiss.IndexBinaryMultiHash(64, 4, 16)
    index.add(as_bytes(codes))
    return index


def flat(codes):
    index = faiss.IndexBinaryFlat(64)
    index.add(as_bytes(codes))
    return index


def write_codes(path, codes):
    with open(path, "w") as file:
        for part in np.array_split(codes, max(1, len(codes) // 1_000_000)):
            file.write("\n".join(f"{code:016x}" for code in part.tolist()) + "\n")


def measure_lookalike(binary, folder, codes, rows, queries):
    """Microseconds for a look-up by the command, and the matches of every query."""
    stored, asked, found = folder / "codes.txt", folder / "queries.txt", folder / "found.tsv"
    write_codes(stored, codes)
    write_codes(asked, queries)
    library = folder / "library"
    subprocess.run([binary, "index", "build", library, stored, "--fingerprints", "--quiet"], check=True)
    best = None
    for _ in range(3):
        command = [binary, "search", library, asked, "--fingerprints", "-o", found]
        done = subprocess.run([*command, "--threads", "1", "--json", "--quiet"],
                              stdout=subprocess.PIPE, check=True)
        report = json.loads(done.stdout)
        seconds = report["seconds"] - report["opening_seconds"]
        best = min(seconds, best or seconds)
    matches = [set() for _ in queries]
    with open(found) as table:
        next(table)
        for line in table:
            query, match, _ = line.split("\t")
            matches[int(query) - 1].add(int(match) - 1)
    assert all(row in some for row, some in zip(rows.tolist(), matches))
    return best / len(queries) * 1e6, matches


def measure_lookups(bench, folder, codes, queries):
    """Plans and microseconds for a look-up in memory."""
    stored, asked = folder / "codes", folder / "queries"
    codes.astype("<u8").tofile(stored)
    queries.astype("<u8").tofile(asked)
    subprocess.run([bench, "hamming", "--words", stored, asked, "--busy"], cwd=ROOT, check=True)
    measured = json.loads(RESULTS_OF_WORDS.read_text())["measured"]
    RESULTS_OF_WORDS.unlink()
    return [(row["plan"], row["batched_microseconds"]) for row in measured]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", default=10_000_000, type=int)
    parser.add_argument("--lookalike", default=ROOT / "target/release/lookalike", type=Path)
    parser.add_argument("--bench", default=ROOT / "target/release/lookalike-bench", type=Path)
    parser.add_argument("-o", "--output", default=ROOT / "bench/results/faiss.json", type=Path)
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    random = np.random.default_rng(1)
    codes = random.integers(1 << 64, size=arguments.count, dtype=np.uint64)
    rows, queries = planted(codes, 1_000_000, random)

    with tempfile.TemporaryDirectory() as name:
        plans = measure_lookups(arguments.bench, Path(name), codes, queries)
        ours, exact = measure_lookalike(arguments.lookalike, Path(name), codes, rows, queries)
    runs = [{"tool": f"lookalike in memory: {plan}", "queries": len(queries), "microseconds": round(time, 3)}
            for plan, time in plans]
    runs.append({"tool": "lookalike search", "queries": len(queries), "microseconds": round(ours, 3)})
    fastest = min(time for _, time in plans)
    for tool, make, count in (("faiss IndexBinaryMultiHash(64, 4, 16)", multi_hash, 20_000),
                              ("faiss IndexBinaryFlat", flat, 300)):
        microseconds, found = measure_faiss(make(codes), codes, rows[:count], queries[:count])
        missed = sum(len(all_ - some) for all_, some in zip(exact, found))
        false = sum(len(some - all_) for all_, some in zip(exact, found))
        assert tool != "faiss IndexBinaryFlat" or missed == false == 0
        runs.append({"tool": tool, "queries": count, "microseconds": round(microseconds, 3),
                     "missed": missed, "lookups_are_faster_by": round(microseconds / fastest, 1),
                     "command_is_faster_by": round(microseconds / ours, 1)})
    result = {"date": date.today().isoformat(), "machine": machine(), "faiss": faiss.__version__,
              "fingerprints": arguments.count, "bits": 64, "distance": DISTANCE, "runs": runs}
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    for run in runs:
        print(json.dumps(run))


if __name__ == "__main__":
    main()
