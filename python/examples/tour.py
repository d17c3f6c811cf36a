"""A tour of the package: the news in ``examples/``, with what reposting made of them, and the paragraphs
of this repository, which repeat one another as documents and programs do.

Run it with ``python python/examples/tour.py``; the parts between two rules are what cells of a
notebook would be.
"""

# %% Articles and posts in English and Chinese, written for this project; see examples/README.md.
import csv
import json
from pathlib import Path

import pyarrow as pa

import lookalike as la
from lookalike.compat.datasketch import MinHash, MinHashLSH

root = Path(__file__).resolve().parents[2]
with (root / "examples/news.jsonl").open(encoding="utf-8") as lines:
    rows = [json.loads(line) for line in lines]
table = pa.Table.from_pylist(rows)
print(f"{table.num_rows} articles and posts")

# %% One call keeps one of each group.
result = la.dedup(table)
print(result)
print(f"kept {result.kept.num_rows} rows; the first removals:")
for row in result.removed.slice(0, 5).to_pylist():
    print(f"  {row['id']} repeats {row['kept']}, similarity {row['similarity']:.2f}")

# %% Why do two texts match?
pair = result.removed.slice(1, 1).to_pylist()[0]
text_of = {row["id"]: row["text"] for row in rows}
comparison = la.compare(text_of[pair["kept"]], text_of[pair["id"]])
print(comparison.why)
for name, figure in list(comparison.figures.items())[:4]:
    print(f"  {name}: {figure.value}")

# %% Fingerprints, and everything within a distance.
codes = la.simhash(table["text"])
index = la.HammingIndex(distance=6)
index.add(codes)
near = index.search(codes)
print(f"{sum(near.query < near.id)} pairs of fingerprints differ in at most 6 bits")

# %% The MinHash of datasketch, with the import changed.
lsh = MinHashLSH(threshold=0.5, num_perm=128)
for row in rows:
    minhash = MinHash(num_perm=128)
    for word in row["text"].lower().split():
        minhash.update(word.encode("utf8"))
    lsh.insert(row["id"], minhash)
print(f"{lsh}: {len(lsh.query(minhash))} like the last one")

# %% What other pipelines look for.
print(la.presets["fineweb"])

# %% Measured against labels: pairs of these articles by their ids.
with (root / "examples/labelled.tsv").open(encoding="utf-8", newline="") as lines:
    labelled = [{**row, "label": int(row["label"])} for row in csv.DictReader(lines, delimiter="\t")]
measured = la.evaluate(labelled, corpus=table, resamples=100)
told = {point["cut"]: point["method"] for point in measured["settings"][0]["points"]}[0.75]
print(f"{measured['labelled']['similar']} similar pairs and {measured['labelled']['different']} others: at the default")
print(f"threshold precision {told['precision']['value']:.2f}, recall {told['recall']['value']:.2f}")

# %% Nothing here was planted: what documents and programs repeat of themselves.
files = [root / "README.md", root / "LICENSE-APACHE", root / "LICENSE-MIT", *sorted((root / "docs").glob("*.md"))]
files += sorted((root / "crates").rglob("*.rs"))
paragraphs = [
    {"id": f"{path.relative_to(root)}:{number}", "text": paragraph}
    for path in files
    for number, paragraph in enumerate(path.read_text(encoding="utf-8").split("\n\n"), 1)
    if len(paragraph.split()) > 20
]
result = la.dedup(paragraphs)
print(f"{len(files)} files: {result}")
inexact = [row for row in result.removed.to_pylist() if row["similarity"] < 1]
for row in inexact[:3]:
    print(f"  {row['id']} is like {row['kept']}, similarity {row['similarity']:.2f}")
