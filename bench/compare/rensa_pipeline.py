"""`rensa`: RMinHash + RMinHashLSH, one thread. Usage: rensa_pipeline.py IN.jsonl OUT.jsonl REMOVED.jsonl

128 permutations, 16 bands of 8 rows, word 3-grams. A document repeats an earlier kept one if the
bands make them candidates and the signatures estimate Jaccard >= 0.8; nothing is verified exactly.
"""

import os
import sys

os.environ.setdefault("RAYON_NUM_THREADS", "1")

from rensa import RMinHash, RMinHashLSH

import common

PERMUTATIONS, BANDS, THRESHOLD, NGRAM = 128, 16, 0.8, 3


class Index:
    def __init__(self):
        self.bands = RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=BANDS)
        self.kept = {}

    def match(self, position, text):
        features = common.word_ngrams(text, NGRAM)
        if not features:
            return None
        signature = RMinHash(num_perm=PERMUTATIONS, seed=42)
        signature.update(features)
        for candidate in sorted(self.bands.query(signature)):
            if signature.jaccard(self.kept[candidate]) >= THRESHOLD:
                return candidate
        self.bands.insert(position, signature)
        self.kept[position] = signature
        return None


if __name__ == "__main__":
    path, out_path, removed_path = sys.argv[1:4]
    clock = common.Clock()
    documents, kept = common.keep_first(path, out_path, removed_path, Index())
    settings = {"permutations": PERMUTATIONS, "bands": BANDS, "ngram": NGRAM, "threshold": THRESHOLD}
    common.answer(
        "rensa", path, documents, kept, clock.seconds(), 1, check="estimate", settings=settings
    )
