"""What the tests of bundles share: keys, small archives by hand, a web server that takes a PUT. Holds no test."""

from __future__ import annotations

import hashlib
import io
import ssl
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from interlock.model.settings import parse_settings
from interlock.policy.archives import files_of
from interlock.policy.bundle import Bundle, assemble
from interlock.policy.bundle_files import build
from interlock.policy.signatures import Key
from interlock.policy.sources import Source, shipped_sources

OFFICE = """# METADATA
# title: Office hours
package controls.office

import data.lib.hours

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if hours.open

verdict := {"verdict": "allow"} if input.tool.egress == data.settings.controls.quiet
"""
HOURS = 'package lib.hours\n\nopen if input.tool.egress == "none"\n'
SCHEMA = '{"type": "object", "properties": {"quiet": {"type": "string", "default": "blind"}}}'


@cache
def own_bundle() -> Bundle:
    """The shipped controls, one of the operator's, a library and a setting of its own."""
    sources = [*shipped_sources(), Source("rules/office.rego", OFFICE), Source("rules/hours.rego", HOURS)]
    settings = parse_settings({"leak_guard": "ask", "controls": {"quiet": "blind"}})
    return assemble(sources, settings, [Source("rules/settings.schema.json", SCHEMA)])


@cache
def plain() -> bytes:
    return build(own_bundle())


def plain_files() -> dict[str, bytes]:
    return files_of(plain(), "it")


# --- keys -------------------------------------------------------------------------------------------------------------


@cache
def pair(kind: str) -> tuple[bytes, bytes]:
    """A private and a public key. Made once: RSA takes its time."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if kind.startswith("HS"):
        secret = (kind * 40).encode()[:64]
        return secret, secret
    key: Any
    if kind.startswith("weak"):
        key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    elif kind[0] in "RP":
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    else:
        key = ec.generate_private_key({"256": ec.SECP256R1, "384": ec.SECP384R1, "512": ec.SECP521R1}[kind[2:5]]())
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return private, key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)


def keys(algorithm: Any = "RS256", kind: str = "", **more: str) -> tuple[Key, Key]:
    """To sign and to verify with."""
    kind = kind or ("RS" if algorithm[0] in "RP" else algorithm)
    private, public = pair(kind)
    return Key(private, "private.pem", algorithm, **more), Key(public, "public.pem", algorithm, **more)


# --- archives by hand -------------------------------------------------------------------------------------------------


def tar(*members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for member in members:
            if isinstance(member, tuple):
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    return buffer.getvalue()


# --- a web server that takes a PUT ------------------------------------------------------------------------------------


@dataclass
class Shelf:
    """What stands on the server by path, what was asked of it, and how it misbehaves."""

    port: int = 0
    scheme: str = "http"
    held: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    status: int = 0  # answers PUT with this and keeps nothing
    spoils: bool = False  # keeps something else than was put
    races: bytes = b""  # somebody else's bundle, which comes between a GET and the next PUT

    def url(self, path: str = "/bundle.tar.gz") -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}{path}"


def tag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'


def certificate(folder: Path, name: str) -> Path:
    """A file with a key and a certificate that vouches for itself, for an address or a name."""
    import datetime
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    private = pair("ES256")[0]
    key: Any = load_pem_private_key(private, None)
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    alternative = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name}.pem"
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@contextmanager
def shelf(vouched: Path | None = None) -> Iterator[Shelf]:
    """The server; with a file of :func:`certificate` it speaks TLS."""
    held = Shelf(scheme="http" if vouched is None else "https")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            held.asked.append(("GET", self.path, dict(self.headers)))
            data = held.held.get(self.path)
            if data is None:
                return self.answer(404)
            if self.headers.get("If-None-Match") == tag(data):
                return self.answer(304, ETag=tag(data))
            return self.answer(200, data, ETag=tag(data), **{"Content-Type": "application/gzip"})

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            held.asked.append(("PUT", self.path, dict(self.headers)))
            if held.races:
                held.held[self.path] = held.races
            there = held.held.get(self.path)
            if self.headers.get("If-None-Match") == "*" and there is not None:
                return self.answer(412)
            if self.headers.get("If-Match") not in (None, there and tag(there)):
                return self.answer(412)
            if held.status:
                return self.answer(held.status, Location="http://127.0.0.1:9/elsewhere")
            held.held[self.path] = body[:-1] if held.spoils else body
            return self.answer(201 if there is None else 204)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if vouched is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(vouched)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are the test
    held.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
