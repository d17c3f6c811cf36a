"""What bench/reproduce does: makes two corpora, runs the tools over them, judges the answers, prints one table.

The corpora are generated, so that nothing is downloaded and anybody gets the same bytes: documents of drawn sentences in
English and in Chinese, of which a part repeats an earlier one with edits. The truth is exact: every pair with a Jaccard
index >= 0.8 over word 3-grams. Only a document and its own repeats can be such a pair, since drawn documents
share hardly anything; `--check` compares all pairs of a small corpus to show it.

recall     of the true pairs, the share of which not both documents were kept
precision  of the removed documents, the share that is in a true pair with a kept one
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import common

HERE = Path(__file__).resolve().parent
THRESHOLD, NGRAM = 0.8, 3
# Of a document, the share of tokens that is edited in a repeat: from equal texts to ones that are no longer a pair.
EDITS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
# Of the documents, the share that repeats an earlier one.
REPEATED = 0.3
TOKENS = (60, 400)
SYLLABLES = [c + v for c in "bdfghklmnprstvz" for v in ("a", "e", "i", "o", "u", "ar", "en", "ol")]


def main():
    arguments = parse_arguments()
    command = find_command(arguments.command)
    peers = ["datasketch", "rensa", "simhash"]
    rows = []
    with tempfile.TemporaryDirectory(dir=arguments.work) as name:
        folder = Path(name)
        for language in ("english", "chinese"):
            path = folder / f"{language}.jsonl"
            families = write_corpus(path, language, arguments.documents)
            truth = find_pairs(path, families)
            if arguments.check:
                check_truth(path, truth)
                continue
            print(f"{language}: {path.stat().st_size / 1e6:.1f} MB, {len(truth)} pairs", file=sys.stderr)
            rows += [run_command(command, path, truth, threads) for threads in (1, 2)]
            if arguments.wheel:
                rows.append(run_wheel(path, truth))
            rows += [run_peer(peer, path, truth) for peer in peers]
            # Its tokens are those of one language, which is English in its pipeline here.
            if arguments.datatrove and language == "english":
                rows.append(run_datatrove(path, truth))
    if arguments.check:
        return
    print_table(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/reproduce", description="lookalike beside its peers")
    parser.add_argument("--documents", type=int, default=10_000, help="documents of each language (default: 10000)")
    parser.add_argument("--command", help="the program lookalike (default: target/release/lookalike, or on the path)")
    parser.add_argument("--wheel", help="the Python package too, installed from this wheel or of this name")
    parser.add_argument("--datatrove", action="store_true", help="datatrove too, on the English corpus; it is slow")
    parser.add_argument("--json", type=Path, help="writes the figures to this file")
    parser.add_argument("--check", action="store_true", help="only compares all pairs of the corpora with the truth")
    parser.add_argument("--work", help="directory for the corpora while they are needed (default: that of the system)")
    return parser.parse_args()


def find_command(named):
    built = HERE.parents[1] / "target/release/lookalike"
    command = named or (str(built) if built.exists() else "lookalike")
    try:
        version = subprocess.run([command, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    except OSError as error:
        sys.exit(f"{command}: {error.strerror}: name the program with --command, or run `cargo build --release`")
    print(version.strip(), file=sys.stderr)
    return command


# The corpora


def write_corpus(path, language, documents):
    """Writes a corpus, and returns for each document the number of the one that it repeats, or its own."""
    chance = random.Random(f"{language} 1")
    words = make_words(chance, language)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
    drawn, families = [], []
    with path.open("w", encoding="utf-8") as rows:
        for number in range(documents):
            origin = chance.randrange(number) if number and chance.random() < REPEATED else number
            origin = families[origin] if origin < number else number
            if origin == number:
                tokens = chance.choices(words, cum_weights=weights, k=chance.randint(*TOKENS))
            else:
                tokens = edit(chance, drawn[origin], words, chance.choice(EDITS))
            drawn.append(tokens)
            families.append(origin)
            text = write_text(tokens, language)
            rows.write(json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n")
    return families


def make_words(chance, language):
    if language == "chinese":
        return [chr(code) for code in chance.sample(range(0x4E00, 0x9FA5), 3000)]
    words = {"".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(30_000)}
    return chance.sample(sorted(words), len(words))


def edit(chance, tokens, words, share):
    """Returns the tokens with a share of them replaced, left out or doubled."""
    edited = []
    for token in tokens:
        if chance.random() >= share:
            edited.append(token)
        else:
            edited += chance.choice(([chance.choice(words)], [], [token, chance.choice(words)]))
    return edited


def write_text(tokens, language):
    """Returns sentences of ten tokens, with the punctuation of the language."""
    space, comma, stop = ("", "，", "。") if language == "chinese" else (" ", ", ", ". ")
    sentences = [tokens[begin : begin + 10] for begin in range(0, len(tokens), 10)]
    text = stop.join(comma.join(space.join(part) for part in (it[:5], it[5:]) if part) for it in sentences)
    return (text + stop).strip()


# The truth


def read_features(path):
    common.WORD = common.WORD_OR_CHARACTER
    with path.open(encoding="utf-8") as rows:
        return [common.word_ngrams(json.loads(row)["text"], NGRAM) for row in rows]


def jaccard(a, b):
    return len(a & b) / len(a | b)


def find_pairs(path, families):
    """Returns the pairs at the threshold, among documents that go back to the same one."""
    features, members = read_features(path), defaultdict(list)
    for number, family in enumerate(families):
        members[family].append(number)
    return {
        (a, b)
        for numbers in members.values()
        for a, b in itertools.combinations(numbers, 2)
        if jaccard(features[a], features[b]) >= THRESHOLD
    }


def check_truth(path, truth):
    features = read_features(path)
    pairs = {
        (a, b)
        for a, b in itertools.combinations(range(len(features)), 2)
        if jaccard(features[a], features[b]) >= THRESHOLD
    }
    if pairs != truth:
        sys.exit(f"{path.name}: all pairs have {len(pairs)} at the threshold, and the truth has {len(truth)}")
    print(f"{path.name}: {len(features)} documents, {len(pairs)} pairs, and no others among all")


def judge(removed, documents, truth):
    """Returns recall and precision of the removed documents."""
    kept = set(range(documents)) - removed
    missed = sum(a in kept and b in kept for a, b in truth)
    partners = defaultdict(set)
    for a, b in truth:
        partners[a].add(b)
        partners[b].add(a)
    right = sum(bool(partners[number] & kept) for number in removed)
    return 1 - missed / len(truth), right / len(removed) if removed else 1.0


# The tools


def run_command(command, path, truth, threads):
    removed = path.with_suffix(".removed.jsonl")
    options = ["--recipe", "words-3", "--threshold", str(THRESHOLD), "--threads", str(threads)]
    outputs = ["-o", str(path.with_suffix(".kept.jsonl")), "--removed", str(removed)]
    told = run_python("reproduce_command.py", command, "dedup", str(path), *options, *outputs, "--quiet")
    name = "lookalike dedup" if threads == 1 else f"lookalike dedup, {threads} threads"
    return describe(name, path, truth, removed, told)


def run_wheel(path, truth):
    removed = path.with_suffix(".removed.jsonl")
    told = run_python("reproduce_wheel.py", str(path), str(removed))
    name = f"lookalike {told['version']}, Python"
    return describe(name, path, truth, removed, told)


def run_peer(tool, path, truth):
    kept, removed = path.with_suffix(".kept.jsonl"), path.with_suffix(".removed.jsonl")
    told = run_python("reproduce_peer.py", tool, str(path), str(kept), str(removed))
    return describe(f"{tool} {told['version']}", path, truth, removed, told)


def run_datatrove(path, truth):
    """Its four stages with its own features: 14 bands of 8 hashes of word 5-grams, and no verification."""
    kept, removed = path.with_suffix(".kept.jsonl"), path.with_suffix(".removed.jsonl")
    told = run_python("datatrove_pipeline.py", str(path), str(kept), str(removed), "1")
    return describe(f"datatrove {told['version']}", path, truth, removed, told)


def run_python(script, *arguments):
    """Runs a script of this folder, and returns the line that it answers with, which is its last one."""
    command = [sys.executable, str(HERE / script), *arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(f"{script} ended with {process.returncode}:\n{process.stderr}")
    return json.loads(process.stdout.splitlines()[-1])


def describe(tool, path, truth, removed_path, told):
    with removed_path.open(encoding="utf-8") as rows:
        removed = {int(json.loads(row)["id"]) for row in rows}
    with path.open("rb") as rows:
        documents = sum(1 for _ in rows)
    recall, precision = judge(removed, documents, truth)
    return {
        "tool": tool,
        "corpus": path.stem,
        "documents": documents,
        "seconds": round(told["seconds"], 3),
        "cpu_seconds": round(told["cpu_seconds"], 3),
        "megabytes_per_second": round(path.stat().st_size / 1e6 / told["seconds"], 2),
        "peak_megabytes": round(told["peak_bytes"] / 1e6) if "peak_bytes" in told else None,
        "removed": len(removed),
        "recall": round(recall, 4),
        "precision": round(precision, 4),
    }


def print_table(rows):
    header = ["corpus", "tool", "s", "CPU s", "MB/s", "peak MB", "removed", "recall", "precision"]
    keys = ["corpus", "tool", "seconds", "cpu_seconds", "megabytes_per_second", "peak_megabytes"]
    keys += ["removed", "recall", "precision"]
    cells = [header] + [["–" if row[key] is None else str(row[key]) for key in keys] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        left, right = row[:2], row[2:]
        print(*(it.ljust(w) for it, w in zip(left, widths)), *(it.rjust(w) for it, w in zip(right, widths[2:])), sep="  ")


if __name__ == "__main__":
    main()
