"""A bucket in an object store, and files of documents in every format that tests put into it."""

import gzip
import json
import os
import random
import subprocess

import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet as arrow_parquet

FORMATS = [
    "plain.jsonl",
    "packed.jsonl.gz",
    "packed.jsonl.zst",
    "list.json",
    "table.csv",
    "table.tsv",
    "table.parquet",
    "lines.txt",
]


class Store:
    """A bucket of its own, and the command with the environment that reaches it."""

    def __init__(self, program, address, bucket):
        import boto3

        self.program, self.address, self.bucket = program, address, bucket
        self.client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket=bucket)

    def environment(self, **changes):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SSL_"))}
        kept |= {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        kept |= {name: value for name, value in changes.items() if value is not None}
        return {name: value for name, value in kept.items() if changes.get(name, value) is not None}

    def start(self, *arguments, cwd=None, **changes):
        return subprocess.Popen(
            [self.program, *map(str, arguments)],
            env=self.environment(**changes),
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments, code=0, cwd=None, **changes):
        process = self.start(*arguments, cwd=cwd, **changes)
        try:
            process.out, process.err = process.communicate(timeout=150)
        finally:
            process.kill()
        assert process.returncode == code, process.err
        return process

    def url(self, key=""):
        return f"s3://{self.bucket}/{key}"

    def put(self, key, content):
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def put_files(self, directory, prefix=""):
        for file in sorted(directory.rglob("*")):
            if file.is_file():
                self.put(prefix + file.relative_to(directory).as_posix(), file.read_bytes())

    def get(self, key):
        return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def keys(self, prefix=""):
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [found["Key"] for found in listed.get("Contents", [])]

    def open_uploads(self):
        return self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])


def write_formats(directory, documents):
    """Writes documents in every format. Returns the names."""
    rows = [{"id": row["id"], "text": row["text"]} for row in documents]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    (directory / "plain.jsonl").write_bytes(lines)
    (directory / "packed.jsonl.gz").write_bytes(gzip.compress(lines))
    with pa.CompressedOutputStream(os.fspath(directory / "packed.jsonl.zst"), "zstd") as packed:
        packed.write(lines)
    (directory / "list.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    table = pa.table({"id": [row["id"] for row in rows], "text": [row["text"] for row in rows]})
    arrow_csv.write_csv(table, directory / "table.csv")
    tabbed = "".join(f"{row['id']}\t{' '.join(row['text'].split())}\n" for row in rows)
    (directory / "table.tsv").write_text("id\ttext\n" + tabbed, encoding="utf-8")
    arrow_parquet.write_table(table, directory / "table.parquet", row_group_size=100)
    lines = "".join(" ".join(row["text"].split()) + "\n" for row in rows)
    (directory / "lines.txt").write_text(lines, encoding="utf-8")
    return sorted(file.name for file in directory.iterdir())


def check_like_local(store, directory, name, prefix="in/", into="out/", **changes):
    """Deduplicates a file and its object. All outputs have the same bytes, apart from the names of the input."""
    outputs = {"-o": name, "--removed": "removed.tsv", "--clusters": "clusters.jsonl", "--rejected": "rejected.txt"}
    local, remote = [], []
    (directory / "out").mkdir(exist_ok=True)
    for option, output in outputs.items():
        local += [option, f"out/{output}"]
        remote += [option, store.url(into + output)]
    store.run("dedup", name, *local, cwd=directory)
    store.run("dedup", store.url(prefix + name), *remote, cwd=directory, **changes)
    for output in outputs.values():
        expected = (directory / "out" / output).read_bytes()
        if output != name:
            known = store.url(prefix + name).encode()
            expected = expected.replace(name.encode(), known)
        assert store.get(into + output) == expected, output
    assert store.open_uploads() == []


def large_lines(count, seed):
    """Rows of about 1 kB of random words."""
    source = random.Random(seed)
    words = [f"w{number}" for number in range(5_000)]
    return [{"id": f"r{at}", "text": " ".join(source.choices(words, k=160))} for at in range(count)]
