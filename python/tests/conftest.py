"""Fixtures of all tests: the command, a made corpus, a bucket in an S3 store, files in every format."""

import zlib

import pytest
from built_command import command  # noqa: F401
from made import made_documents


#: Files of tests that wait longest for other servers. They come first, so that no worker runs one alone at the end;
#: `--no-loadscope-reorder` keeps this order.
SLOW_FILES = ("test_object_failures", "test_object_resuming", "test_https", "test_objects", "test_description", "test_sail")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in SLOW_FILES)


@pytest.fixture(scope="session")
def documents():
    return made_documents(600)


@pytest.fixture(scope="module")
def address():
    """The address of an S3 store."""
    pytest.importorskip("boto3")
    pytest.importorskip("moto.server")
    from object_servers import moto_store

    with moto_store() as address:
        yield address


@pytest.fixture
def store(command, address, request):
    """A bucket of its own in the store."""
    from object_bucket import Store

    store = Store(command.program, address, f"test-{zlib.crc32(request.node.name.encode()):08x}")
    probe = store.start("pairs", store.url("none.jsonl"))
    if "--features object-store" in probe.communicate()[1]:
        pytest.skip("the command was built without object stores")
    return store


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """A folder with the same documents in every format."""
    from object_bucket import FORMATS, write_formats

    directory = tmp_path_factory.mktemp("formats")
    assert write_formats(directory, made_documents(500)) == sorted(FORMATS)
    return directory
