"""A client of the service ``lookalike serve`` that needs only the standard library."""

from __future__ import annotations

import json
import os
import re
import threading
import urllib.parse
import uuid
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from ._arguments import given_whole, needed, number, refuse, refuse_type
from ._connections import PooledRequest, PooledResponse, ReplayableBody, ReplicaConnections
from ._engine import __version__
from ._errors import ServiceError, as_missing_file

#: A document with its fields, or a text alone.
Document = Union[Mapping[str, Any], str]
FilePath = Union[str, "os.PathLike[str]"]

#: Header with the number of a record of the shared log: of a write in an answer, to wait for in a request.
_POSITION_HEADER = "Lookalike-Position"


class Client:
    """A service at a URL, such as ``http://127.0.0.1:7600``, or its replicas at several.

    ``key`` is sent as a bearer token, ``timeout`` is in seconds. A refusal of the service raises
    :class:`ServiceError`; a request that does not reach it raises ``OSError``. Connections stay open for the next
    request, from any thread.

    A request that is lost, or that the service asks to repeat (429, 503), is sent again up to ``retries`` times, if
    repeating it changes nothing: reading, queries, and inserts in which every document has an ``id``, because the
    service answers a document that it knows with its first answer. One case is not safe: in a collection with
    ``on_conflict: replace``, a repetition can put an older content back that another client has replaced meanwhile.

    ``url`` can have several addresses, as a list or separated by commas: ``"http://a:7600,http://b:7600"``. The one
    that answered last is asked first. After a lost connection, a timeout (5 seconds to connect), or an answer 502, 503
    or 504 that another replica may not give, the client goes on with the next one under the same rule; each of the
    ``retries`` then asks all of them. A request that is not repeatable goes on only where nothing of it was done.
    Errors name every address that was tried. Give clients that insert the same order, because replicas that receive
    inserts write one after another.

    With ``read_your_writes``, the default for several addresses, each request asks the replica to wait until it has all
    writes of this client. ``position`` is the number of the last record of the shared log that a write of this client made,
    or None before the first one. Another client to which it is given waits for these writes; None forgets them, for example
    after the service was restored to an earlier time. ``addresses`` are those of the service, and ``url`` has them separated
    by commas.

    The representation shows no key. A pickle of a client, for example for the tasks of a cluster, has the key in the clear.

    >>> import lookalike as la
    >>> client = la.Client("http://127.0.0.1:7600")
    >>> news = client.create("news", threshold=0.8, window="2d")
    >>> news.check_and_insert({"id": "1", "text": "The ferry leaves at seven."})["verdict"]
    'kept'
    >>> try:
    ...     client.collection("olds").stats()
    ... except la.ServiceError as error:
    ...     print(error.status, error.code, error.request_id is not None)
    404 no_collection True
    >>> news.drop()
    """

    def __init__(
        self,
        url: Union[str, Sequence[str]],
        key: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 3,
        *,
        read_your_writes: Optional[bool] = None,
    ) -> None:
        self.addresses = _checked_addresses(url)
        if not 0 < float(number("timeout", needed("timeout", timeout, "seconds above 0")) or 0) < float("inf"):
            refuse("timeout", timeout, "seconds above 0")
        self.url = ",".join(self.addresses)
        self.timeout = timeout
        self.retries = given_whole("retries", retries, 0, 100)
        self.read_your_writes = len(self.addresses) > 1 if read_your_writes is None else read_your_writes
        self.position: Optional[int] = None
        self._key = key
        self._position_lock = threading.Lock()
        self._connections = ReplicaConnections(self.addresses, timeout, self.retries)

    def __repr__(self) -> str:
        return f"<Client {self.url}>"

    def collection(self, name: str) -> "Collection":
        """Returns a collection by its name, without a check that it exists."""
        return Collection(self, name)

    def collections(self) -> Any:
        """Lists the collections."""
        return self.call("GET", "/v1/collections")

    def create(self, name: str, **settings: Any) -> "Collection":
        """Creates a collection. The settings have the names of its JSON, for example ``threshold``."""
        self.call("PUT", f"/v1/collections/{_quoted(name)}", settings)
        return Collection(self, name)

    def restore(self, name: str, snapshot: str, source: Optional[str] = None) -> "Collection":
        """Creates a collection from a snapshot of the collection ``source``, by default of the same name.

        The name must be free: a collection is never overwritten. The call ends when every byte is checked and
        on disk, so give the client a ``timeout`` that is long enough for the size."""
        body = {"snapshot": snapshot} if source is None else {"snapshot": snapshot, "from": source}
        self.call("POST", f"/v1/collections/{_quoted(name)}/restore", body)
        return Collection(self, name)

    def snapshots(self, collection: Optional[str] = None) -> Any:
        """Lists the snapshots, of one collection if it is given: ``{"snapshots": [{"collection", "name", "bytes",
        "time"}]}``."""
        return self.call("GET", _with_query("/v1/snapshots", {"collection": collection}))

    def delete_snapshot(self, collection: str, snapshot: str) -> None:
        """Deletes a snapshot of a collection, which need not exist any more."""
        self.call("DELETE", f"/v1/snapshots/{_quoted(collection)}/{_quoted(snapshot)}")

    def aliases(self) -> Any:
        """Lists the aliases with their collections: ``{"aliases": {alias: collection}}``."""
        return self.call("GET", "/v1/aliases")

    def set_alias(self, alias: str, collection: str) -> None:
        """Gives a collection a further name, or switches that name to it in one step."""
        self.call("PUT", f"/v1/aliases/{_quoted(alias)}", {"collection": collection})

    def change_aliases(self, set: Optional[Mapping[str, str]] = None, remove: Iterable[str] = ()) -> Any:
        """Sets and removes several aliases in one step, and returns all aliases as :meth:`aliases` does.

        ``set`` has the collection of each alias."""
        return self.call("POST", "/v1/aliases", {"set": dict(set or {}), "remove": _listed("remove", remove)})

    def delete_alias(self, alias: str) -> None:
        """Removes an alias; its collection stays."""
        self.call("DELETE", f"/v1/aliases/{_quoted(alias)}")

    def recipes(self) -> Any:
        """Lists the uploaded recipes: ``{"recipes": [{"name", "state", "recipe_id", "bytes"}]}``."""
        return self.call("GET", "/v1/recipes")

    def recipe(self, name: str) -> Any:
        """Returns an uploaded recipe as TOML, with its files and the collections that use it."""
        return self.call("GET", f"/v1/recipes/{_quoted(name)}")

    def upload_recipe(
        self, name: str, recipe: FilePath, files: Union[Iterable[FilePath], Mapping[str, FilePath]] = ()
    ) -> Any:
        """Uploads a recipe with the files that it names, and returns it as :meth:`recipe` does.

        ``recipe`` is the path of a TOML file, and ``files`` lists the files as the recipe names them, relative to its
        directory. A mapping gives the path of each name instead. Collections then use the recipe by ``name``::

            client.upload_recipe("own", "own.toml", ["stop.txt"])
            client.create("news", recipe="own")
        """
        parts = _recipe_parts(recipe, files)
        # No file has the boundary, because it is random.
        boundary = uuid.uuid4().hex
        body = b"".join(_form_part(boundary, *part) for part in parts) + f"--{boundary}--\r\n".encode()
        path, kind = f"/v1/recipes/{_quoted(name)}", f"multipart/form-data; boundary={boundary}"
        with self._bytes("PUT", path, body, kind) as answer:
            return json.loads(answer.read())

    def delete_recipe(self, name: str) -> None:
        """Deletes an uploaded recipe that no collection uses."""
        self.call("DELETE", f"/v1/recipes/{_quoted(name)}")

    def extract_text(self, file: Union[FilePath, bytes], name: Optional[str] = None) -> str:
        """Returns the text of a document file: ``.txt``, ``.md``, ``.html``, ``.docx`` or ``.pdf``. Nothing is stored.

        ``file`` is a path, or the bytes of the file; then ``name`` says by its extension what it is. The file and its
        text have at most the size of a document. A file without a text raises :class:`ServiceError` with the code
        ``bad_document`` and the reason.

        >>> import lookalike as la
        >>> client = la.Client("http://127.0.0.1:7600")
        >>> client.extract_text(b"<p>The ferry leaves <b>at seven</b>.</p>", "notes.html")
        'The ferry leaves at seven.\\n'
        """
        if isinstance(file, bytes):
            content = file
            name = needed("name", name, "the name of the file, such as essay.docx")
        else:
            name = name or os.path.basename(file)
            with as_missing_file(file), open(file, "rb") as opened:
                content = opened.read()
        path = _with_query("/v1/extract", {"name": name})
        with self._bytes("POST", path, content, "application/octet-stream", repeatable=True) as answer:
            return str(json.loads(answer.read())["text"])

    def document_passages(
        self,
        documents: Iterable[Document],
        against: Optional[Iterable[Document]] = None,
        *,
        min_length: Optional[int] = None,
        reworded: bool = False,
        base: Union[str, Iterable[str], None] = None,
        max_documents: Union[int, str, None] = None,
        report: bool = False,
        language: Optional[str] = None,
        partial: bool = False,
    ) -> Any:
        """Returns the passages that documents share with those of ``against``, by default with one another.

        A document is ``{"id", "text"}``. ``base`` are texts that all were given, such as a question: what stands in them is
        no part of any passage. ``max_documents`` is that of :func:`lookalike.passages`. The answer has ``passages``,
        ``summary`` and ``directed``, and with ``report`` the report as
        an HTML page, which opens in the ``language`` ``"en"`` or ``"zh"``. ``min_length`` is the shortest passage in
        words, and ``reworded`` also finds passages in other words. Nothing is stored.

        A search that takes too much work raises :class:`ServiceError` with the code ``too_costly``. With ``partial`` the
        answer has what was found so far instead, and its ``complete`` is False.

        >>> import lookalike as la
        >>> client = la.Client("http://127.0.0.1:7600")
        >>> texts = ["The ferry leaves at seven.", "They say the ferry leaves at seven, and no later."]
        >>> essays = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
        >>> found = client.document_passages(essays, min_length=5)["passages"]
        >>> [(one["document"], one["source"], one["length"]) for one in found]
        [('1', '0', 5)]
        """
        asked: dict[str, Any] = {"documents": [_fields_of(one) for one in documents], "reworded": reworded, "report": report}
        asked["against"] = None if against is None else [_fields_of(one) for one in against]
        asked.update(min_length=min_length, language=language, partial=partial or None)
        asked.update(base=_base_texts(base), max_documents=max_documents)
        given = {name: value for name, value in asked.items() if value is not None}
        return self.call("POST", "/v1/passages/documents", given, repeatable=True)

    def is_ready(self) -> bool:
        """Returns True if the service accepts requests at one of its addresses."""
        return self._connections.has_ready_replica(self._headers(None))

    def call(self, method: str, path: str, body: Any = None, *, repeatable: Optional[bool] = None) -> Any:
        """Sends a call with a JSON body and returns the JSON answer; None for an empty answer.

        A ``repeatable`` call is sent again after a lost connection; by default those with GET and PUT are."""
        data = None if body is None else json.dumps(body).encode()
        with self._bytes(method, path, data, "application/json", repeatable, is_whole=True) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def lines(
        self, method: str, path: str, documents: Iterable[Document], *, repeatable: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Sends a call with one JSON object per line and yields the objects of the answer.

        Documents are sent as they come, and answers arrive while others are still sent. Only a list or a tuple can be
        sent again, and only until the answer begins."""
        yield from self._lines(method, path, documents, repeatable, is_whole=False)

    def _lines(
        self, method: str, path: str, documents: Iterable[Document], repeatable: bool, is_whole: bool
    ) -> Iterator[dict[str, Any]]:
        if isinstance(documents, (list, tuple)):
            body: Any = ReplayableBody(lambda: _json_lines(documents))
        else:
            body = _json_lines(documents)
        with self._bytes(method, path, body, "application/x-ndjson", repeatable, is_whole=is_whole) as answer:
            for line in answer:
                if line:
                    parsed = json.loads(line)
                    # The header is sent before the first record is written, so each answer has its own.
                    if "record" in parsed:
                        self._note_position(str(parsed["record"]))
                    yield parsed

    def stream(self, path: str) -> Iterator[dict[str, Any]]:
        """Yields the objects of an answer with one per line, as they arrive.

        An answer that breaks off raises ``http.client.IncompleteRead``."""
        with self._bytes("GET", path, None, None) as answer:
            for line in answer:
                if line:
                    yield json.loads(line)

    def close(self) -> None:
        """Closes the idle connections. The client can still be used."""
        self._connections.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:
        arguments = (self.url, self._key, self.timeout, self.retries)
        return type(self), arguments, {"read_your_writes": self.read_your_writes, "position": self.position}

    def _bytes(
        self,
        method: str,
        path: str,
        body: Any,
        kind: Optional[str],
        repeatable: Optional[bool] = None,
        *,
        is_whole: bool = False,
    ) -> PooledResponse:
        headers = self._headers(kind if body is not None else None)
        if self.read_your_writes and self.position is not None:
            headers[_POSITION_HEADER] = str(self.position)
        known = method in ("GET", "PUT") if repeatable is None else repeatable
        answer = self._connections.request(PooledRequest(method, path, body, headers, known, is_whole))
        self._note_position(answer.headers.get(_POSITION_HEADER))
        if answer.status >= 400:
            with answer:
                raise _problem(answer)
        return answer

    def _headers(self, kind: Optional[str]) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "User-Agent": f"lookalike-python/{__version__}"}
        if kind:
            headers["Content-Type"] = kind
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def _note_position(self, stated: Optional[str]) -> None:
        if stated is None or not (stated.isascii() and stated.isdigit()):
            return
        # Answers of several threads arrive in any order.
        with self._position_lock:
            self.position = max(self.position or 0, int(stated))


class Collection:
    """A collection of documents in a service.

    >>> import lookalike as la
    >>> news = la.Client("http://127.0.0.1:7600").create("news")
    >>> texts = ["The ferry leaves at seven.", "THE FERRY leaves at seven!", "A bridge."]
    >>> answers = news.check_and_insert({"id": str(at), "text": text} for at, text in enumerate(texts))
    >>> [(answer["verdict"], answer["of"]) for answer in answers]
    [('kept', None), ('duplicate', '0'), ('kept', None)]
    >>> news.query({"id": "q", "text": "a bridge"})["of"]
    '2'
    >>> news.stats()["kept"]
    2
    >>> news.drop()
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        if not isinstance(name, str):
            refuse_type("name", name, "the name of a collection")
        if not name:
            refuse("name", name, "the name of a collection")
        self.name = name
        self._path = f"/v1/collections/{_quoted(name)}"

    def __repr__(self) -> str:
        return f"<Collection {self.name} of {self._client.url}>"

    def settings(self) -> Any:
        """Returns the settings."""
        return self._client.call("GET", self._path)["settings"]

    def change(self, **settings: Any) -> Any:
        """Changes ``window``, ``skew``, ``refresh``, ``expire`` or ``on_conflict``. Returns all settings."""
        return self._client.call("PATCH", self._path, settings)["settings"]

    def check_and_insert(
        self, documents: Union[Document, Iterable[Document]]
    ) -> Union[dict[str, Any], list[dict[str, Any]]]:
        """Checks and inserts documents. The check and the insert of a document are one atomic step.

        A document is ``{"id", "text" or "fingerprint", "time", "meta"}``, or a text alone; the answer is ``{"id",
        "verdict", "of", "cluster", "similarity", "seq"}``. The answers to several documents have the
        order of the documents; the answer to a refused document is its problem. A service with a shared log adds
        ``record`` to each of several answers, from which the client has its :attr:`Client.position`.
        """
        answers: Union[dict[str, Any], list[dict[str, Any]]] = self._check("documents", documents)
        return answers

    def insert_stream(self, documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
        """Inserts documents as :meth:`check_and_insert` does, and yields the answers while documents are still sent.

        Neither documents nor answers are collected, so their number does not matter. It is not repeated after a lost
        connection; documents with an ``id`` can be sent again by the caller."""
        if isinstance(documents, (str, Mapping)):
            refuse("documents", documents, "an iterable of documents; check_and_insert takes a single one")
        return self._client.lines("POST", f"{self._path}/documents", documents)

    def query(
        self, documents: Union[Document, Iterable[Document]], *, limit: Optional[int] = None
    ) -> Union[dict[str, Any], list[dict[str, Any]]]:
        """Answers like :meth:`check_and_insert` without an insert; the ``id`` can be left out.

        With ``limit``, from 1 to 1000, the answer to one document has ``matches``: up to so many kept documents that
        match it, as ``{"id", "similarity", "seq"}``, the most similar first. It is not for several documents."""
        answers: Union[dict[str, Any], list[dict[str, Any]]]
        answers = self._check(_with_query("query", {"limit": limit}), documents)
        return answers

    def passages(
        self,
        text: str,
        *,
        min_length: Optional[int] = None,
        limit: Optional[int] = None,
        base: Union[str, Iterable[str], None] = None,
        partial: bool = False,
    ) -> Any:
        """Returns the kept documents that a text has passages from, as ``sources``, the one of which it has most first.

        ``min_length`` is the shortest passage in words, from 12, and ``limit``, from 1 to 1000, the number of sources.
        ``base`` are texts that all were given: what stands in them is no part of any passage. While the passages of the collection are being indexed, raises :class:`ServiceError` with the code
        ``passages_not_ready``. A search that takes too much work raises it with the code ``too_costly``; with
        ``partial`` the answer has what was found so far instead, and its ``complete`` is False."""
        asked: dict[str, Any] = {"text": text, "min_length": min_length, "limit": limit, "partial": partial or None}
        asked["base"] = _base_texts(base)
        given = {name: value for name, value in asked.items() if value is not None}
        return self._client.call("POST", f"{self._path}/passages", given)

    def get(self, id: str) -> Any:
        """Returns a document by its id."""
        return self._client.call("GET", f"{self._path}/documents/{_quoted(id)}")

    def delete(self, id: str) -> Any:
        """Removes a document."""
        return self._client.call("DELETE", f"{self._path}/documents/{_quoted(id)}")

    def documents(
        self,
        *,
        after: Optional[int] = None,
        limit: Optional[int] = None,
        text: bool = False,
        verdict: Optional[str] = None,
        meta: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        """Returns a page of documents in the order of ``seq``; its ``next``, if present, is the ``after`` of the
        next page.

        With ``verdict``, ``"kept"`` or ``"duplicate"``, only these; with ``meta``, only documents whose ``meta`` has
        these values (strings, numbers, True, False or None) in its top-level fields."""
        query: dict[str, Any] = {"after": after, "limit": limit, "verdict": verdict}
        query["text"] = "true" if text else None
        for field, value in (meta or {}).items():
            query[f"meta.{field}"] = json.dumps(value)
        return self._client.call("GET", _with_query(f"{self._path}/documents", query))

    def get_many(self, ids: Iterable[str]) -> list[Any]:
        """Returns up to 1,000 documents by their ids, in their order; None for an id that no document has."""
        answer = self._client.call("POST", f"{self._path}/documents/get", {"ids": _listed("ids", ids)})
        return list(answer["documents"])

    def delete_many(self, ids: Iterable[str]) -> list[Any]:
        """Removes up to 1,000 documents by their ids. Returns a result for each: its ``deleted`` is False if no
        document has the id."""
        answer = self._client.call("POST", f"{self._path}/documents/delete", {"ids": _listed("ids", ids)})
        return list(answer["results"])

    def export(self) -> Iterator[dict[str, Any]]:
        """Yields all documents that exist now, as ``lookalike store export`` writes them.

        An export that breaks off raises ``http.client.IncompleteRead``."""
        return self._client.stream(f"{self._path}/export")

    def clusters(
        self,
        *,
        after: Optional[str] = None,
        limit: Optional[int] = None,
        members: Optional[int] = None,
        prefer: Optional[str] = None,
    ) -> Any:
        """Returns a page of clusters; its ``next``, if present, is the ``after`` of the next page.

        With ``prefer``, ``"max:FIELD"`` or ``"min:FIELD"``, each has ``preferred``: the document with the
        largest or smallest value of that field of ``meta``, of the representative and the 100 newest members."""
        query = {"after": after, "limit": limit, "members": members, "prefer": prefer}
        return self._client.call("GET", _with_query(f"{self._path}/clusters", query))

    def cluster(
        self,
        id: str,
        *,
        after: Optional[int] = None,
        members: Optional[int] = None,
        prefer: Optional[str] = None,
    ) -> Any:
        """Returns a cluster by the id of its representative, with a page of its members, the newest first;
        its ``next``, if present, is the ``after`` of the next page. ``prefer`` is that of :meth:`clusters`,
        of the representative and the 10,000 newest members."""
        query = {"after": after, "members": members, "prefer": prefer}
        return self._client.call("GET", _with_query(f"{self._path}/clusters/{_quoted(id)}", query))

    def decide(
        self, decisions: Union[Mapping[str, Any], Iterable[Mapping[str, Any]]], *, limit: Optional[int] = None
    ) -> list[Any]:
        """Decides about pairs of texts as a person, and returns a result for each of up to 1,000 decisions.

        A decision is a line of a file of decisions, which the page of a report saves, or ``{"a_id", "b_id", "label"}``
        with the ids of two documents of the collection. The ``label`` is ``"same"``, ``"different"``, or ``"none"``,
        which withdraws the decision before. The documents for which that changes something are judged again: the
        ``changed`` of a result has their new verdicts and sequence numbers. It has the first ones, at most ``limit`` in all
        results together (100, up to 1,000); ``changed_total`` is their number, and ``next`` the ``after`` with which
        ``documents`` lists the others. A decision that is not accepted has a ``problem``.

        >>> import lookalike as la
        >>> news = la.Client("http://127.0.0.1:7600").create("overruled")
        >>> first, second = "The ferry leaves at seven.", "The ferry leaves at SEVEN!"
        >>> answers = news.check_and_insert([{"id": "1", "text": first}, {"id": "2", "text": second}])
        >>> result = news.decide({"a_id": "1", "b_id": "2", "label": "different"})[0]
        >>> [(one["id"], one["verdict"], one["before"]["of"]) for one in result["changed"]]
        [('2', 'kept', '1')]
        >>> [(one["label"], one["a_id"], one["b_id"]) for one in news.decisions()["decisions"]]
        [('different', '1', '2')]
        >>> news.drop()
        """
        listed = [decisions] if isinstance(decisions, Mapping) else _listed("decisions", decisions)
        path = _with_query(f"{self._path}/decisions", {"limit": limit})
        lines = self._client._lines("POST", path, listed, False, is_whole=True)
        return [result for answer in lines for result in answer["results"]]

    def decisions(
        self, *, after: Optional[int] = None, limit: Optional[int] = None, document: Optional[str] = None
    ) -> Any:
        """Returns a page of the decisions that hold, in the order in which they were made; its ``next``, if present, is
        the ``after`` of the next page. With ``document``, only those on the text of the document with that id."""
        query = {"after": after, "limit": limit, "document": document}
        return self._client.call("GET", _with_query(f"{self._path}/decisions", query))

    def withdraw_decision(self, a: str, b: str) -> Any:
        """Withdraws the decision on two texts, by its ``a`` and ``b``, and returns the result as :meth:`decide` does."""
        answer = self._client.call("DELETE", f"{self._path}/decisions/{_quoted(a)}/{_quoted(b)}")
        return answer["results"][0]

    def stats(self) -> Any:
        """Returns the number of documents and other counts."""
        return self._client.call("GET", f"{self._path}/stats")

    def snapshot(self, name: str) -> Any:
        """Makes a snapshot of the collection as it is at one moment, while it is used; the name must be new."""
        return self._client.call("POST", f"{self._path}/snapshot", {"name": name})

    def snapshots(self) -> Any:
        """Lists the snapshots of the collection, as :meth:`Client.snapshots` does. Snapshots belong to the collection
        itself: under an alias there are none."""
        return self._client.snapshots(self.name)

    def delete_snapshot(self, name: str) -> None:
        """Deletes a snapshot of the collection."""
        self._client.delete_snapshot(self.name, name)

    def drop(self) -> None:
        """Deletes the collection with all its documents."""
        self._client.call("DELETE", self._path)

    def _check(self, task: str, documents: Any) -> Any:
        path = f"{self._path}/{task}"
        queries = task.startswith("query")
        if isinstance(documents, str):
            documents = {"text": documents}
        if isinstance(documents, Mapping):
            return self._client.call("POST", path, dict(documents), repeatable=queries or "id" in documents)
        listed = documents if isinstance(documents, (list, tuple)) else list(documents)
        repeatable = queries or all(isinstance(one, Mapping) and "id" in one for one in listed)
        return list(self._client._lines("POST", path, listed, repeatable, is_whole=True))


def _checked_addresses(url: Any) -> tuple[str, ...]:
    """Returns the addresses of a URL, of several separated by commas, or of a list of URLs."""
    wanted = "a URL such as http://127.0.0.1:7600, or several in a list or separated by commas"
    given = url.split(",") if isinstance(url, str) else url
    if not isinstance(given, (list, tuple)) or not given:
        refuse("url", url, wanted)
    addresses = []
    for one in given:
        address = one.strip().rstrip("/") if isinstance(one, str) else one
        if not isinstance(address, str) or not address.startswith(("http://", "https://")) or "," in address:
            refuse("url", _without_password(one), wanted)
        if _without_password(address) != address:
            wanted = "a URL without a user and a password, which are not sent, and the key of the service as key"
            refuse("url", _without_password(address), wanted)
        if address in addresses:
            refuse("url", address, "each address once")
        addresses.append(address)
    return tuple(addresses)


def _without_password(url: Any) -> Any:
    """Returns a URL without a user and a password; other values as they are."""
    return re.sub("//[^/]*@", "//…@", url) if isinstance(url, str) else url


def _json_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    for one in documents:
        yield json.dumps(_fields_of(one)).encode() + b"\n"


def _fields_of(document: Any) -> Any:
    """Returns the fields of a document, which can be a text alone."""
    return {"text": document} if isinstance(document, str) else document


def _base_texts(base: Union[str, Iterable[str], None]) -> Optional[list[str]]:
    """Returns the texts that all documents were given, of which a string is one."""
    if base is None:
        return None
    return [base] if isinstance(base, str) else list(base)


def _listed(name: str, values: Any) -> list[Any]:
    """Returns several values as a list; a string is not several."""
    if isinstance(values, (str, bytes)):
        refuse(name, values, "a list of these")
    return list(values)


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given)}" if given else path


def _recipe_parts(recipe: Any, files: Any) -> list[tuple[str, Optional[str], bytes]]:
    """Returns the parts of an upload: the name, the file name and the content of each."""
    if not isinstance(recipe, (str, os.PathLike)):
        refuse("recipe", recipe, "the path of a TOML file")
    parts: list[tuple[str, Optional[str], bytes]] = [("recipe", None, _content(recipe))]
    if isinstance(files, Mapping):
        paths = {name: path for name, path in files.items()}
    elif isinstance(files, (str, os.PathLike)):
        refuse("files", files, "a list of the names of files, such as ['stop.txt']")
    else:
        beside = os.path.dirname(os.fspath(recipe))
        paths = {os.fspath(name): os.path.join(beside, name) for name in files}
    for name, path in paths.items():
        if not isinstance(name, str) or not name or any(sign in name for sign in '"\\\r\n'):
            refuse("files", name, "names without quotes, backslashes and line ends")
        parts.append(("file", name, _content(path)))
    return parts


def _content(path: FilePath) -> bytes:
    with as_missing_file(path), open(path, "rb") as file:
        return file.read()


def _form_part(boundary: str, name: str, file_name: Optional[str], content: bytes) -> bytes:
    """Returns a part of a body of the type ``multipart/form-data``."""
    stated = f'form-data; name="{name}"' + (f'; filename="{file_name}"' if file_name else "")
    return f"--{boundary}\r\nContent-Disposition: {stated}\r\n\r\n".encode() + content + b"\r\n"


def _problem(answer: PooledResponse) -> ServiceError:
    content = answer.read()
    request_id = answer.headers.get("X-Request-Id")
    try:
        problem = json.loads(content)
        code, detail = problem.get("code", ""), problem.get("detail", "")
    except (ValueError, AttributeError):
        code, detail = "http", content.decode("utf-8", "replace")[:200]
    if answer.tried:
        detail = f"{detail} (tried {answer.tried})"
    return ServiceError(answer.status, code, detail, request_id)
