"""`simhash`: Simhash + SimhashIndex, one thread. Run by reproduce_peer.py.

Fingerprints of 64 bits over word 3-grams. A document repeats an earlier kept one if the fingerprints differ in at
most 3 bits, the tool's own advice; nothing is verified.
"""

import logging

from simhash import Simhash, SimhashIndex

import common

DISTANCE, NGRAM = 3, 3

# The index reports every large bucket.
logging.disable(logging.WARNING)


class Index:
    def __init__(self):
        self.near = SimhashIndex([], k=DISTANCE)

    def match(self, position, text):
        features = common.word_ngrams(text, NGRAM)
        if not features:
            return None
        fingerprint = Simhash(sorted(features))
        found = self.near.get_near_dups(fingerprint)
        if found:
            return min(map(int, found))
        self.near.add(str(position), fingerprint)
        return None
