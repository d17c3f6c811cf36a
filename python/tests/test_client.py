"""The client, against a running service."""

import doctest
import errno
import importlib
import json
import pathlib
import pickle
import signal
import socket
import subprocess
import time

import pytest

import lookalike as la


@pytest.fixture(scope="module")
def service(command, tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = tmp_path_factory.mktemp("service")
    log = (data / "log").open("w")
    process = subprocess.Popen(
        [command.program, "serve", "--data", data / "data", "--listen", f"127.0.0.1:{port}"]
        + ["--snapshots", data / "snapshots"],
        stdout=log,
        stderr=log,
    )
    client = la.Client(f"http://127.0.0.1:{port}/")
    deadline = time.monotonic() + 30
    while not client.is_ready():
        assert process.poll() is None and time.monotonic() < deadline, (data / "log").read_text()
        time.sleep(0.05)
    yield client
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    log.close()


def test_texts_of_files(service, tmp_path):
    (tmp_path / "notes ü.html").write_text("<p>Fish &amp; <b>chips</b></p>", encoding="utf-8")
    assert service.extract_text(tmp_path / "notes ü.html") == "Fish & chips\n"
    assert service.extract_text(str(tmp_path / "notes ü.html"), "a.txt") == "<p>Fish &amp; <b>chips</b></p>"
    with pytest.raises(la.ServiceError, match="it is an image") as caught:
        service.extract_text(b"x", "a.png")
    assert (caught.value.status, caught.value.code) == (422, "bad_document")
    with pytest.raises(la.LookalikeError, match="name is None: give the name of the file"):
        service.extract_text(b"x")


def test_decisions_overrule_verdicts(service):
    news = service.create("decided")
    text = "the ferry leaves at seven and nobody misses it because the next one leaves at noon"
    news.check_and_insert([{"id": "a", "text": text}, {"id": "b", "text": f"{text}!"}])
    [result] = news.decide({"a_id": "a", "b_id": "b", "label": "different"})
    assert (result["outcome"], [one["id"] for one in result["changed"]]) == ("applied", ["b"])
    assert news.get("b")["verdict"] == "kept"
    page = news.decisions(document="b", limit=1)
    assert (page["total"], page["next"], page["decisions"][0]["label"]) == (1, None, "different")
    decision = page["decisions"][0]
    assert news.withdraw_decision(decision["a"], decision["b"])["changed"][0]["of"] == "a"
    # A line of a file of decisions, and one that is none.
    results = news.decide([decision, {"label": "same"}])
    assert [one.get("outcome") or one["problem"]["code"] for one in results] == ["applied", "bad_decision"]
    news.drop()


def test_passages_of_documents(service):
    text = "the ferry leaves at seven and nobody misses it because the next one leaves at noon"
    essay, source = {"id": "essay", "text": f"They say {text}."}, {"id": "source", "text": f"{text}, we hear."}
    found = service.document_passages([essay], [source], report=True, language="zh")
    assert [(one["document"], one["source"]) for one in found["passages"]] == [("essay", "source")]
    assert found["report"].startswith("<!doctype html>")
    found = service.document_passages([source, essay], min_length=20)
    assert (found["passages"], "report" in found, found["directed"]) == ([], False, False)
    assert len(service.document_passages([source, essay])["passages"]) == 1
    assert service.document_passages([source, essay], base=[text])["passages"] == []
    many = [{"id": str(number), "text": text} for number in range(3)]
    assert service.document_passages(many, max_documents=2)["passages"] == []
    assert len(service.document_passages(many, max_documents="none")["passages"]) == 3


def test_collection_life_cycle(service):
    news = service.create("news", threshold=0.75)
    first = news.check_and_insert({"id": "a", "text": "The ferry leaves at seven, nobody misses it."})
    assert (first["verdict"], first["seq"]) == ("kept", first["seq"])
    answers = news.check_and_insert(
        [
            {"id": "b", "text": "THE FERRY leaves at seven; nobody misses it!"},
            {"id": "ü/1", "text": "Something else entirely stands here.", "meta": {"a": 1}},
            {"id": "bad"},
        ]
    )
    assert [answer.get("verdict") for answer in answers] == ["duplicate", "kept", None]
    assert answers[0]["of"] == "a" and answers[0]["similarity"] == 1.0
    asked = news.query({"id": "q", "text": "the ferry leaves at seven nobody misses it"})
    assert asked["of"] == "a"
    assert news.query([{"id": "q", "text": "nothing like the others is this"}])[0]["verdict"] == "kept"
    assert news.get("ü/1")["id"] == "ü/1"
    assert news.stats()["kept"] == 2
    assert news.settings()["threshold"] == 0.75
    assert json.dumps(news.clusters())
    best = news.clusters(prefer="max:quality")["clusters"][0]["preferred"]
    assert best["document"]["id"] == "a" and best["value"] is None
    assert news.cluster("a", prefer="min:quality")["preferred"]["complete"] is True
    news.check_and_insert({"id": "c", "text": "The ferry leaves at seven, nobody misses it!"})
    newest = news.cluster("a", members=1)
    assert [one["id"] for one in newest["members"]] == ["c"]
    rest = news.cluster("a", members=1, after=newest["next"])
    assert [one["id"] for one in rest["members"]] == ["b"] and rest["next"] is None
    assert news.change(on_conflict="replace")["on_conflict"] == "replace"
    assert news.change(on_conflict="refuse") == news.settings()
    news.delete("ü/1")
    with pytest.raises(la.ServiceError) as missing:
        news.get("ü/1")
    assert missing.value.status in (404, 410) and missing.value.code and missing.value.detail
    assert "news" in json.dumps(service.collections())
    news.drop()
    with pytest.raises(la.ServiceError) as gone:
        service.collection("news").stats()
    assert gone.value.status == 404


def test_many_documents_are_listed_exported_and_deleted(service):
    many = service.create("many")
    rows = [{"id": str(at), "text": f"text {at} alone", "meta": {"odd": at % 2, "名": f"{at % 3}"}} for at in range(30)]
    many.check_and_insert(rows)
    page = many.documents(limit=20)
    ids = [one["id"] for one in page["documents"]]
    rest = many.documents(after=page["next"], text=True)
    ids += [one["id"] for one in rest["documents"]]
    assert ids == [row["id"] for row in rows] and rest["next"] is None
    assert "text" not in page["documents"][0] and rest["documents"][0]["text"] == "text 20 alone"
    found = many.documents(verdict="kept", meta={"odd": 1, "名": "2"})["documents"]
    assert [one["id"] for one in found] == ["5", "11", "17", "23", "29"]
    assert many.documents(meta={"odd": "1"})["documents"] == []
    assert [one and one["id"] for one in many.get_many(["7", "none", "3"])] == ["7", None, "3"]
    assert [one["deleted"] for one in many.delete_many(["7", "none"])] == [True, False]
    exported = list(many.export())
    assert [one["id"] for one in exported] == [id for id in ids if id != "7"]
    many.drop()


def test_verdicts_equal_dedup(service, documents):
    collection = service.create("same", threshold=0.6)
    rows = [{"id": one["id"], "text": one["text"]} for one in documents]
    answers = collection.check_and_insert(rows)
    kept = [answer["id"] for answer in answers if answer["verdict"] == "kept"]
    found = la.dedup([one["text"] for one in documents], threshold=0.6)
    assert kept == [documents[row]["id"] for row in found.kept_rows]


def test_refusals_and_lost_services_are_reported(service):
    with pytest.raises(la.ServiceError) as refused:
        service.create("x", threshold=7)
    assert refused.value.status == 422 or refused.value.status == 400
    assert "7" in refused.value.detail
    with pytest.raises(OSError):
        la.Client("http://127.0.0.1:9", timeout=1).collections()
    assert not la.Client("http://127.0.0.1:9", timeout=1).is_ready()
    assert isinstance(refused.value, la.LookalikeError)


def test_query_lists_matches(service):
    collection = service.create("matches", threshold=0.5)
    text = "The ferry leaves at seven, nobody misses it"
    collection.check_and_insert([{"id": "a", "text": f"{text} today."}, {"id": "b", "text": "A bridge."}])
    answer = collection.query({"text": text}, limit=2)
    assert [match["id"] for match in answer["matches"]] == ["a"] and answer["of"] == "a"
    assert "matches" not in collection.query({"text": text})
    for documents, limit, code in [
        ([{"text": text}], 2, "unsupported_type"),
        ({"text": text}, 0, "bad_request"),
        ({"text": text}, 1001, "bad_request"),
    ]:
        with pytest.raises(la.ServiceError) as refused:
            collection.query(documents, limit=limit)
        assert refused.value.code == code


def test_sources_of_a_text_are_found(service):
    collection = service.create("sources")
    taken = "the ferry leaves at seven and nobody on the island misses it because of the mail"
    collection.check_and_insert([{"id": "a", "text": f"As all say, {taken}."}, {"id": "b", "text": "A bridge."}])
    found = collection.passages(f"He says {taken} today.", limit=2)
    (source,) = found["sources"]
    assert (source["id"], source["copied"], found["found"]) == ("a", 16, 1)
    assert source["passages"][0]["b"] == {"start": 8, "end": 8 + len(taken), "line": 1}
    assert collection.passages(taken, min_length=17)["sources"] == []
    with pytest.raises(la.ServiceError) as refused:
        collection.passages(taken, min_length=11)
    assert refused.value.code == "bad_settings"


def test_errors_have_the_request_id(service):
    with pytest.raises(la.ServiceError) as missing:
        service.collection("absent").stats()
    first = missing.value.request_id
    assert first and "absent" in missing.value.detail
    with pytest.raises(la.ServiceError) as missing:
        service.collection("absent").stats()
    assert missing.value.request_id not in (None, first)
    assert pickle.loads(pickle.dumps(missing.value)).request_id == missing.value.request_id
    assert la.ServiceError(502, "http", "a proxy answers").request_id is None


def test_recipe_with_files_is_uploaded_and_used(service, tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "stop ü.txt").write_bytes(b"the\r\nof\r\n")
    toml = la.Recipe("words-1").toml + '[filter]\nstopwords = "tables/stop ü.txt"\n'
    (tmp_path / "own.toml").write_text(toml, encoding="utf-8")
    made = service.upload_recipe("own", tmp_path / "own.toml", ["tables/stop ü.txt"])
    assert made["files"][0]["name"] == "tables/stop ü.txt" and made["files"][0]["bytes"] == 9
    assert made["recipe_id"] == la.Recipe(tmp_path / "own.toml").hash
    # Under the name that the recipe has for the file, from anywhere.
    again = service.upload_recipe("own", str(tmp_path / "own.toml"), {"tables/stop ü.txt": tables / "stop ü.txt"})
    assert again == made
    collection = service.create("with-own", recipe="own")
    collection.check_and_insert({"id": "1", "text": "the ferry of the island"})
    assert collection.query({"text": "ferry island"})["of"] == "1"
    assert service.recipe("own")["collections"] == ["with-own"]
    assert [one["name"] for one in service.recipes()["recipes"]] == ["own"]
    with pytest.raises(la.ServiceError) as used:
        service.delete_recipe("own")
    assert used.value.code == "recipe_conflict" and "with-own" in used.value.detail
    collection.drop()
    service.delete_recipe("own")
    assert service.recipes() == {"recipes": []}


def test_bad_uploads_are_refused(service, tmp_path):
    (tmp_path / "own.toml").write_text(la.Recipe("words-1").toml + '[filter]\nstopwords = "stop.txt"\n')
    (tmp_path / "stop.txt").write_text("the\n")
    with pytest.raises(la.ServiceError) as missing:
        service.upload_recipe("own", tmp_path / "own.toml")
    assert missing.value.status == 422 and "stop.txt" in missing.value.detail
    with pytest.raises(la.ServiceError) as name:
        service.upload_recipe("Ow n/", tmp_path / "own.toml", ["stop.txt"])
    assert name.value.code == "bad_name"
    with pytest.raises(FileNotFoundError):
        service.upload_recipe("own", tmp_path / "own.toml", ["other.txt"])
    for recipe, files, said in [
        (la.Recipe("words-1"), [], "recipe is"),
        (tmp_path / "own.toml", "stop.txt", "files is 'stop.txt'"),
        (tmp_path / "own.toml", {'"; name="recipe': tmp_path / "stop.txt"}, "without quotes"),
        (tmp_path / "own.toml", {"a\r\nb": tmp_path / "stop.txt"}, "line ends"),
    ]:
        with pytest.raises(la.SettingError, match=said):
            service.upload_recipe("own", recipe, files)
    assert service.recipes() == {"recipes": []}


def test_alias_switches_to_another_collection(service):
    for name in ("posts-1", "posts-2"):
        service.create(name).check_and_insert({"id": "1", "text": f"The text of {name}."})
    service.set_alias("posts", "posts-1")
    assert service.aliases() == {"aliases": {"posts": "posts-1"}}
    posts = service.collection("posts")
    assert posts.query({"text": "The text of posts-1."})["verdict"] == "duplicate"
    changed = service.change_aliases({"posts": "posts-2", "older": "posts-1"})
    assert changed == {"aliases": {"older": "posts-1", "posts": "posts-2"}}
    assert posts.query({"text": "The text of posts-2."})["similarity"] == 1.0
    assert service.change_aliases(remove=["older"]) == {"aliases": {"posts": "posts-2"}}
    with pytest.raises(la.ServiceError) as unknown:
        service.set_alias("posts", "posts-3")
    assert unknown.value.status == 404
    service.delete_alias("posts")
    with pytest.raises(la.ServiceError) as gone:
        service.delete_alias("posts")
    assert gone.value.code == "no_alias"
    for name in ("posts-1", "posts-2"):
        service.collection(name).drop()


def test_snapshot_is_listed_restored_and_deleted(service):
    kept = service.create("kept")
    kept.check_and_insert({"id": "1", "text": "The ferry leaves at seven."})
    assert kept.snapshot("monday") == {"collection": "kept", "name": "monday"}
    kept.check_and_insert({"id": "2", "text": "A bridge."})
    with pytest.raises(la.ServiceError) as taken:
        kept.snapshot("monday")
    assert taken.value.code == "snapshot_conflict"
    listed = kept.snapshots()["snapshots"]
    assert [(one["collection"], one["name"]) for one in listed] == [("kept", "monday")]
    assert listed[0]["bytes"] > 0 and listed == service.snapshots()["snapshots"]
    beside = service.restore("kept-monday", "monday", source="kept")
    assert beside.stats()["rows"] == 1 and beside.get("1")["text"] == "The ferry leaves at seven."
    with pytest.raises(la.ServiceError) as exists:
        service.restore("kept", "monday")
    assert exists.value.status == 409
    kept.drop()
    assert service.restore("kept", "monday").stats()["rows"] == 1
    kept.delete_snapshot("monday")
    assert service.snapshots() == {"snapshots": []}
    with pytest.raises(la.ServiceError) as gone:
        service.restore("third", "monday", source="kept")
    assert gone.value.code == "no_snapshot"
    kept.drop()
    beside.drop()


def test_example_of_the_documents(service, tmp_path, monkeypatch):
    """As it stands in docs/python/service.md, but for the address and the key."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "python" / "service.md").read_text(encoding="utf-8")
    example = page.split("```python\n", 1)[1].split("```", 1)[0]
    example = example.replace("http://127.0.0.1:7600", service.url).replace(', key="…"', "")
    (tmp_path / "own.toml").write_text(la.Recipe("words-1").toml + '[filter]\nstopwords = "stop.txt"\n')
    (tmp_path / "stop.txt").write_text("the\n")
    monkeypatch.chdir(tmp_path)
    exec(example, {"la": la, "documents": [{"id": "2", "text": "A bridge."}]})
    assert service.collection("news-monday").stats()["rows"] == 2
    assert service.aliases() == {"aliases": {"live": "news-2"}}
    service.delete_alias("live")
    service.delete_snapshot("news", "monday")
    for name in ("news", "news-2", "news-monday"):
        service.collection(name).drop()
    service.delete_recipe("own")


def test_examples_of_the_client(service):
    """As they stand, but for the address."""
    runner = doctest.DocTestRunner()
    for name in ("_client", "_async_client"):
        module = importlib.import_module(f"lookalike.{name}")
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, globs={"la": la}):
            for example in test.examples:
                example.source = example.source.replace("http://127.0.0.1:7600", service.url)
            runner.run(test)
    assert runner.failures == 0 and runner.tries > 10


def test_a_lost_connection_names_its_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(ConnectionRefusedError, match=address) as lost:
        la.Client(address, retries=0).collections()
    assert lost.value.errno == errno.ECONNREFUSED and str(lost.value).count("Errno") == 1
