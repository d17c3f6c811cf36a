"""Quality of the command and of its peers on the same labelled pairs, with the speed beside it.

    bench/compare/.venv-signatures/bin/python bench/compare/quality.py FOLDER [--set NAME]…

FOLDER is what `lookalike-bench labelled FOLDER` wrote. Every tool gets its own defaults once, the
command's tokens once, and one grid of features and thresholds; its best setting is chosen on one half
of the pairs and judged on the other. A peer's threshold is tried in three ways, and the best counts:
on the estimate of every pair as if no candidate were ever lost, on the bands alone, and on both.
The command is judged by what `pairs` reports of the whole corpus. Seconds are one thread's: of a
peer for features and signatures, of the command for everything up to the reported pairs.
Run it in the environment of ./setup, with gaoya built (`cargo build --release` in gaoya/).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
from compare import ROOT, machine
from datasketch import MinHash, MinHashLSH
from rensa import RMinHash
from simhash import Simhash

HERE = Path(__file__).resolve().parent
COMMAND = ROOT / "target/release/lookalike"
GAOYA = HERE / "gaoya/target/release/gaoya-signatures"
RESULTS = ROOT / "bench/results/quality_peers.json"

WORD = re.compile(r"\w+")
SPACE = re.compile(r"\s+")
# From high to low: of thresholds that do equally well on the tuning half the strictest is taken.
THRESHOLDS = [round(0.95 - 0.05 * i, 2) for i in range(14)]
ESTIMATES = [round(0.99 - 0.01 * i, 2) for i in range(70)]
DISTANCES = range(25)

# The first texts of a set, as many as this; the peers take minutes for what we take a second for.
MOST_BYTES = 3_000_000


def words(n):
    def features(text, _):
        found = WORD.findall(text.lower())
        return [" ".join(found[i : i + n]) for i in range(max(1, len(found) - n + 1))]

    return features


def characters(n):
    def features(text, _):
        text = SPACE.sub("", text)
        return [text[i : i + n] for i in range(max(1, len(text) - n + 1))]

    return features


def our_pairs(_, tokens):
    return [" ".join(tokens[i : i + 2]) for i in range(max(1, len(tokens) - 1))]


GRID = {
    "our token pairs": our_pairs,
    "words": words(1),
    "word 2-grams": words(2),
    "word 3-grams": words(3),
    "character 2-grams": characters(2),
    "character 3-grams": characters(3),
    "character 5-grams": characters(5),
}


class Labelled:
    """The texts and labelled pairs of a set, cut to its first texts if it is large."""

    def __init__(self, folder):
        self.name = folder.name
        rows = [json.loads(row) for row in open(folder / "texts.jsonl")]
        size, most = 0, 0
        while most < len(rows) and size < MOST_BYTES:
            size += len(rows[most]["text"].encode())
            most += 1
        self.texts = [row["text"] for row in rows[:most]]
        self.bytes = size
        self.halves = {half: self._pairs(folder / f"{half}.jsonl") for half in ("tune", "test")}
        self.file = Path(tempfile.mkdtemp()) / "texts.jsonl"
        with open(self.file, "w") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows[:most])
        command = [COMMAND, "segment", self.file, "--recipe", "default", "--quiet"]
        table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.tokens = [row.split("\t")[1].split(" ") for row in table.split("\n")[1:-1]]
        assert len(self.tokens) == len(self.texts)

    def _pairs(self, path):
        rows = [json.loads(row) for row in open(path)]
        pairs = [(int(row["a"]), int(row["b"]), row["label"]) for row in rows]
        pairs = [pair for pair in pairs if max(pair[:2]) < len(self.texts)]
        return np.array(pairs, dtype=np.int64).reshape(-1, 3)


def score(predicted, labels):
    """Precision, recall and F1; a ratio of nothing is 0."""
    right = int(np.sum(predicted & (labels == 1)))
    found, true = int(np.sum(predicted)), int(np.sum(labels == 1))
    ratio = lambda part, whole: part / whole if whole else 0.0
    return {
        "precision": round(ratio(right, found), 4),
        "recall": round(ratio(right, true), 4),
        "f1": round(ratio(2 * right, found + true), 4),
    }


class Best:
    """The setting with the highest F1 on the tuning half, judged on the other."""

    def __init__(self, labelled):
        self.labels = {half: pairs[:, 2] for half, pairs in labelled.halves.items()}
        self.found = None

    def offer(self, setting, predicted, seconds):
        tuned = score(predicted["tune"], self.labels["tune"])["f1"]
        if self.found is None or tuned > self.found[0]:
            self.found = (tuned, setting, score(predicted["test"], self.labels["test"]), seconds)


def equal_slots(matrix, labelled):
    """For each half, which slots of the signatures agree, a row a pair."""
    return {
        half: matrix[pairs[:, 0]] == matrix[pairs[:, 1]]
        for half, pairs in labelled.halves.items()
    }


def bands_meet(equal, bands, rows):
    shaped = equal[:, : bands * rows].reshape(len(equal), bands, rows)
    return shaped.all(axis=2).any(axis=1)


def datasketch_signatures(features):
    matrix = np.empty((len(features), 128), dtype=np.uint64)
    for at, tokens in enumerate(features):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([token.encode() for token in set(tokens)])
        matrix[at] = sketch.hashvalues
    return matrix


def rensa_signatures(features):
    matrix = np.empty((len(features), 128), dtype=np.uint64)
    for at, tokens in enumerate(features):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(set(tokens))
        matrix[at] = sketch.digest()
    return matrix


def gaoya_signatures(features):
    lines = "".join(json.dumps(sorted(set(tokens))) + "\n" for tokens in features)
    run = subprocess.run([GAOYA], input=lines, check=True, capture_output=True, text=True)
    rows = [json.loads(row) for row in run.stdout.splitlines()]
    minhash = np.array([row["minhash"] for row in rows], dtype=np.uint64)
    simhash = np.array([int(row["simhash"], 16) for row in rows], dtype=np.uint64)
    return minhash, simhash, [float(part) for part in run.stderr.split()]


def timed(call, *arguments):
    start = time.process_time()
    answer = call(*arguments)
    return answer, time.process_time() - start


def minhash_settings(equal, bands_by_name):
    """Every way to decide by a signature: name and what it says of each half."""
    estimate = {half: slots.mean(axis=1) for half, slots in equal.items()}
    for threshold in ESTIMATES:
        yield f"estimate ≥ {threshold}", {h: e >= threshold for h, e in estimate.items()}
    for name, (bands, rows) in bands_by_name.items():
        meet = {half: bands_meet(slots, bands, rows) for half, slots in equal.items()}
        yield name, meet
        for threshold in THRESHOLDS:
            both = {half: meet[half] & (estimate[half] >= threshold) for half in meet}
            yield f"{name}, estimate ≥ {threshold}", both


def distances(codes, labelled):
    return {
        half: popcount(codes[pairs[:, 0]] ^ codes[pairs[:, 1]])
        for half, pairs in labelled.halves.items()
    }


def popcount(codes):
    return np.unpackbits(codes.view(np.uint8).reshape(len(codes), 8), axis=1).sum(axis=1)


def datasketch_bands():
    made = {}
    for threshold in THRESHOLDS:
        index = MinHashLSH(threshold=threshold, num_perm=128)
        made[f"MinHashLSH({threshold})"] = (index.b, index.r)
    return made


def rensa_bands():
    return {f"{bands} bands": (bands, 128 // bands) for bands in (8, 16, 32, 64)}


def gaoya_bands():
    shapes = [(63, 2), (42, 3), (25, 5), (21, 6), (18, 7), (14, 9)]
    return {f"{bands}×{rows}": (bands, rows) for bands, rows in shapes}


MINHASH_TOOLS = {
    "datasketch": (datasketch_signatures, datasketch_bands()),
    "rensa": (rensa_signatures, rensa_bands()),
}


def peers(labelled):
    """A row for every tool: its defaults, our tokens, its best setting."""
    labels = labelled.halves["test"][:, 2]
    best, ours = {}, {}
    tools = ["datasketch", "rensa", "gaoya MinHash", "gaoya SimHash", "simhash"]
    for tool in tools:
        best[tool], ours[tool] = Best(labelled), Best(labelled)

    def offer(tool, kind, setting, predicted, seconds):
        best[tool].offer(f"{kind}; {setting}", predicted, seconds)
        if kind == "our token pairs":
            ours[tool].offer(setting, predicted, seconds)

    for kind, make in GRID.items():
        pairs = zip(labelled.texts, labelled.tokens)
        features, splitting = timed(lambda: [make(text, tokens) for text, tokens in pairs])
        for tool, (signatures, bands) in MINHASH_TOOLS.items():
            matrix, seconds = timed(signatures, features)
            for setting, predicted in minhash_settings(equal_slots(matrix, labelled), bands):
                offer(tool, kind, setting, predicted, splitting + seconds)
        minhash, simhash, (minhash_seconds, simhash_seconds) = gaoya_signatures(features)
        for setting, predicted in minhash_settings(equal_slots(minhash, labelled), gaoya_bands()):
            offer("gaoya MinHash", kind, setting, predicted, splitting + minhash_seconds)
        codes, seconds = timed(
            lambda: np.array([Simhash(tokens).value for tokens in features], dtype=np.uint64)
        )
        for tool, codes, spent in [
            ("gaoya SimHash", simhash, simhash_seconds),
            ("simhash", codes, seconds),
        ]:
            apart = distances(codes, labelled)
            for most in DISTANCES:
                predicted = {half: values <= most for half, values in apart.items()}
                offer(tool, kind, f"distance ≤ {most}", predicted, splitting + spent)

    rows = [default_row(labelled, labels, tool) for tool in tools]
    for chosen, which in [(ours, "our tokens, best threshold"), (best, "best setting")]:
        for tool in tools:
            _, setting, scores, seconds = chosen[tool].found
            rows.append(row(labelled, tool, which, setting, scores, seconds))
    return rows


def default_row(labelled, labels, tool):
    """A tool as its own documentation uses it."""
    pairs = labelled.halves["test"]
    lower_words, splitting = timed(lambda: [text.lower().split() for text in labelled.texts])
    if tool == "simhash":
        codes, seconds = timed(lambda: np.array([Simhash(t).value for t in labelled.texts], np.uint64))
        predicted = distances(codes, labelled)["test"] <= 2
        setting = "its own 4-character windows; distance ≤ 2"
    elif tool == "gaoya SimHash":
        _, codes, (_, seconds) = gaoya_signatures(lower_words)
        predicted = distances(codes, labelled)["test"] <= 6
        setting = "words between spaces; distance ≤ 6"
    elif tool == "gaoya MinHash":
        matrix, _, (seconds, _) = gaoya_signatures(lower_words)
        equal = matrix[pairs[:, 0]] == matrix[pairs[:, 1]]
        predicted = bands_meet(equal, 42, 3) & (equal.mean(axis=1) >= 0.5)
        setting = "words between spaces; 42×3, estimate ≥ 0.5"
    else:
        signatures, _ = MINHASH_TOOLS[tool]
        matrix, seconds = timed(signatures, [text.split() for text in labelled.texts])
        equal = matrix[pairs[:, 0]] == matrix[pairs[:, 1]]
        if tool == "datasketch":
            index = MinHashLSH(num_perm=128)
            predicted = bands_meet(equal, index.b, index.r)
            setting = "words between spaces; MinHashLSH(0.9)"
        else:
            predicted = bands_meet(equal, 16, 8) & (equal.mean(axis=1) >= 0.8)
            setting = "words between spaces; 16 bands, estimate ≥ 0.8"
    return row(labelled, tool, "defaults", setting, score(predicted, labels), splitting + seconds)


def row(labelled, tool, which, setting, scores, seconds):
    return {
        "set": labelled.name,
        "tool": tool,
        "which": which,
        "setting": setting,
        **scores,
        "megabytes_per_second": round(labelled.bytes / 1e6 / max(seconds, 1e-9), 2),
    }


def reported(labelled, *options):
    """What `pairs` reports of the whole corpus, for each half, and its seconds."""
    out = labelled.file.with_suffix(".tsv")
    command = [COMMAND, "pairs", labelled.file, "--all", "--quiet", "--threads", "1", "-o", out]
    start = time.perf_counter()
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    with open(out) as table:
        next(table)
        found = {tuple(map(int, line.split("\t")[:2])) for line in table}
    predicted = {
        half: np.array([(min(a, b), max(a, b)) in found for a, b, _ in pairs.tolist()], dtype=bool)
        for half, pairs in labelled.halves.items()
    }
    return predicted, seconds


def ours(labelled):
    labels = labelled.halves["test"][:, 2]
    predicted, seconds = reported(labelled)
    scores = score(predicted["test"], labels)
    rows = [row(labelled, "lookalike", "defaults", "default-1, its threshold", scores, seconds)]
    best = Best(labelled)

    def offer(threshold):
        best.offer(threshold, *reported(labelled, "--threshold", str(threshold)))

    for threshold in THRESHOLDS:
        offer(threshold)
    around = best.found[1]
    for step in (0.04, 0.03, 0.02, 0.01, -0.01, -0.02, -0.03, -0.04):
        offer(round(around + step, 2))
    _, threshold, scores, seconds = best.found
    setting = f"default-1, threshold {threshold}"
    rows.append(row(labelled, "lookalike", "best setting", setting, scores, seconds))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", action="append", help="only this one; others' rows stay")
    parser.add_argument("--ours", action="store_true", help="only the command; peers' rows stay")
    arguments = parser.parse_args()
    folders = sorted(path for path in arguments.folder.iterdir() if path.is_dir())
    measured = []
    if RESULTS.exists():
        measured = json.loads(RESULTS.read_text())["measured"]
    for folder in folders:
        if arguments.set and folder.name not in arguments.set:
            continue
        labelled = Labelled(folder)
        rows = ours(labelled)
        if arguments.ours:
            before = [row for row in measured if row["set"] == folder.name]
            rows += [row for row in before if row["tool"] != "lookalike"]
        else:
            rows += peers(labelled)
        measured = [row for row in measured if row["set"] != folder.name] + rows
        for found in rows:
            print(json.dumps(found, ensure_ascii=False), file=sys.stderr)
        versions = {name: version(name) for name in ("datasketch", "rensa", "simhash")}
        all_rows = {
            "machine": machine(),
            "versions": {**versions, "gaoya": "0.2.2"},
            "measured": sorted(measured, key=lambda row: row["set"]),
        }
        RESULTS.write_text(json.dumps(all_rows, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
