"""Runs over objects with --work: killed while they read and while they upload, resumed, and refused."""

import gzip
import json
import os
import signal
import threading
import time

import pytest
from made import made_documents, write_jsonl
from object_servers import Proxy, https_server

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet as arrow_parquet  # noqa: E402
from object_bucket import FORMATS, large_lines  # noqa: E402

#: Part of an output that is uploaded with one request.
UPLOAD_PART = 8 << 20


class Hold:
    """Holds the requests of a proxy from the moment at which `is_over(request)` is true, and drops them in the end."""

    def __init__(self, is_over):
        self.is_over, self.reached, self.released = is_over, threading.Event(), threading.Event()

    def __call__(self, request):
        if self.reached.is_set() or self.is_over(request):
            self.reached.set()
            self.released.wait(120)
            raise ConnectionAbortedError


def read_more_than(limit):
    """Is true once more than `limit` bytes of objects were asked for."""
    asked, lock = [0], threading.Lock()

    def is_over(request):
        with lock:
            asked[0] += bytes_of(request)
            return asked[0] > limit

    return is_over


def bytes_of(request):
    return request.range[1] - request.range[0] if request.method == "GET" and request.range else 0


def bytes_read(proxy):
    return sum(map(bytes_of, proxy.requests))


def parts_sent(proxy):
    found = [request.query for request in proxy.requests if request.method == "PUT" and "partNumber" in request.query]
    return sorted(word for query in found for word in query.split("&") if word.startswith("partNumber"))


def kill_when(store, is_over, *arguments, with_signal=signal.SIGKILL, cwd=None):
    """Runs until `is_over` holds a request, and kills the run when all requests before it are answered. Returns the
    bytes of objects in these answers."""
    hold = Hold(is_over)
    with Proxy(store.address, before=hold) as proxy:
        run = store.start(*arguments, cwd=cwd, AWS_ENDPOINT_URL=proxy.address)
        assert hold.reached.wait(120), run.communicate(timeout=10)
        time.sleep(1)
        run.send_signal(with_signal)
        run.communicate(timeout=60)
        hold.released.set()
        return bytes_read(proxy)


def write_large(directory, name, rows):
    """Writes rows as the extension says."""
    file = write_jsonl(directory / "large.jsonl", rows)
    lines = file.read_bytes()
    if name.endswith(".parquet"):
        table = pa.table({"id": [row["id"] for row in rows], "text": [row["text"] for row in rows]})
        arrow_parquet.write_table(table, directory / name, row_group_size=500, use_dictionary=False)
    elif name.endswith(".gz"):
        (directory / name).write_bytes(gzip.compress(lines, 1))
    elif name.endswith(".json"):
        (directory / name).write_bytes(b"[" + lines.strip().replace(b"\n", b",\n") + b"]")
    return directory / name


@pytest.mark.parametrize("name", ["large.jsonl", "large.jsonl.gz", "large.json", "large.parquet"])
def test_a_run_that_was_killed_at_half_reads_only_the_rest(store, tmp_path, name):
    file = write_large(tmp_path, name, large_lines(20_000, 11))
    length = file.stat().st_size
    output = "out.parquet" if name.endswith(".parquet") else "out.jsonl"
    store.put(name, file.read_bytes())
    store.run("dedup", name, "-o", output, "--removed", "removed.tsv", cwd=tmp_path)
    work = tmp_path / "work"
    arguments = ["dedup", store.url(name), "-o", store.url(output), "--removed", store.url("removed.tsv")]
    arguments += ["--work", work]
    before = kill_when(store, read_more_than(length / 2), *arguments)
    assert 0.4 * length < before <= 0.5 * length
    assert store.keys() == [name]
    assert json.loads(store.run("status", work, "--json").out)["object_bytes"] == before
    after = kill_when(store, read_more_than(length / 4), *arguments, "--resume")
    with Proxy(store.address) as proxy:
        store.run(*arguments, "--resume", AWS_ENDPOINT_URL=proxy.address)
        read = [request.range for request in proxy.requests if bytes_of(request)]
        assert len(set(read)) == len(read)
        after += bytes_read(proxy)
    assert after <= 0.55 * length, (before, after, length)
    assert before + after == length
    assert store.get(output) == (tmp_path / output).read_bytes()
    removed = (tmp_path / "removed.tsv").read_bytes().replace(name.encode(), store.url(name).encode())
    assert store.get("removed.tsv") == removed
    assert store.open_uploads() == []
    assert not [file.name for file in work.iterdir() if not file.name.endswith((".step", "manifest", "lock"))]


def test_objects_that_were_read_are_not_read_again(store, tmp_path):
    rows = large_lines(6_000, 12)
    names = [f"in/{at}.jsonl" for at in range(6)]
    for at, name in enumerate(names):
        file = write_jsonl(tmp_path / "part.jsonl", rows[at::6])
        store.put(name, file.read_bytes())
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(file.read_bytes())
    store.run("dedup", "in", "-o", "out/", "--forms", "learn", cwd=tmp_path)
    arguments = ["dedup", store.url("in/"), "-o", store.url("out/"), "--forms", "learn", "--work", tmp_path / "work"]

    def is_inside_last(request):
        # The beginning of every object is requested when it is opened.
        is_range = request.method == "GET" and request.range is not None
        return is_range and request.path.endswith("/5.jsonl") and request.range[0] > 0

    kill_when(store, is_inside_last, *arguments)
    with Proxy(store.address) as proxy:
        store.run(*arguments, "--resume", AWS_ENDPOINT_URL=proxy.address)
        for name in names[:-1]:
            assert proxy.ranges_of(name) == [], name
        assert bytes_read(proxy) > 0
    for name in names:
        assert store.get(name.replace("in/", "out/")) == (tmp_path / name.replace("in/", "out/")).read_bytes(), name
    assert store.open_uploads() == []


@pytest.mark.parametrize("with_signal", [signal.SIGKILL, signal.SIGINT])
def test_an_upload_goes_on_after_a_kill(store, tmp_path, with_signal):
    file = write_jsonl(tmp_path / "in.jsonl", large_lines(20_000, 13))
    store.put("in.jsonl", file.read_bytes())
    store.run("dedup", file, "-o", tmp_path / "out.jsonl")
    expected = (tmp_path / "out.jsonl").read_bytes()
    assert len(expected) > 2 * UPLOAD_PART
    store.put("out.jsonl", b"before")
    work = tmp_path / "work"
    arguments = ["dedup", store.url("in.jsonl"), "-o", store.url("out.jsonl"), "--work", work]
    last = f"partNumber={len(expected) // UPLOAD_PART + 1}"
    kill_when(store, lambda request: last in request.query.split("&"), *arguments, with_signal=with_signal)
    assert store.get("out.jsonl") == b"before"
    assert len(store.open_uploads()) == 1
    assert "holds an unfinished run" in store.run(*arguments, code=2).err
    with Proxy(store.address) as proxy:
        store.run(*arguments, "--resume", AWS_ENDPOINT_URL=proxy.address)
        assert bytes_read(proxy) == 0
        sent = parts_sent(proxy)
        # The store had the first part for a long time, but a slow machine may not have noted the one before the last.
        assert last in sent
        assert "partNumber=1" not in sent
    assert store.get("out.jsonl") == expected
    assert store.open_uploads() == []
    # A finished run is not repeated: neither are its outputs written again, nor is more read than shows its fields.
    before = store.client.head_object(Bucket=store.bucket, Key="out.jsonl")["LastModified"]
    with Proxy(store.address) as proxy:
        store.run(*arguments, "--resume", AWS_ENDPOINT_URL=proxy.address)
        assert parts_sent(proxy) == []
        assert bytes_read(proxy) < len(expected) / 2
    assert store.client.head_object(Bucket=store.bucket, Key="out.jsonl")["LastModified"] == before


def test_uploads_that_nobody_continues_are_aborted(store, tmp_path):
    file = write_jsonl(tmp_path / "in.jsonl", made_documents(300))
    store.put("in.jsonl", file.read_bytes())
    arguments = ["dedup", store.url("in.jsonl"), "--work", tmp_path / "work", "-o"]

    def is_part(request):
        return "partNumber" in request.query

    kill_when(store, is_part, *arguments, store.url("one.jsonl"))
    assert [upload["Key"] for upload in store.open_uploads()] == ["one.jsonl"]
    # Another output: the upload to the first one is of no use.
    kill_when(store, is_part, *arguments, store.url("two.jsonl"), "--resume")
    assert [upload["Key"] for upload in store.open_uploads()] == ["two.jsonl"]
    # A run that is begun anew in the directory.
    os.remove(tmp_path / "work/manifest")
    store.run(*arguments, tmp_path / "out.jsonl")
    assert store.open_uploads() == []
    assert store.keys() == ["in.jsonl"]
    # An upload that the store has removed is begun anew.
    arguments[3] = tmp_path / "other"
    kill_when(store, is_part, *arguments, store.url("three.jsonl"))
    [upload] = store.open_uploads()
    store.client.abort_multipart_upload(Bucket=store.bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    def refuse_removed(request):
        # S3 answers so; the server of the tests has an error of its own.
        return 404 if upload["UploadId"] in request.query else None

    with Proxy(store.address, fault=refuse_removed) as proxy:
        store.run(*arguments, store.url("three.jsonl"), "--resume", AWS_ENDPOINT_URL=proxy.address)
        assert proxy.faults > 0
    assert store.get("three.jsonl") == (tmp_path / "out.jsonl").read_bytes()
    assert store.open_uploads() == []


def test_a_changed_object_is_named_with_both_versions(store, tmp_path):
    rows = made_documents(400)
    for name, part in [("a.jsonl", rows[:200]), ("b.jsonl", rows[200:])]:
        store.put(f"in/{name}", write_jsonl(tmp_path / name, part).read_bytes())
    arguments = ["dedup", store.url("in/"), "-o", store.url("out.jsonl"), "--work", tmp_path / "work"]
    kill_when(store, lambda request: "partNumber" in request.query, *arguments)
    before = store.client.head_object(Bucket=store.bucket, Key="in/b.jsonl")
    store.put("in/b.jsonl", write_jsonl(tmp_path / "b.jsonl", rows[201:]).read_bytes())
    now = store.client.head_object(Bucket=store.bucket, Key="in/b.jsonl")
    said = store.run(*arguments, "--resume", code=2).err
    assert f"the input {store.url('in/b.jsonl')} has changed since it was begun" in said
    for version in [before, now]:
        tag = version["ETag"].strip('"')
        assert f"{version['ContentLength']} bytes and the ETag {tag}" in said
    assert store.keys() == ["in/a.jsonl", "in/b.jsonl"]
    # The old content is the old version, because it has the old tag.
    store.put("in/b.jsonl", write_jsonl(tmp_path / "b.jsonl", rows[200:]).read_bytes())
    store.run(*arguments, "--resume")
    store.put("in/c.jsonl", b'{"id": "c", "text": "another object"}\n')
    assert "in/c.jsonl" in store.run(*arguments, "--removed", store.url("removed.tsv"), "--resume", code=2).err


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_bytes_with_a_directory(store, formats, tmp_path, name):
    store.put(name, (formats / name).read_bytes())
    suffix = name[name.index(".") :]
    local = tmp_path / f"out{suffix}"
    store.run("dedup", name, "-o", local, cwd=formats)
    arguments = ["dedup", store.url(name), "-o", store.url(f"out{suffix}"), "--work", tmp_path / "work"]
    store.run(*arguments)
    assert store.get(f"out{suffix}") == local.read_bytes()
    # The stored steps and objects that are read again.
    store.client.delete_object(Bucket=store.bucket, Key=f"out{suffix}")
    store.run(*arguments, "--resume")
    assert store.get(f"out{suffix}") == local.read_bytes()
    assert store.open_uploads() == []


def test_decontaminate_goes_on_after_a_kill(store, tmp_path):
    rows = large_lines(6_000, 14)
    question = "which harbour was the first of the coast to be lit by electric lamps in winter"
    for row in rows[::97]:
        row["text"] += f" {question} the harbour of Lindesnes"
    corpus = write_jsonl(tmp_path / "corpus.jsonl", rows)
    item = {"id": "1", "question": question, "answer": "the harbour of Lindesnes"}
    items = write_jsonl(tmp_path / "items.jsonl", [item])
    store.put("corpus.jsonl", corpus.read_bytes())
    store.put("items.jsonl", items.read_bytes())
    store.run("decontaminate", corpus, "--benchmarks", items, "-o", tmp_path / "out.jsonl")
    assert len((tmp_path / "out.jsonl").read_bytes()) < corpus.stat().st_size
    arguments = ["decontaminate", store.url("corpus.jsonl"), "--benchmarks", store.url("items.jsonl")]
    arguments += ["-o", store.url("out.jsonl"), "--work", tmp_path / "work"]
    length = corpus.stat().st_size
    kill_when(store, read_more_than(length / 2), *arguments)
    with Proxy(store.address) as proxy:
        store.run(*arguments, "--resume", AWS_ENDPOINT_URL=proxy.address)
        assert bytes_read(proxy) <= 0.55 * length
    assert store.get("out.jsonl") == (tmp_path / "out.jsonl").read_bytes()
    assert store.open_uploads() == []


@pytest.mark.parametrize("ranges", [True, False])
def test_files_of_servers_need_a_version(store, formats, tmp_path, ranges):
    served = tmp_path / "served"
    served.mkdir()
    (served / "plain.jsonl").write_bytes((formats / "plain.jsonl").read_bytes())
    store.run("dedup", "plain.jsonl", "-o", tmp_path / "local.jsonl", cwd=served)
    for is_tagged in [False, True]:
        with https_server(served, ranges, is_tagged=is_tagged) as (address, authority, requests):
            work = tmp_path / f"work-{is_tagged}"
            arguments = ["dedup", f"{address}/plain.jsonl", "-o", tmp_path / "out.jsonl", "--work", work]
            if not is_tagged:
                said = store.run(*arguments, code=2, SSL_CERT_FILE=authority).err
                assert f"{address}/plain.jsonl cannot be read again after an interruption" in said
                assert "states neither an ETag" in said
                continue
            store.run(*arguments, SSL_CERT_FILE=authority)
            assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
            gets = [request for request in requests if request.method == "GET" and request.range != (0, 1)]
            assert len({request.range for request in gets}) == len(gets) > 0
