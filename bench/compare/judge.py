"""What a pipeline's answer is worth. Usage: judge.py IN.jsonl TEXT NGRAM THRESHOLD REMOVED.jsonl…

Finds every pair of documents with Jaccard >= THRESHOLD exactly (prefix filter, then sets), under
the pipelines' own features: word n-grams of common.py, over the text as it is (TEXT is `plain`) or
as datatrove simplifies it before it looks (`simplified`: without numbers and punctuation, for
example). Then, for each file of removed rows:

recall     of the pairs, the share of which not both documents were kept
precision  of the removed documents, the share that has a kept document it is a pair with

Both are 1 for an exact keep-first pass. A tool that closes clusters transitively loses precision:
it removes documents that resemble nothing it kept. (datatrove's bands are laid out for 0.72, and it
verifies nothing.)
"""

import json
import math
import sys
from collections import Counter, defaultdict

import common


def simplifier(text):
    """What is done to a text before its words are taken."""
    if text == "plain":
        return lambda text: text
    from datatrove.utils.text import TextNormConfig, simplify_text

    config = TextNormConfig()
    return lambda text: simplify_text(text, config)


def read_features(path, simplify, ngram):
    """Ids, and each document's features as numbers, rarest first: an order any prefix filter may use."""
    ids, documents, numbers, frequency = [], [], {}, Counter()
    with open(path, "rb") as rows:
        for row in rows:
            document = json.loads(row)
            features = common.word_ngrams(simplify(document["text"]), ngram)
            features = {numbers.setdefault(feature, len(numbers)) for feature in features}
            frequency.update(features)
            ids.append(document["id"])
            documents.append(features)
    ordered = [sorted(features, key=lambda f: (frequency[f], f)) for features in documents]
    return ids, documents, ordered


def exact_pairs(documents, ordered, threshold):
    """Yields `(i, j)` with i < j. Two sets this similar share a feature in the first
    `len - ceil(threshold * len) + 1` of each, whatever the common order."""
    postings = defaultdict(list)
    for j, features in enumerate(ordered):
        size = len(features)
        least = math.ceil(threshold * size - 1e-9)
        prefix = features[: size - least + 1] if size else []
        candidates = {i for feature in prefix for i in postings[feature]}
        for i in sorted(candidates):
            other = len(documents[i])
            if min(size, other) + 1e-9 < threshold * max(size, other):
                continue
            shared = len(documents[i] & documents[j])
            if shared >= threshold * (size + other - shared) - 1e-9:
                yield i, j
        for feature in prefix:
            postings[feature].append(j)


def judge(ids, pairs, removed_path):
    with open(removed_path) as rows:
        removed = {json.loads(row)["id"] for row in rows}
    gone = [identity in removed for identity in ids]
    founded = {a for i, j in pairs for a, b in ((i, j), (j, i)) if gone[a] and not gone[b]}
    caught = sum(gone[i] or gone[j] for i, j in pairs)
    return {
        "pairs": len(pairs),
        "removed": sum(gone),
        "recall": round(caught / len(pairs), 5) if pairs else None,
        "precision": round(len(founded) / sum(gone), 5) if any(gone) else None,
    }


if __name__ == "__main__":
    path, text, ngram, threshold, *removed_paths = sys.argv[1:]
    ids, documents, ordered = read_features(path, simplifier(text), int(ngram))
    pairs = list(exact_pairs(documents, ordered, float(threshold)))
    for removed_path in removed_paths:
        print(json.dumps(judge(ids, pairs, removed_path)), flush=True)
