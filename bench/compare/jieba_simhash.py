"""Chinese text to SimHash by the Python packages jieba and simhash, one core, on a sample.

    bench/compare/.venv-signatures/bin/python bench/compare/jieba_simhash.py zh_docs.jsonl [megabytes]

The same work as `lookalike-bench chinese`: words by jieba, TF-IDF learned from the sample, the twenty
heaviest words, 64 bits.
"""

import collections
import json
import math
import sys
import time

import jieba
from simhash import Simhash

TOP = 20


def sample(path, megabytes):
    texts, size = [], 0
    with open(path, encoding="utf-8") as rows:
        for row in rows:
            text = json.loads(row)["text"]
            texts.append(text)
            size += len(text.encode())
            if size >= megabytes * 1e6:
                break
    return texts, size


def words(text):
    return [word for word in jieba.lcut(text) if any(sign.isalnum() for sign in word)]


def main():
    texts, size = sample(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 10)
    jieba.initialize()
    documents = collections.Counter()
    for text in texts:
        documents.update(set(words(text)))
    idf = {
        word: math.log((1 + len(texts)) / (1 + count)) + 1
        for word, count in documents.items()
    }
    started = time.perf_counter()
    for text in texts:
        weights = {word: count * idf[word] for word, count in collections.Counter(words(text)).items()}
        heaviest = sorted(weights.items(), key=lambda pair: -pair[1])[:TOP]
        Simhash(heaviest).value
    seconds = time.perf_counter() - started
    print(
        json.dumps(
            {"documents": len(texts), "megabytes_per_second": round(size / 1e6 / seconds, 3)}
        )
    )


if __name__ == "__main__":
    main()
