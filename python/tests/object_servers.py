"""Servers that the tests of objects start: an S3 store, a proxy in front of it with faults, an HTTPS server."""

import contextlib
import datetime
import http.client
import ipaddress
import os
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def moto_store():
    """Runs the S3 server of moto. Yields its address."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_port(server, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@contextlib.contextmanager
def azurite_store(program, directory):
    """Runs Azurite, Microsoft's emulator of Azure's blobs. Yields its address."""
    port = free_port()
    command = [program, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command += ["--location", str(directory), "--blobPort", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_port(server, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for_port(server, port):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if server.poll() is not None:
            raise RuntimeError(f"the store ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("the store did not start")


def error_document(code):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


class Proxy:
    """Passes requests to a store. `fault(request)` may name a fault for a request: a status, `drop` (no answer),
    `cut` (half of the body), `lose` (the request is done, its answer is lost). `before(request)` is called first.
    `headers` replace those of requests when they are passed on."""

    def __init__(self, address, fault=None, before=None, headers=None):
        self.headers = headers or {}
        self.target = address.removeprefix("http://")
        self.fault = fault or (lambda request: None)
        self.before = before or (lambda request: None)
        self.requests = []
        self.faults = 0
        self.lock = threading.Lock()

    def __enter__(self):
        proxy = self

        class Handler(ProxyHandler):
            owner = proxy

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def note(self, request):
        """Records a request. Returns its fault."""
        with self.lock:
            self.requests.append(request)
            fault = self.fault(request)
            self.faults += fault is not None
            return fault

    def ranges_of(self, key):
        """The byte ranges that were read of an object, as (start, end)."""
        found = [request for request in self.requests if request.method == "GET" and request.path.endswith(key)]
        return [request.range for request in found]


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that goes away is no error of a test."""


class Request:
    def __init__(self, method, target, headers):
        self.method = method
        self.path, _, self.query = target.partition("?")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", ""))
        self.range = found and (int(found[1]), int(found[2]) + 1)

    def __repr__(self):
        return f"{self.method} {self.path}?{self.query} {self.range}"


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner = None

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, self.headers)
        self.owner.before(request)
        fault = self.owner.note(request)
        if isinstance(fault, int):
            code = {
                403: "AccessDenied",
                404: "NoSuchUpload",
                429: "TooManyRequests",
                500: "InternalError",
                503: "SlowDown",
            }[fault]
            return self.answer(fault, [("Content-Type", "application/xml")], error_document(code))
        if fault == "drop":
            self.close_connection = True
            return None
        status, headers, answer = self.pass_on(body)
        if fault == "lose":
            self.close_connection = True
            return None
        return self.answer(status, headers, answer, cut=fault == "cut")

    def pass_on(self, body):
        connection = http.client.HTTPConnection(self.owner.target, timeout=60)
        replaced = {"connection", *map(str.lower, self.owner.headers)}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in replaced}
        headers |= self.owner.headers
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        skipped = {"connection", "transfer-encoding", "content-length", "date", "server"}
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in skipped]
        if self.command == "HEAD":
            kept.append(("Content-Length", answer.getheader("Content-Length", "0")))
        connection.close()
        return answer.status, kept, content

    def answer(self, status, headers, content, cut=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if cut:
            content = content[: len(content) // 2]
            self.close_connection = True
        if self.command != "HEAD":
            self.wfile.write(content)
        if cut:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def log_message(self, *_):
        pass


def random_faults(seed, share=0.25):
    """Faults of all kinds for a share of the requests. The answer to the beginning of an upload is never lost, because
    nobody could abort an upload whose name is unknown."""
    source = random.Random(seed)
    kinds = [503, 500, 429, "drop", "cut", "lose"]

    def fault(request):
        known = kinds[:4] if request.method == "POST" and request.query.startswith("uploads") else kinds
        return source.choice(known) if source.random() < share else None

    return fault


@contextlib.contextmanager
def https_server(directory, ranges=True, cut=None, is_tagged=False):
    """Serves the files of a directory over TLS. Yields its address, the file of its authority, and its requests.
    `cut(path)` ends an answer after half of its body. With `is_tagged`, answers have an `ETag`."""
    certificate, key, authority = make_certificates(directory)
    requests = []

    class Handler(FileHandler):
        root = Path(directory)
        serves_ranges = ranges
        sends_tags = is_tagged
        seen = requests
        is_cut = staticmethod(cut or (lambda path: False))

    server = QuietServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}", authority, requests
    finally:
        server.shutdown()
        server.server_close()


class FileHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def serve_file(self):
        request = Request(self.command, self.path, self.headers)
        self.seen.append(request)
        file = self.root / request.path.lstrip("/")
        content = file.read_bytes() if file.is_file() else None
        status, headers = 200, []
        if content is None:
            status, content = 404, b"nothing here"
        elif self.serves_ranges and request.range and request.range[0] < len(content):
            start, end = request.range[0], min(request.range[1], len(content))
            headers = [("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")]
            status, content = 206, content[start:end]
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.sends_tags and file.is_file():
            self.send_header("ETag", f'"{zlib.crc32(file.read_bytes()):08x}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.is_cut(request.path):
            self.close_connection = True
            content = content[: len(content) // 2]
        self.wfile.write(content)

    do_GET = do_HEAD = serve_file

    def log_message(self, *_):
        pass


def make_certificates(directory):
    """Makes an authority and a certificate of it for localhost. Returns their files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.timezone.utc)

    def certificate(name, key, issuer, issuer_key, extensions):
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
        )
        for extension, critical in extensions:
            made = made.add_extension(extension, critical)
        return made.sign(issuer_key, hashes.SHA256())

    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificate("root", root_key, "root", root_key, [(x509.BasicConstraints(ca=True, path_length=None), True)])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    leaf = certificate(
        "localhost",
        key,
        "root",
        root_key,
        [
            (x509.SubjectAlternativeName(names), False),
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        ],
    )
    files = [Path(directory) / name for name in ("server.pem", "server.key", "authority.pem")]
    encoded = serialization.Encoding.PEM
    private = key.private_bytes(encoded, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in zip(files, [leaf.public_bytes(encoded), private, root.public_bytes(encoded)], strict=True):
        file.write_bytes(content)
    return [os.fspath(file) for file in files]
