"""A tour of the package on real text: the licences and the documents of this repository.

Run it with ``python python/examples/tour.py``; the parts between two rules are what cells of a
notebook would be.
"""

# %% Real text: paragraphs of the files beside the package.
from pathlib import Path

import pyarrow as pa

import lookalike as la

root = Path(__file__).resolve().parents[2]
files = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "docs/design.md"]
rows = [
    {"id": f"{name}:{number}", "text": " ".join(paragraph.split())}
    for name in files
    for number, paragraph in enumerate((root / name).read_text(encoding="utf-8").split("\n\n"), 1)
    if paragraph.strip()
]
# Some of them come again, with an edit.
rows += [
    {"id": f"copy:{number}", "text": row["text"].upper().replace(",", " ,") + " again"}
    for number, row in enumerate(rows[::9])
]
table = pa.Table.from_pylist(rows)
print(f"{table.num_rows} paragraphs of {len(files)} files")

# %% One call keeps one of each group.
result = la.dedup(table, threshold=0.75)
print(result)
print(f"kept {result.kept.num_rows} rows; the first removals:")
for row in result.removed.slice(0, 3).to_pylist():
    print(f"  {row['id']} repeats {row['kept']}, similarity {row['similarity']:.2f}")

# %% Why do two texts match?
pair = result.removed.slice(0, 1).to_pylist()[0]
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
lsh = la.MinHashLSH(threshold=0.5, num_perm=128)
for row in rows:
    minhash = la.MinHash(num_perm=128)
    for word in row["text"].lower().split():
        minhash.update(word.encode("utf8"))
    lsh.insert(row["id"], minhash)
print(f"{lsh}: {len(lsh.query(minhash))} like the last one")

# %% What other pipelines look for.
print(la.presets["fineweb"])

# %% Measured against labels.
labelled = [
    {"a": text_of[row["kept"]], "b": text_of[row["id"]], "label": True}
    for row in result.removed.to_pylist()
    if text_of[row["kept"]] != text_of[row["id"]]
] + [
    {"a": one["text"], "b": other["text"], "label": False}
    for one, other in zip(rows[:40], rows[60:100])
    if one["text"] != other["text"]
]
measured = la.evaluate(labelled, resamples=100)
print(f"{measured['labelled']['similar']} similar pairs and {measured['labelled']['different']} others")
