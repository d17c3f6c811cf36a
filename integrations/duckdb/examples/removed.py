"""Prints what the extension beside this directory removes of a JSONL file with the fields `id` and `text`.

    python removed.py FILE
"""

import sys

import duckdb

connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.load_extension("./lookalike.duckdb_extension")
connection.execute("CREATE TABLE posts AS FROM read_json(?)", [sys.argv[1]])
removed = connection.execute("FROM lookalike.near_duplicates('posts', text, id, 0.75)").fetchall()
for document, kept, similarity, _ in removed:
    print(f"{document} is a near-duplicate of {kept}: {similarity:.3f}")
if not removed:
    sys.exit("there is no near-duplicate")
