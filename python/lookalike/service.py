"""The clients of the service ``lookalike serve`` and the collections that they return.

>>> from lookalike.service import Client, Collection
>>> isinstance(Client("http://127.0.0.1:7600").collection("news"), Collection)
True
"""

from ._async_client import AsyncClient, AsyncCollection
from ._client import Client, Collection
from ._errors import ServiceError

__all__ = ["AsyncClient", "AsyncCollection", "Client", "Collection", "ServiceError"]
