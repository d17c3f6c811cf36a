"""Measures the Python package beside the command, datasketch and rensa; writes bench/results/python.json.

    python bench/compare/python.py DOCUMENTS.jsonl --command target/release/lookalike --memory MORE.tsv…

DOCUMENTS has an object with a `text` a line; memory is measured on it and on MORE, which may be TSV with a
header as well. The package must be a release build, importable, with
datasketch and rensa beside it. Each row checks its answer: verdicts against the command's, signatures
against datasketch's bit for bit, recall of pairs against exact Jaccard indexes.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from compare import ROOT, machine

import lookalike as la
from lookalike.compat.datasketch import MinHash


def seconds(work, repeat=3):
    """The median time of some runs, and the last result."""
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times), result


def dedup_row(path, table, megabytes, command, threads):
    """la.dedup over a table in memory, beside the command over the file."""
    with tempfile.TemporaryDirectory() as directory:
        out, removed = Path(directory) / "kept.jsonl", Path(directory) / "removed.jsonl"
        arguments = [command, "dedup", path, "-o", out, "--removed", removed, "-q", "--threads", str(threads)]
        theirs, _ = seconds(lambda: subprocess.run(arguments, check=True), 5)
        told = [json.loads(line) for line in removed.read_text().splitlines()]
    ours, found = seconds(lambda: la.dedup(table, threads=threads, forms="off"), 5)
    evidence = ("id", "kept", "similarity", "method", "threshold", "cluster", "row", "kept_row")
    told = [{name: row[name] for name in evidence} for row in told]
    assert found.removed.select(evidence).to_pylist() == told, "the verdicts differ"
    return {
        "what": f"`la.dedup` of a pyarrow table, {threads} threads",
        "beside": "`lookalike dedup` of the file, its output written",
        "documents": table.num_rows,
        "unit": "MB/s",
        "package": megabytes / ours,
        "other": megabytes / theirs,
        "ratio": theirs / ours,
        "note": f"the same {len(told)} removed",
    }


def texts_of(path):
    """The texts of a JSONL file, or of a TSV file with a header and no quotes."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        if path.suffix == ".jsonl":
            return [json.loads(line)["text"] for line in lines]
        at = next(lines).rstrip("\n").split("\t").index("text")
        return [line.rstrip("\n").split("\t")[at] for line in lines]


def memory_row(path, threads):
    """The most memory above the table during la.dedup, in a process of its own, beside the bound.

    The process reads the table as it is and nothing else, so that no freed memory is there to be used
    again unseen.
    """
    script = (
        "import sys, pyarrow as pa, lookalike as la\n"
        "table = pa.ipc.open_file(pa.OSFile(sys.argv[1])).read_all()\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "status = lambda key: int(next(l for l in open('/proc/self/status') if l.startswith(key)).split()[1])\n"
        "before = status('VmRSS'); found = la.dedup(table, threads=int(sys.argv[2]), forms='off')\n"
        "print(status('VmHWM') - before, found.summary['removed'])\n"
    )
    texts = texts_of(path)
    with tempfile.NamedTemporaryFile(suffix=".arrow") as file:
        table = pa.table({"text": pa.array(texts, pa.large_string())})
        with pa.ipc.new_file(file.name, table.schema) as writer:
            writer.write_table(table)
        arguments = [sys.executable, "-c", script, file.name, str(threads)]
        told = subprocess.run(arguments, check=True, capture_output=True, text=True)
    used, removed = map(int, told.stdout.split())
    short = sum(len(text) <= 100 for text in texts)
    longest = max(len(text.encode()) for text in texts)
    bound = 256e6 + 300 * short + 1000 * (len(texts) - short) + 12 * longest
    return {
        "what": f"`la.dedup` of {path.stem}: most memory above the table",
        "beside": "what a run may take",
        "documents": len(texts),
        "unit": "MiB",
        "package": used / 1024,
        "other": bound / 2**20,
        "ratio": bound / (used * 1024),
        "note": f"{removed} removed",
    }


def words_of(texts):
    return [text.lower().split() for text in texts]


def loop(module, words):
    """What a user of datasketch writes: a token at a time, then query and insert."""
    lsh = module.MinHashLSH(threshold=0.8, num_perm=128)
    found = []
    for key, document in enumerate(words):
        minhash = module.MinHash(num_perm=128)
        for word in document:
            minhash.update(word.encode("utf8"))
        found.append(lsh.query(minhash))
        lsh.insert(key, minhash)
    return found


def batches(module, words):
    """The same with one update_batch a document."""
    lsh = module.MinHashLSH(threshold=0.8, num_perm=128)
    found = []
    for key, document in enumerate(words):
        minhash = module.MinHash(num_perm=128)
        minhash.update_batch([word.encode("utf8") for word in document])
        found.append(lsh.query(minhash))
        lsh.insert(key, minhash)
    return found


def edited(texts, share, seed=1):
    """Copies in which some words, a share of them and one at least, are others."""
    source = random.Random(seed)
    copies = []
    for text in texts:
        words = text.split()
        for _ in range(max(1, int(len(words) * share))):
            words[source.randrange(len(words))] = "edited"
        copies.append(" ".join(words))
    return copies


def datasketch_rows(texts):
    import datasketch

    # Each with two copies, one that is very similar and one at the edge.
    words = words_of([*texts, *edited(texts, 0.02), *edited(texts, 0.15, seed=2)])
    random.Random(3).shuffle(words)
    tokens = sum(map(len, words))
    for document in words:
        one, other = MinHash(), datasketch.MinHash()
        for minhash in (one, other):
            minhash.update_batch([word.encode("utf8") for word in document])
        assert (one.hashvalues == other.hashvalues).all(), "the signatures differ"
    for name, work in (("update, a token at a time", loop), ("update_batch, a document at a time", batches)):
        ours, found = seconds(lambda: work(la, words))
        theirs, expected = seconds(lambda: work(datasketch, words))
        assert list(map(sorted, found)) == list(map(sorted, expected)), "the candidates differ"
        candidates = sum(map(len, found))
        assert candidates > len(texts), "there is hardly anything to find"
        yield {
            "what": f"`MinHash` and `MinHashLSH`: {name}",
            "beside": "datasketch 2.0, the import changed",
            "documents": len(words),
            "unit": "tokens/s",
            "package": tokens / ours,
            "other": tokens / theirs,
            "ratio": theirs / ours,
            "note": f"the same {len(words)} signatures, the same {candidates} candidates",
        }


def rensa_rows(texts, threads):
    """From texts to signatures of word pairs, and the recall of edited copies by 16 bands of 8."""
    import rensa

    copies = edited(texts, 0.02)
    both = [*texts, *copies]

    def shingles(text):
        words = text.lower().split()
        return [f"{a} {b}" for a, b in zip(words, words[1:])]

    def theirs():
        rows = []
        for text in both:
            minhash = rensa.RMinHash(num_perm=128, seed=42)
            minhash.update(shingles(text))
            rows.append(minhash.digest())
        return np.array(rows, dtype=np.uint64)

    recipe = la.Recipe("default")
    ours_seconds, ours = seconds(lambda: la.minhash(both, recipe=recipe, threads=threads))
    one_thread, _ = seconds(lambda: la.minhash(both, recipe=recipe, threads=1))
    theirs_seconds, signed = seconds(theirs, 1)

    def recall(rows):
        a, b = rows[: len(texts)], rows[len(texts) :]
        bands = (a == b).reshape(len(texts), 16, 8).all(axis=2).any(axis=1)
        sets = [(set(shingles(x)), set(shingles(y))) for x, y in zip(texts, copies)]
        similar = np.array([len(x & y) >= 0.8 * len(x | y) for x, y in sets])
        return float(bands[similar].mean()), int(similar.sum())

    found, pairs = recall(np.ma.getdata(ours))
    theirs_found, _ = recall(signed)
    for work, count in ((ours_seconds, threads), (one_thread, 1)):
        yield {
            "what": f"`la.minhash`, texts to 128 slots of word pairs, {count} threads",
            "beside": "rensa 0.5 `RMinHash`, fed with the same pairs, one thread",
            "documents": len(both),
            "unit": "documents/s",
            "package": len(both) / work,
            "other": len(both) / theirs_seconds,
            "ratio": theirs_seconds / work,
            "note": f"recall of {pairs} edited copies by 16×8 bands: {found:.3f} and {theirs_found:.3f}",
        }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("documents", type=Path)
    arguments.add_argument("--command", type=Path, default=ROOT / "target/release/lookalike")
    arguments.add_argument("--threads", type=int, default=os.cpu_count())
    arguments.add_argument("--memory", type=Path, nargs="*", default=[], help="more documents, for memory")
    arguments.add_argument("--loop", type=int, default=300, help="documents in the loops, each with two copies")
    arguments.add_argument("-o", "--output", type=Path, default=ROOT / "bench/results/python.json")
    given = arguments.parse_args()
    rows = [json.loads(line) for line in given.documents.open(encoding="utf-8")]
    texts = [row["text"] for row in rows]
    columns = {"text": pa.array(texts, pa.large_string())}
    if all("id" in row for row in rows):
        columns["id"] = pa.array([str(row["id"]) for row in rows])
    table = pa.table(columns)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    measured = [
        dedup_row(given.documents, table, megabytes, given.command, given.threads),
        *(memory_row(path, given.threads) for path in [given.documents, *given.memory]),
        *datasketch_rows(texts[: given.loop]),
        *rensa_rows(texts[:1000], given.threads),
    ]
    told = {
        "machine": machine(),
        "python": platform.python_version(),
        "data": given.documents.name,
        "measured": measured,
    }
    given.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
