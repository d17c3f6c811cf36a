"""`datasketch`: MinHash + MinHashLSH, one thread. Usage: datasketch_pipeline.py IN.jsonl OUT.jsonl REMOVED.jsonl

The same pipeline as rensa_pipeline.py: 128 permutations, 16 bands of 8 rows, word 3-grams, Jaccard
>= 0.8 as the signatures estimate it.
"""

import sys

from datasketch import MinHash, MinHashLSH

import common

PERMUTATIONS, BANDS, ROWS, THRESHOLD, NGRAM = 128, 16, 8, 0.8, 3


class Index:
    def __init__(self):
        self.bands = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, params=(BANDS, ROWS))
        self.kept = {}

    def match(self, position, text):
        features = common.word_ngrams(text, NGRAM)
        if not features:
            return None
        signature = MinHash(num_perm=PERMUTATIONS)
        signature.update_batch([feature.encode() for feature in features])
        for candidate in sorted(self.bands.query(signature)):
            if signature.jaccard(self.kept[candidate]) >= THRESHOLD:
                return candidate
        self.bands.insert(position, signature, check_duplication=False)
        self.kept[position] = signature
        return None


if __name__ == "__main__":
    path, out_path, removed_path = sys.argv[1:4]
    clock = common.Clock()
    documents, kept = common.keep_first(path, out_path, removed_path, Index())
    settings = {"permutations": PERMUTATIONS, "bands": BANDS, "ngram": NGRAM, "threshold": THRESHOLD}
    common.answer(
        "datasketch", path, documents, kept, clock.seconds(), 1, check="estimate", settings=settings
    )
