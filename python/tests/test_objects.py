"""Inputs and outputs of the command as objects of a store. The store is moto, which speaks the protocol of S3; a proxy
in front of it shows what is requested."""

import os
import random
import threading
import time

import pytest
from made import made_documents, write_jsonl
from object_servers import Proxy

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet as arrow_parquet  # noqa: E402
from object_bucket import FORMATS, check_like_local, large_lines  # noqa: E402

PART = 4 << 20


@pytest.mark.parametrize("name", FORMATS)
def test_dedup_between_objects_is_dedup_between_files(store, formats, name):
    store.put("in/" + name, (formats / name).read_bytes())
    check_like_local(store, formats, name)


def test_prefixes_and_patterns_name_objects_in_the_order_of_files(store, tmp_path):
    documents = made_documents(300)
    names = ["a.jsonl", "a/z.jsonl", "a-b.jsonl", "b/c/d.jsonl", "b/x y+%20.jsonl"]
    names += ["b/.hidden.jsonl", "_mark/e.jsonl", "b/n.bin"]
    for at, name in enumerate(names):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        write_jsonl(tmp_path / "in" / name, documents[at * 30 : at * 30 + 30])
    store.put_files(tmp_path)

    def found(*inputs):
        done = store.run("fingerprint", *inputs, "-o", "prints.tsv", cwd=tmp_path)
        return (tmp_path / "prints.tsv").read_bytes(), done.err

    whole = found("in")
    assert "n.bin" in whole[1]
    for prefix in ["in/", "in"]:
        prints, said = found(store.url(prefix))
        assert prints == whole[0]
        assert store.url("in/b/n.bin") in said
    assert found("in/*.jsonl")[0] == found(store.url("in/*.jsonl"))[0]
    assert found("in/*/*.jsonl")[0] == found(store.url("in/*/*.jsonl"))[0]
    assert found("in/**/*.jsonl")[0] == found(store.url("in/**/*.jsonl"))[0]
    assert found("in/a[-]b.jsonl")[0] == found(store.url("in/a[-]?.jsonl"))[0]
    assert found("in/b/x y+%20.jsonl")[0] == found(store.url("in/b/x y+%20.jsonl"))[0]

    refused = store.run("fingerprint", store.url("in/c*.jsonl"), code=2)
    assert f"no object matches `{store.url('in/c*.jsonl')}`" in refused.err
    refused = store.run("fingerprint", store.url("in/[.jsonl"), code=2)
    assert "is not a valid pattern" in refused.err

    store.run("dedup", "in", "-o", "mirror/", cwd=tmp_path)
    store.run("dedup", store.url("in"), "-o", store.url("mirror/"))
    mirrored = [key.removeprefix("mirror/") for key in store.keys("mirror/")]
    local = (tmp_path / "mirror").rglob("*.jsonl")
    assert mirrored == sorted(file.relative_to(tmp_path / "mirror").as_posix() for file in local)
    for name in mirrored:
        assert store.get("mirror/" + name) == (tmp_path / "mirror" / name).read_bytes()


def test_each_command_reads_objects(store, formats, tmp_path):
    store.put_files(formats, "in/")
    packed = "packed.jsonl.zst"

    def same(*arguments):
        """Runs a command over a file and over its object, and compares what they write."""
        local = store.run(*[packed if it is INPUT else it for it in arguments], cwd=formats)
        url = store.url("in/" + packed)
        remote = store.run(*[url if it is INPUT else it for it in arguments], cwd=formats)
        assert remote.out.replace(url, packed) == local.out
        return local.out

    INPUT = object()
    assert same("pairs", INPUT)
    assert same("fingerprint", INPUT)
    assert same("segment", INPUT)
    assert same("passages", INPUT)
    for place, planted in [(packed, "local"), (store.url("in/" + packed), "remote")]:
        labels = tmp_path / f"{planted}.csv"
        store.run("plant", place, "-o", tmp_path / f"{planted}.jsonl", "--labels", labels, cwd=formats)
        assert (tmp_path / f"{planted}.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
    store.run("idf", store.url("in/" + packed), "-o", store.url("idf.tsv"))
    store.run("idf", packed, "-o", tmp_path / "idf.tsv", cwd=formats)
    assert store.get("idf.tsv") == (tmp_path / "idf.tsv").read_bytes()
    store.run("index", "build", tmp_path / "index", store.url("in/table.parquet"))
    store.run("index", "build", tmp_path / "local", formats / "table.parquet")
    for index in ["index", "local"]:
        store.run("search", tmp_path / index, store.url("in/plain.jsonl"), "-o", tmp_path / f"{index}.tsv")
    assert (tmp_path / "index.tsv").read_bytes() == (tmp_path / "local.tsv").read_bytes() != b""
    compared = store.run("compare", store.url("in/plain.jsonl#d7"), store.url("in/table.csv:9"))
    assert store.url("in/plain.jsonl, row 8") in compared.out
    refused = store.run("index", "build", store.url("index"), store.url("in/plain.jsonl"), code=2)
    assert "an index is a directory of this machine" in refused.err


def test_binary_fingerprints_are_read_from_objects(store, tmp_path):
    source = random.Random(3)
    numbers = [source.getrandbits(64) for _ in range(50_000)]
    codes = b"".join(number.to_bytes(8, "little") for number in numbers)
    (tmp_path / "queries.txt").write_text("".join(f"{number:016x}\n" for number in numbers[::50]))
    (tmp_path / "codes.u64").write_bytes(codes)
    store.put("codes.u64", codes)
    for index, place in [("local", "codes.u64"), ("remote", store.url("codes.u64"))]:
        store.run("index", "build", index, place, "--fingerprints", cwd=tmp_path)
        store.run("search", index, "queries.txt", "--fingerprints", "-o", f"{index}.tsv", cwd=tmp_path)
    assert (tmp_path / "local.tsv").read_bytes() == (tmp_path / "remote.tsv").read_bytes() != b""


def test_parquet_is_read_by_ranges_and_each_part_once(store, tmp_path):
    documents = made_documents(900)
    source = random.Random(5)
    table = pa.table(
        {
            "id": [row["id"] for row in documents],
            "text": [row["text"] for row in documents],
            "picture": [source.randbytes(50_000) for _ in documents],
        }
    )
    file = tmp_path / "large.parquet"
    arrow_parquet.write_table(table, file, row_group_size=300, use_dictionary=False)
    length = file.stat().st_size
    store.put("large.parquet", file.read_bytes())
    store.run("pairs", file, "-o", tmp_path / "local.tsv")
    with Proxy(store.address) as proxy:
        store.run("pairs", store.url("large.parquet"), "-o", tmp_path / "remote.tsv", AWS_ENDPOINT_URL=proxy.address)
        read = proxy.ranges_of("/large.parquet")
        assert None not in read
        assert sum(end - start for start, end in read) < length / 2, (read, length)
        assert len(set(read)) == len(read)
        proxy.requests.clear()
        out = store.url("out.parquet")
        store.run("dedup", store.url("large.parquet"), "-o", out, AWS_ENDPOINT_URL=proxy.address)
        read = proxy.ranges_of("/large.parquet")
        assert sum(end - start for start, end in read) <= length
        assert len(set(read)) == len(read)
    local = (tmp_path / "local.tsv").read_bytes().replace(os.fsencode(file), store.url("large.parquet").encode())
    assert (tmp_path / "remote.tsv").read_bytes() == local
    store.run("dedup", file, "-o", tmp_path / "out.parquet")
    assert store.get("out.parquet") == (tmp_path / "out.parquet").read_bytes()


def test_lines_are_read_once(store, tmp_path):
    file = write_jsonl(tmp_path / "large.jsonl", large_lines(9_000, 1))
    length = file.stat().st_size
    assert length > 2 * PART
    store.put("large.jsonl", file.read_bytes())
    with Proxy(store.address) as proxy:
        url = store.url("large.jsonl")
        store.run("dedup", url, "-o", store.url("out.jsonl"), AWS_ENDPOINT_URL=proxy.address)
        read = sorted(proxy.ranges_of("/large.jsonl"))
        assert [start for start, _ in read[1:]] == [end for _, end in read[:-1]]
        assert (read[0][0], read[-1][1]) == (0, length)
    store.run("dedup", file, "-o", tmp_path / "out.jsonl")
    assert store.get("out.jsonl") == (tmp_path / "out.jsonl").read_bytes()


@pytest.mark.parametrize("options", [[], ["--document-per-file", "--format", "text"]])
def test_small_objects_are_requested_before_their_turn(store, tmp_path, options):
    documents = made_documents(40)
    for at in range(20):
        name = f"in/{at:02}." + ("txt" if options else "jsonl")
        (tmp_path / "in").mkdir(exist_ok=True)
        write_jsonl(tmp_path / name, documents[at * 2 : at * 2 + 2])
    store.put_files(tmp_path)
    lock, running, most = threading.Lock(), [], []

    def hold(request):
        if request.range:
            with lock:
                running.append(request)
                most.append(len(running))
            time.sleep(0.1)
            with lock:
                running.remove(request)

    with Proxy(store.address, before=hold) as proxy:
        out = tmp_path / "out.tsv"
        arguments = ["fingerprint", *options, "--threads", 1, "-o", out]
        store.run(*arguments, store.url("in/"), AWS_ENDPOINT_URL=proxy.address)
        read = [request.path for request in proxy.requests if request.range]
        assert len(read) == len(set(read)) == 20
        assert max(most) > 4
    remote = out.read_bytes().replace(store.url().encode(), b"")
    store.run(*arguments, "in/", cwd=tmp_path)
    assert out.read_bytes() == remote


@pytest.mark.parametrize("name", ["large.jsonl", "large.parquet"])
def test_an_object_that_changes_is_an_error_that_names_it(store, tmp_path, name):
    rows, others = large_lines(16_000, 1), large_lines(16_000, 2)
    file = tmp_path / name
    if name.endswith(".jsonl"):
        first, second = (write_jsonl(file, them).read_bytes() for them in (rows, others))
        # The lengths are equal, so that only the version tells the two apart.
        length = min(len(first), len(second))
        first, second = first[:length], second[:length]
    else:
        contents = []
        for them in (rows, others):
            arrow_parquet.write_table(pa.Table.from_pylist(them), file, compression="none", row_group_size=1_000)
            contents.append(file.read_bytes())
        first, second = contents
    store.put(name, first)
    seen = []

    def replace(request):
        if request.method == "GET" and request.path.endswith(name):
            seen.append(request)
            if len(seen) == 3:
                store.put(name, second)

    with Proxy(store.address, before=replace) as proxy:
        out = store.url("out" + os.path.splitext(name)[1])
        run = store.run("dedup", store.url(name), "-o", out, code=2, AWS_ENDPOINT_URL=proxy.address)
    assert store.url(name) in run.err
    assert "was changed while it was being read" in run.err
    assert store.keys() == [name]
    assert store.open_uploads() == []


def test_an_object_that_is_removed_is_an_error_that_names_it(store, tmp_path):
    store.put("gone.jsonl", write_jsonl(tmp_path / "gone.jsonl", large_lines(9_000, 1)).read_bytes())
    seen = []

    def remove(request):
        if request.method == "GET" and request.path.endswith("gone.jsonl"):
            seen.append(request)
            if len(seen) == 2:
                store.client.delete_object(Bucket=store.bucket, Key="gone.jsonl")

    with Proxy(store.address, before=remove) as proxy:
        run = store.run("pairs", store.url("gone.jsonl"), code=2, AWS_ENDPOINT_URL=proxy.address)
    assert f"{store.url('gone.jsonl')} was changed while it was being read" in run.err
