"""Inputs that are files of an HTTPS server."""

import random

import pytest
from made import write_jsonl
from object_servers import https_server

pytest.importorskip("pyarrow")
from object_bucket import FORMATS, large_lines  # noqa: E402


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
