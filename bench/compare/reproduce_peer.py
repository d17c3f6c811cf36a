"""One peer over one file, for bench/reproduce. Usage: reproduce_peer.py TOOL IN.jsonl OUT.jsonl REMOVED.jsonl

The pipelines of this folder with the tokens of the recipe `words-3`, so that all tools compare the same features in
both languages: words, and single characters of Chinese.
"""

import importlib
import sys

import common

if __name__ == "__main__":
    tool, path, out_path, removed_path = sys.argv[1:]
    common.WORD = common.WORD_OR_CHARACTER
    pipeline = importlib.import_module(f"{tool}_pipeline")
    clock = common.Clock()
    documents, kept = common.keep_first(path, out_path, removed_path, pipeline.Index())
    seconds = clock.seconds()
    common.answer(tool, path, documents, kept, seconds, 1, peak_bytes=common.peak_bytes())
