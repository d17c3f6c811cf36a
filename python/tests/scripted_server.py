"""A server whose answers are written down before, for tests of the client."""

import dataclasses
import http.server
import json
import threading
import time


@dataclasses.dataclass
class ScriptedAnswer:
    """An answer. `fault` is "drop" for a connection that is closed without one, "cut" for one that breaks off in the
    middle, and "hang" for one that comes after `HANG_SECONDS`."""

    status: int = 200
    code: str = ""
    position: object = None
    fault: str = ""


#: Longer than the timeout of the clients that meet it.
HANG_SECONDS = 4.0


class ScriptedServer:
    """A server on this machine. A step of its script is a :class:`ScriptedAnswer`, a status, or the name of a fault.
    Where the script ends, it answers 200. `requests` has the method, path and body of each request, `headers` the
    headers."""

    def __init__(self):
        self.script, self.requests, self.headers, self.connections = [], [], [], set()
        self._open = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def setup(self):
                super().setup()
                owner._open.append(self.connection)

            def read_body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def answer(self):
                owner.connections.add(self.client_address)
                body = self.read_body()
                owner.requests.append((self.command, self.path, body))
                owner.headers.append(dict(self.headers))
                step = as_answer(owner.script.pop(0) if owner.script else 200)
                if step.fault == "hang":
                    time.sleep(HANG_SECONDS)
                if step.fault in ("drop", "hang"):
                    self.close_connection = True
                    return
                content = self.content(step, body)
                self.send_response(step.status)
                if step.status in (429, 503):
                    self.send_header("Retry-After", "0")
                if step.position is not None:
                    self.send_header("Lookalike-Position", str(step.position))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if step.fault == "cut":
                    content = content[: len(content) // 2]
                    self.close_connection = True
                self.wfile.write(content)

            def content(self, step, body):
                if step.status >= 400:
                    return json.dumps({"code": step.code, "detail": "as the script says"}).encode()
                if self.headers.get("Content-Type") == "application/x-ndjson":
                    return body
                return json.dumps({"status": step.status}).encode()

            do_GET = do_POST = do_PUT = do_DELETE = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        """Ends the server and closes its connections, as a process that dies does."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self._open:
            try:
                connection.shutdown(2)
            except OSError:
                pass  # The client has closed it.


def as_answer(step):
    if isinstance(step, ScriptedAnswer):
        return step
    return ScriptedAnswer(status=step) if isinstance(step, int) else ScriptedAnswer(fault=step)
