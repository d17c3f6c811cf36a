"""A store that fails, throttles, cuts its answers or refuses, and runs that are interrupted."""

import signal
import threading
import time

import pytest
from made import made_documents, write_jsonl
from object_servers import Proxy, random_faults

pytest.importorskip("pyarrow")
from object_bucket import check_like_local, large_lines  # noqa: E402


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
