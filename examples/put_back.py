"""Puts the passages that `lookalike dedup --passages remove` has cut back into their documents.

Usage: put_back.py KEPT.jsonl CUTS.jsonl > ORIGINAL.jsonl
"""

import json
import sys
from collections import defaultdict

kept, cuts = sys.argv[1:]
by_document = defaultdict(list)
with open(cuts, encoding="utf-8") as lines:
    for line in lines:
        cut = json.loads(line)
        by_document[cut["id"]].append(cut)

with open(kept, encoding="utf-8") as lines:
    for line in lines:
        document = json.loads(line)
        text = document["text"]
        for cut in by_document[document["id"]]:
            text = text[: cut["start"]] + cut["text"] + text[cut["start"] :]
        document["text"] = text
        print(json.dumps(document, ensure_ascii=False))
