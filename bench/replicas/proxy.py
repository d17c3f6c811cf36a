"""A proxy between a replica and the store of its log, which can be cut."""

from __future__ import annotations

import socket
import threading
import time


class StoreProxy:
    """Forwards connections to a store, unless it is cut: then it closes them, or holds all bytes back."""

    cut_modes = ("refuse", "hang")

    def __init__(self, target: int, host: str = "127.0.0.1"):
        self.target = target
        self.mode = "pass"
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.endpoint = f"{host}:{self.port}"
        self.open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, mode: str) -> None:
        """`refuse` closes all connections, `hang` keeps them and forwards nothing."""
        self.mode = mode
        if mode == "refuse":
            for one in list(self.open):
                shut_down(one)

    def mend(self) -> None:
        self.mode = "pass"

    def close(self) -> None:
        """Ends the proxy with all its connections."""
        self.cut("refuse")
        # Only this wakes the thread that accepts.
        shut_down(self.listener)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
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
        for one in (client, store):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.open |= {client, store}
        try:
            self._forward(client, store)
        except OSError:
            pass
        self.open -= {client, store}
        for one in (client, store):
            one.close()

    def _forward(self, client: socket.socket, store: socket.socket) -> None:
        """Forwards both directions until both have ended."""
        back = threading.Thread(target=self._pump, args=(store, client), daemon=True)
        back.start()
        self._pump(client, store)
        back.join()

    def _wait_while_cut(self) -> bool:
        """Waits while bytes are held back; returns `False` if the connection is to be closed."""
        while self.mode == "hang":
            time.sleep(0.02)
        return self.mode != "refuse"

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                if not self._wait_while_cut():
                    break
                sink.sendall(piece)
        except OSError:
            pass
        for one in (source, sink):
            shut_down(one)


def shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
