"""Times the packages whose fingerprints the recipes make, on the same texts, and compares the values.

    bench/compare/compat.py TEXTS.jsonl… [-o bench/results/compat_peers.json]

The documents are those that `lookalike-bench compat` takes. PyPI `simhash` and `datasketch` get the
texts in memory and one thread; the command has one thread too and is timed from outside, with reading
and writing. Every value is compared: one that differs ends the run.
Run it in the environment of ./setup: `bench/compare/.venv-signatures/bin/python bench/compare/compat.py`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from compare import ROOT, machine, unpack
from datasketch import MinHash
from simhash import Simhash

# As in bench/src/compat.rs.
SAMPLE_BYTES = 12_000_000
# The best counts, of the package as of the command, which take turns.
ROUNDS = 8
COMMAND = ROOT / "target/release/lookalike"


def simhash_values(texts):
    """What `simhash` makes of texts, as the command prints it."""
    return [f"{Simhash(text).value:016x}" for text in texts]


def datasketch_values(scheme):
    """What `datasketch` makes of the tokens of texts, as fast as its interface has it."""

    def values(texts):
        made = []
        for text in texts:
            sketch = MinHash(num_perm=128, seed=1, scheme=scheme)
            tokens = {token.encode() for token in text.split()}
            if tokens:
                sketch.update_batch(tokens)
            made.append(sketch.hashvalues)
        return made

    return values


PEERS = {
    "1e0ng": ("simhash", simhash_values),
    "datasketch-legacy": ("datasketch", datasketch_values("legacy")),
    "datasketch-affine32": ("datasketch", datasketch_values("affine32")),
}


def printed(value):
    """A value in the words of a table."""
    return value if isinstance(value, str) else " ".join(map(str, value.tolist()))


def run_command(path, recipe, folder):
    """Seconds and values of the command on one thread."""
    out = folder / "fingerprints.tsv"
    command = [COMMAND, "fingerprint", path, "-o", out, "--recipe", recipe, "--threads", "1", "--quiet"]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - start
    rows = out.read_text().splitlines()[1:]
    return seconds, [row.split("\t")[1] for row in rows]


def own_speed(corpus, recipe):
    """Megabytes a second that the engine measured without reading and writing, if it has."""
    results = ROOT / "bench/results/compat.json"
    rows = json.loads(results.read_text())["measured"] if results.exists() else []
    speeds = [row["megabytes_per_second"] for row in rows if (row["corpus"], row["recipe"]) == (corpus, recipe)]
    return max(speeds, default=None)


def sample(path):
    """Every so many-th document that about SAMPLE_BYTES of text remain."""
    with open(path, "rb") as lines:
        documents = [json.loads(line) for line in lines]
    size = sum(len(document["text"].encode()) for document in documents)
    return documents[:: -(-size // SAMPLE_BYTES)]


def measure(path, folder):
    """One line for every package."""
    documents = sample(path)
    texts = [document["text"] for document in documents]
    part = folder / "part.jsonl"
    with open(part, "w") as out:
        for document in documents:
            out.write(json.dumps({"id": str(document["id"]), "text": document["text"]}) + "\n")
    size = sum(len(text.encode()) for text in texts)
    for recipe, (package, values) in PEERS.items():
        seconds = command_seconds = float("inf")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            made = values(texts)
            seconds = min(seconds, time.perf_counter() - start)
            command, found = run_command(part, recipe, folder)
            command_seconds = min(command_seconds, command)
        for text, theirs, ours in zip(texts, map(printed, made), found, strict=True):
            if theirs != ours:
                sys.exit(f"{recipe} differs: {package} has {theirs}, lookalike {ours} of {text[:200]!r}")
        speed, engine = size / 1e6 / seconds, own_speed(path.stem, recipe)
        yield {
            "corpus": path.stem,
            "recipe": recipe,
            "package": f"{package} {version(package)}",
            "documents": len(texts),
            "package_megabytes_per_second": round(speed, 3),
            "command_megabytes_per_second": round(size / 1e6 / command_seconds, 1),
            "command_times": round(seconds / command_seconds, 1),
            "engine_times": engine and round(engine / speed, 1),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="JSONL with id and text, or .jsonl.zst")
    parser.add_argument("-o", "--output", default=ROOT / "bench/results/compat_peers.json", type=Path)
    arguments = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for file in arguments.files:
            for line in measure(unpack(file, Path(folder)), Path(folder)):
                print(json.dumps(line), flush=True)
                lines.append(line)
    done = {"machine": machine(), "measured": lines}
    arguments.output.write_text(json.dumps(done, indent=2) + "\n")


main()
