"""What the comparison's pipelines share: the features, the clock and the form of the answer.

Features are the same for every pipeline of this folder that lets us choose them: the set of word
n-grams over the lower-cased text, words being `\\w+`.
"""

import json
import os
import re
import sys
import time
from importlib.metadata import version

WORD = re.compile(r"\w+")
# For texts without spaces, which `WORD` takes for single words: characters of Chinese stand alone.
WORD_OR_CHARACTER = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")


def word_ngrams(text, n):
    """The set of word n-grams of `text`; a shorter text is one feature as a whole."""
    words = WORD.findall(text.lower())
    if len(words) <= n:
        return {" ".join(words)} if words else set()
    return set(map(" ".join, zip(*(words[i:] for i in range(n)))))


class Clock:
    """Wall seconds and this process's processor seconds since it was made."""

    def __init__(self):
        self.start, self.start_cpu = time.perf_counter(), time.process_time()

    def seconds(self):
        return time.perf_counter() - self.start, time.process_time() - self.start_cpu


def peak_bytes():
    """The most memory of this process. Not that of getrusage, which begins with what the parent process had."""
    status = open("/proc/self/status").read()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def keep_first(path, out_path, removed_path, index):
    """Streams JSONL and keeps a document unless `index.match(i, text)` names an earlier kept one.

    Kept rows go to `out_path` as they were read. `removed_path` gets a JSON line `{id, kept}` for
    every removed row. Returns `(documents, kept)`.
    """
    ids, kept = [], 0
    with open(path, "rb") as rows, open(out_path, "wb") as out, open(removed_path, "w") as removed:
        for position, row in enumerate(rows):
            document = json.loads(row)
            ids.append(document["id"])
            match = index.match(position, document["text"])
            if match is None:
                out.write(row)
                kept += 1
            else:
                pair = {"id": document["id"], "kept": ids[match]}
                removed.write(json.dumps(pair, ensure_ascii=False) + "\n")
    return len(ids), kept


def answer(tool, path, documents, kept, clock_seconds, workers, **more):
    """Prints the one JSON line by which a pipeline reports.

    Processor time is left out where the work is done by other processes than this one.
    """
    seconds, cpu_seconds = clock_seconds
    size = os.path.getsize(path)
    line = {
        "tool": tool,
        "version": version(tool),
        "file": os.path.basename(path),
        "documents": documents,
        "bytes": size,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3) if workers == 1 else None,
        "megabytes_per_second": round(size / 1e6 / seconds, 3),
        "kept": kept,
        "workers": workers,
        **more,
    }
    json.dump(line, sys.stdout, ensure_ascii=False)
    print(flush=True)
