"""A proxy between a replica and the store of its log, which can be cut."""

from __future__ import annotations

import socket
import threading
import time


class StoreProxy:
    """Forwards connections to a store, unless it is cut: then it closes them, or holds all bytes back."""

    def __init__(self, target: int):
        self.target = target
        self.mode = "pass"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, mode: str) -> None:
        """`refuse` closes all connections, `hang` keeps them and forwards nothing."""
        self.mode = mode
        if mode == "refuse":
            for one in list(self.open):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def mend(self) -> None:
        self.mode = "pass"

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        if self.mode == "refuse":
            client.close()
            return
        try:
            store = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        self.open |= {client, store}
        back = threading.Thread(target=self._pump, args=(store, client), daemon=True)
        back.start()
        self._pump(client, store)
        back.join()
        self.open -= {client, store}
        for one in (client, store):
            one.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                while self.mode == "hang":
                    time.sleep(0.02)
                if self.mode == "refuse":
                    break
                sink.sendall(piece)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
