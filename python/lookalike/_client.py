"""A client of the service ``lookalike serve`` that needs only the standard library."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from ._arguments import refuse
from ._errors import ServiceError

Document = Mapping[str, Any]


class Client:
    """A service at a URL, such as ``http://127.0.0.1:7600``.

    ``key`` is sent as a bearer token, ``timeout`` is in seconds. A refusal of the service raises
    :class:`ServiceError`; a request that does not reach it raises ``OSError``.

    >>> import lookalike as la
    >>> client = la.Client("http://127.0.0.1:7600")
    >>> news = client.create("news", threshold=0.8, window="2d")
    >>> news.check_and_insert({"id": "1", "text": "The ferry leaves at seven."})["verdict"]
    'kept'
    >>> try:
    ...     client.collection("olds").stats()
    ... except la.ServiceError as error:
    ...     print(error.status)
    404
    >>> news.drop()
    """

    def __init__(self, url: str, key: Optional[str] = None, timeout: float = 60.0) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            refuse("url", url, "a URL such as http://127.0.0.1:7600")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._key = key

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

    def is_ready(self) -> bool:
        """Returns True if the service accepts requests."""
        try:
            self._bytes("GET", "/readyz", None, None).close()
        except (ServiceError, OSError):
            return False
        return True

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a call with a JSON body and returns the JSON answer; None for an empty answer."""
        data = None if body is None else json.dumps(body).encode()
        with self._bytes(method, path, data, "application/json") as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def lines(self, method: str, path: str, documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
        """Sends a call with one JSON object per line and yields the objects of the answer."""
        body = b"".join(json.dumps(one).encode() + b"\n" for one in documents)
        with self._bytes(method, path, body, "application/x-ndjson") as answer:
            for line in answer:
                yield json.loads(line)

    def _bytes(self, method: str, path: str, body: Optional[bytes], kind: Optional[str]) -> Any:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        if body is not None and kind:
            request.add_header("Content-Type", kind)
        if self._key:
            request.add_header("Authorization", f"Bearer {self._key}")
        try:
            return urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            raise _problem(error) from None


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

        A document is ``{"id", "text" or "fingerprint", "time", "meta"}``; the answer is ``{"id",
        "verdict", "of", "cluster", "similarity", "seq"}``. The answers to several documents have the
        order of the documents; the answer to a refused document is its problem.
        """
        return self._check("documents", documents)

    def query(
        self, documents: Union[Document, Iterable[Document]]
    ) -> Union[dict[str, Any], list[dict[str, Any]]]:
        """Answers like :meth:`check_and_insert` without an insert; the ``id`` can be left out."""
        return self._check("query", documents)

    def get(self, id: str) -> Any:
        """Returns a document by its id."""
        return self._client.call("GET", f"{self._path}/documents/{_quoted(id)}")

    def delete(self, id: str) -> Any:
        """Removes a document."""
        return self._client.call("DELETE", f"{self._path}/documents/{_quoted(id)}")

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

    def stats(self) -> Any:
        """Returns the number of documents and other counts."""
        return self._client.call("GET", f"{self._path}/stats")

    def drop(self) -> None:
        """Deletes the collection with all its documents."""
        self._client.call("DELETE", self._path)

    def _check(self, task: str, documents: Any) -> Any:
        path = f"{self._path}/{task}"
        if isinstance(documents, Mapping):
            return self._client.call("POST", path, dict(documents))
        return list(self._client.lines("POST", path, documents))


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given)}" if given else path


def _problem(error: urllib.error.HTTPError) -> ServiceError:
    content = error.read()
    try:
        problem = json.loads(content)
        return ServiceError(error.code, problem.get("code", ""), problem.get("detail", ""))
    except ValueError:
        return ServiceError(error.code, "http", content.decode("utf-8", "replace")[:200])
