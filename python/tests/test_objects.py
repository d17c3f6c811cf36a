"""Inputs and outputs of the command as objects of a store and as files of an HTTPS server. The store is moto, which
speaks the protocol of S3; a proxy in front of it fails, throttles and cuts."""

import gzip
import json
import os
import random
import signal
import subprocess
import threading
import time
import zlib

import pytest
from made import made_documents, write_jsonl
from object_servers import Proxy, https_server, moto_store, random_faults

boto3 = pytest.importorskip("boto3")
pytest.importorskip("moto.server")

pa = pytest.importorskip("pyarrow")
from pyarrow import csv as arrow_csv  # noqa: E402
from pyarrow import parquet as arrow_parquet  # noqa: E402

PART = 4 << 20


class Store:
    """A bucket of its own, and the command with the environment that reaches it."""

    def __init__(self, program, address, bucket):
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


@pytest.fixture(scope="module")
def address():
    with moto_store() as address:
        yield address


@pytest.fixture
def store(command, address, request):
    store = Store(command.program, address, f"test-{zlib.crc32(request.node.name.encode()):08x}")
    probe = store.start("pairs", store.url("none.jsonl"))
    if "--features object-store" in probe.communicate()[1]:
        pytest.skip("the command was built without object stores")
    return store


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


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    directory = tmp_path_factory.mktemp("formats")
    assert write_formats(directory, made_documents(500)) == sorted(FORMATS)
    return directory


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


def large_lines(count, seed):
    """Rows of about 1 kB of random words."""
    source = random.Random(seed)
    words = [f"w{number}" for number in range(5_000)]
    return [{"id": f"r{at}", "text": " ".join(source.choices(words, k=160))} for at in range(count)]


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


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_of_the_store_change_nothing(store, formats, seed):
    store.put_files(formats, "in/")
    with Proxy(store.address, random_faults(seed)) as proxy:
        for name in ["plain.jsonl", "packed.jsonl.zst", "table.parquet"]:
            check_like_local(store, formats, name, into=f"out-{name}/", AWS_ENDPOINT_URL=proxy.address)
        assert proxy.faults > 10


def test_faults_in_large_objects_change_nothing(store, tmp_path):
    # Of the bytes that are cut away, no two are equal for long: a wrong place would be seen.
    file = write_jsonl(tmp_path / "large.jsonl", large_lines(20_000, 4))
    assert file.stat().st_size > 16 << 20
    store.put("large.jsonl", file.read_bytes())
    store.run("dedup", file, "-o", tmp_path / "out.jsonl")
    with Proxy(store.address, random_faults(7, 0.4)) as proxy:
        url = store.url("large.jsonl")
        store.run("dedup", url, "-o", store.url("out.jsonl"), AWS_ENDPOINT_URL=proxy.address)
        parts = [request for request in proxy.requests if "partNumber" in request.query]
        assert len({request.query for request in parts}) > 1
        assert proxy.faults > 5
    assert store.get("out.jsonl") == (tmp_path / "out.jsonl").read_bytes()
    assert store.open_uploads() == []


def test_lasting_failures_name_the_object_and_leave_what_was_there(store, tmp_path):
    store.put("in.jsonl", write_jsonl(tmp_path / "in.jsonl", made_documents(100)).read_bytes())
    store.put("out.jsonl", b"before")

    def starts_failing(method, word):
        return lambda request: 503 if request.method == method and word in request.path + request.query else None

    cases = [
        (starts_failing("GET", "in.jsonl"), "in.jsonl", "SlowDown"),
        (starts_failing("PUT", "partNumber"), "out.jsonl", "SlowDown"),
        (starts_failing("POST", "uploadId"), "out.jsonl", "SlowDown"),
    ]
    with Proxy(store.address, cases[0][0]) as read, Proxy(store.address, cases[1][0]) as part:
        with Proxy(store.address, cases[2][0]) as end:
            started = time.monotonic()
            runs = [
                store.start(
                    "dedup",
                    store.url("in.jsonl"),
                    "-o",
                    store.url("out.jsonl"),
                    "--removed",
                    tmp_path / f"removed{at}.tsv",
                    AWS_ENDPOINT_URL=proxy.address,
                )
                for at, proxy in enumerate([read, part, end])
            ]
            for at, (run, (_, key, reason)) in enumerate(zip(runs, cases, strict=True)):
                said = run.communicate(timeout=150)[1]
                assert run.returncode == 2, said
                assert store.url(key) in said
                assert reason in said
                assert "<Message>" not in said
                if at < 2:
                    assert not (tmp_path / f"removed{at}.tsv").exists()
            assert 2 < time.monotonic() - started < 120
    assert store.get("out.jsonl") == b"before"
    assert store.open_uploads() == []


def test_an_interrupted_run_leaves_no_upload(store, tmp_path):
    store.put("in.jsonl", write_jsonl(tmp_path / "in.jsonl", made_documents(100)).read_bytes())
    arrived = threading.Event()

    def hold(request):
        if "partNumber" in request.query:
            arrived.set()
            time.sleep(3)

    with Proxy(store.address, before=hold) as proxy:
        run = store.start("dedup", store.url("in.jsonl"), "-o", store.url("out.jsonl"), AWS_ENDPOINT_URL=proxy.address)
        assert arrived.wait(60)
        assert store.open_uploads()
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)[1]
        assert run.returncode == 130, said
        assert store.open_uploads() == []
    assert store.keys() == ["in.jsonl"]


def test_missing_things_are_named(store, tmp_path):
    store.put("in.jsonl", write_jsonl(tmp_path / "in.jsonl", made_documents(30)).read_bytes())
    here, out = store.url("in.jsonl"), store.url("out.jsonl")

    def refused(*arguments, **changes):
        started = time.monotonic()
        run = store.run(*arguments, code=2, **changes)
        assert time.monotonic() - started < 30
        return run.err

    said = refused("pairs", store.url("none.jsonl"))
    assert f"cannot open {store.url('none.jsonl')}: there is no such object" in said
    assert "there is no such bucket" in refused("pairs", "s3://test-no-bucket/a.jsonl")
    assert "there is no such bucket" in refused("pairs", "s3://test-no-bucket/*.jsonl")
    assert "it begins with /" in refused("pairs", store.url("/in.jsonl"))
    assert "empty path segment" in refused("pairs", store.url("a//in.jsonl"))
    assert "permit it with AWS_ALLOW_HTTP=true" in refused("pairs", here, AWS_ALLOW_HTTP=None)
    said = refused("dedup", here, "-o", "s3://test-no-bucket/out.jsonl")
    assert "cannot create s3://test-no-bucket/out.jsonl: there is no such bucket" in said
    nothing = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    said = refused("pairs", here, AWS_METADATA_ENDPOINT="http://127.0.0.1:1", **nothing)
    assert "no credentials" in said
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in said
    assert store.bucket in said
    assert "Missing SecretAccessKey" in refused("pairs", here, AWS_SECRET_ACCESS_KEY=None)
    with Proxy(store.address, lambda request: 403 if request.method != "HEAD" else None) as proxy:
        said = refused("pairs", here, AWS_ENDPOINT_URL=proxy.address)
        assert f"{here}: access is denied (AccessDenied)" in said
        said = refused("dedup", tmp_path / "in.jsonl", "-o", out, AWS_ENDPOINT_URL=proxy.address)
        assert f"cannot create {out}: access is denied" in said
    assert store.keys() == ["in.jsonl"]


def test_outputs_that_cannot_be_written_are_refused_before_the_run(store, tmp_path):
    store.put("in.jsonl", write_jsonl(tmp_path / "in.jsonl", made_documents(30)).read_bytes())
    here = store.url("in.jsonl")

    def refused(*arguments):
        return store.run("dedup", here, *arguments, code=2, cwd=tmp_path).err

    assert "a server cannot be written to" in refused("-o", "https://localhost/out.jsonl")
    assert f"the output {here} is the input {here}" in refused("-o", here)
    out = store.url("out.jsonl")
    assert "cannot both be written" in refused("-o", out, "--removed", out)
    assert "http:// URL" not in refused("-o", "http://localhost/out.jsonl")
    assert "unknown scheme `hdfs`" in refused("-o", "hdfs://h/out.jsonl")
    assert store.keys() == ["in.jsonl"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl"]
    # A row that cannot be used ends the run, and none of the outputs appears.
    store.put("bad.jsonl", b'{"text": "a b c"}\n{"text": 7}\n')
    store.run("dedup", store.url("bad.jsonl"), "-o", out, "--rejected", store.url("no.txt"), "--strict", code=2)
    assert store.keys() == ["bad.jsonl", "in.jsonl"]
    assert store.open_uploads() == []


@pytest.mark.parametrize("ranges", [True, False])
def test_https_inputs_are_files_of_a_server(store, formats, tmp_path, ranges):
    served = tmp_path / "served"
    served.mkdir()
    for name in FORMATS:
        (served / name).write_bytes((formats / name).read_bytes())
    write_jsonl(served / "large.jsonl", large_lines(9_000, 8))
    with https_server(served, ranges) as (address, authority, requests):
        for name in ["packed.jsonl.gz", "list.json", "table.parquet", "large.jsonl"]:
            url = f"{address}/{name}"
            store.run("pairs", f"{url}?signature=secret", "-o", tmp_path / "remote.tsv", SSL_CERT_FILE=authority)
            store.run("pairs", name, "-o", tmp_path / "local.tsv", cwd=served)
            local = (tmp_path / "local.tsv").read_text().replace(name, url)
            assert (tmp_path / "remote.tsv").read_text() == local
        assert {request.query for request in requests} == {"signature=secret"}
        assert any(request.range and request.range[1] > 1 for request in requests) == ranges
        missing = store.run("pairs", f"{address}/none.jsonl?signature=secret", code=2, SSL_CERT_FILE=authority)
        assert f"cannot open {address}/none.jsonl: there is no such object" in missing.err
        assert "secret" not in missing.err
        if ranges:
            untrusted = store.run("pairs", f"{address}/large.jsonl?signature=secret", code=2)
            assert f"{address}/large.jsonl" in untrusted.err
            assert "certificate" in untrusted.err
            assert "secret" not in untrusted.err


def test_https_answers_that_are_cut_are_read_again_or_reported(store, tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    write_jsonl(served / "large.jsonl", large_lines(9_000, 8))
    store.run("pairs", "large.jsonl", "-o", tmp_path / "local.tsv", cwd=served)
    source = random.Random(1)
    with https_server(served, cut=lambda path: source.random() < 0.4) as (address, authority, _):
        url = f"{address}/large.jsonl"
        store.run("pairs", url, "-o", tmp_path / "remote.tsv", SSL_CERT_FILE=authority)
        assert (tmp_path / "remote.tsv").read_text() == (tmp_path / "local.tsv").read_text().replace("large.jsonl", url)
    with https_server(served, ranges=False, cut=lambda path: True) as (address, authority, _):
        url = f"{address}/large.jsonl"
        run = store.run("pairs", url, "-o", tmp_path / "none.tsv", code=2, SSL_CERT_FILE=authority)
        assert f"cannot read {url}" in run.err
        assert not (tmp_path / "none.tsv").exists()
