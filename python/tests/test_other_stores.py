"""Inputs and outputs of the command in Google Cloud Storage and in Azure. Google's XML protocol is that of S3 with
other credentials, so a proxy in front of moto that exchanges the credentials stands for it. Azure is Azurite, where
`azurite-blob` is installed (`npm install --global azurite`)."""

import json
import os
import shutil
import subprocess

import pytest
from made import made_documents, write_jsonl
from object_servers import Proxy, azurite_store, moto_store

# The account that every Azurite has, and its key, which is no secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# Enough for two parts of an upload.
DOCUMENTS = 22_000


class OtherStore:
    """A bucket, and the command with the environment that reaches it."""

    def __init__(self, program, scheme, environment):
        self.program, self.scheme = program, scheme
        clouds = ("AWS_", "GOOGLE_", "AZURE_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(clouds)}
        self.environment |= environment

    def url(self, key):
        return f"{self.scheme}://crawl/{key}"

    def run(self, *arguments, cwd, code=0):
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=150)
        assert done.returncode == code, done.stderr
        return done.stderr


@pytest.fixture(scope="module")
def google(command, tmp_path_factory):
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("moto.server")
    scope = "test/20260101/us-east-1/s3/aws4_request"
    signed = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}
    with moto_store() as address, Proxy(address, headers=signed) as proxy:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=address, **keys)
        client.create_bucket(Bucket="crawl")
        account = {"gcs_base_url": proxy.address, "disable_oauth": True}
        account |= {"client_email": "", "private_key": "", "private_key_id": ""}
        file = tmp_path_factory.mktemp("google") / "account.json"
        file.write_text(json.dumps(account))
        store = OtherStore(command.program, "gs", {"GOOGLE_SERVICE_ACCOUNT": str(file)})
        store.put = lambda key, content: client.put_object(Bucket="crawl", Key=key, Body=content)
        store.get = lambda key: client.get_object(Bucket="crawl", Key=key)["Body"].read()
        yield store


@pytest.fixture(scope="module")
def azure(command, tmp_path_factory):
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed")
    blobs = pytest.importorskip("azure.storage.blob")
    with azurite_store(program, tmp_path_factory.mktemp("azurite")) as address:
        account = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={address}/{ACCOUNT}"
        service = blobs.BlobServiceClient.from_connection_string("DefaultEndpointsProtocol=http;" + account)
        container = service.create_container("crawl")
        environment = {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": address,
        }
        store = OtherStore(command.program, "az", environment)
        store.put = lambda key, content: container.upload_blob(key, content, overwrite=True)
        store.get = lambda key: container.download_blob(key).readall()
        yield store


@pytest.fixture(params=["google", "azure"])
def store(request, tmp_path):
    store = request.getfixturevalue(request.param)
    if "--features object-store" in store.run("pairs", store.url("none.jsonl"), cwd=tmp_path, code=2):
        pytest.skip("the command was built without object stores")
    return store


def test_dedup_between_objects_is_dedup_between_files(store, tmp_path):
    write_jsonl(tmp_path / "news.jsonl", made_documents(DOCUMENTS))
    store.put("in/news.jsonl", (tmp_path / "news.jsonl").read_bytes())
    store.run("dedup", "news.jsonl", "-o", "kept.jsonl", "--removed", "removed.tsv", cwd=tmp_path)
    outputs = ["-o", store.url("out/kept.jsonl"), "--removed", store.url("out/removed.tsv")]
    store.run("dedup", store.url("in/news.jsonl"), *outputs, cwd=tmp_path)
    kept = (tmp_path / "kept.jsonl").read_bytes()
    assert len(kept) > 8 << 20
    assert store.get("out/kept.jsonl") == kept
    removed = (tmp_path / "removed.tsv").read_bytes().replace(b"news.jsonl", store.url("in/news.jsonl").encode())
    assert store.get("out/removed.tsv") == removed


def test_patterns_and_mirrored_outputs(store, tmp_path):
    documents = made_documents(90)
    (tmp_path / "parts").mkdir()
    for at, name in enumerate(["a.jsonl", "b c.jsonl", "d/e+%20.jsonl"]):
        (tmp_path / "parts" / name).parent.mkdir(exist_ok=True)
        write_jsonl(tmp_path / "parts" / name, documents[at * 30 : at * 30 + 30])
        store.put("parts/" + name, (tmp_path / "parts" / name).read_bytes())
    store.run("dedup", "parts", "-o", "mirror/", cwd=tmp_path)
    store.run("dedup", store.url("parts"), "-o", store.url("mirror/"), cwd=tmp_path)
    mirrored = sorted(file for file in (tmp_path / "mirror").rglob("*") if file.is_file())
    assert len(mirrored) == 3
    for file in mirrored:
        assert store.get(file.relative_to(tmp_path).as_posix()) == file.read_bytes()
    store.run("dedup", "parts/a.jsonl", "parts/b c.jsonl", "-o", "two.jsonl", cwd=tmp_path)
    store.run("dedup", store.url("parts/*.jsonl"), "-o", store.url("two.jsonl"), cwd=tmp_path)
    assert store.get("two.jsonl") == (tmp_path / "two.jsonl").read_bytes()


def test_missing_objects_and_buckets_are_named(store, tmp_path):
    said = store.run("dedup", store.url("in/none.jsonl"), "--dry-run", cwd=tmp_path, code=2)
    assert "in/none.jsonl" in said
    elsewhere = f"{store.scheme}://nowhere/news.jsonl"
    assert "nowhere" in store.run("dedup", elsewhere, "--dry-run", cwd=tmp_path, code=2)
