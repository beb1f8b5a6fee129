"""opa-python-client with what it leaves open closed: one question to an OPA server, one strict reading of what it says.

The query, its path and its parameters are the client's own (``AsyncOpaClient.query_rule``). Replaced are its two seams:
how the session is made (a custom CA, which it ignores; no proxy, no cookies; a bound on connections) and how a request
is made (no redirects, no retries of its own, a bounded body, a token that may change). There is no time limit in here:
who asks has one, over all of it.
"""

from __future__ import annotations

import asyncio
import os
import re
import selectors
import ssl
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from interlock.errors import Misconfigured, NotCanonical
from interlock.model.canonical import Json, parse
from interlock.policy.opa_faults import Fault, NoAnswer, of_exception, of_status
from interlock.policy.sources import opened_file

try:
    import aiohttp
    from opa_client.opa_async import AsyncOpaClient
except ImportError as error:
    raise ImportError("interlock.policy.opa needs `pip install interlock[opa]`") from error

MAX_BODY: Final = 256 * 1024
MAX_TOKEN: Final = 16 * 1024
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
QUERY: Final = {"provenance": "true", "strict-builtin-errors": "true"}
# What OPA answers a query with. A key that nobody knows means a server that is something else.
KEYS: Final = frozenset({"result", "decision_id", "provenance", "metrics"})

_PATH: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)+")
_HOST: Final = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class OpaServer:
    """Where an OPA server is, and how to prove to each other who one is.

    Attributes:
        url: ``http://`` or ``https://``, a host, a port; nothing else.
        entrypoint: the rule that is asked, as dotted names below ``data``.
        ca_file: certificates that the server's must come from, in place of the system's.
        client_cert, client_key: files of this client's certificate and its key.
        token_file: file with a bearer token, read again whenever it changes.
        plaintext: speak to another machine without TLS.
        connections: at most so many at once.

    Raises:
        Misconfigured: something is no address, no path or no readable file.
    """

    url: str
    entrypoint: str = "interlock.entrypoint.answers"
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None
    token_file: Path | None = None
    plaintext: bool = False
    connections: int = 32

    def __post_init__(self) -> None:
        scheme, host, _ = self.address
        if not _PATH.fullmatch(self.entrypoint):
            raise Misconfigured(f"engine.entrypoint: {self.entrypoint!r}: write dotted names, such as a.b.answers")
        if scheme == "http" and host not in LOCAL_HOSTS and not self.plaintext:
            raise Misconfigured(
                f"engine.url: {self.url!r} is another machine and would be spoken to in plain text; use https://, or"
                " say plaintext = true"
            )
        given = [one for one in (self.ca_file, self.client_cert, self.client_key) if one]
        if scheme == "http" and given:
            raise Misconfigured(f"engine.url: {self.url!r} has no TLS, so certificates mean nothing; use https://")
        if self.client_key and not self.client_cert:
            raise Misconfigured("engine.client_key: a key without client_cert means nothing")
        if self.token_file:
            try:
                read_token(self.token_file)
            except NoAnswer as error:
                raise Misconfigured(f"engine.token_file: {error}") from None
        self.context()

    @property
    def address(self) -> tuple[str, str, int]:
        """Scheme, host and port. Raises Misconfigured."""
        try:
            parts = urlsplit(self.url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            parts, host, port = urlsplit(""), "", None
        more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc or "\\" in self.url
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host) or more or not self.url.isascii():
            raise Misconfigured(
                f"engine.url: {self.url!r} is no address of a server; write https://HOST:PORT and nothing after it"
            )
        return parts.scheme, host, port or 8181

    def context(self) -> ssl.SSLContext | None:
        """What TLS trusts and shows; None for plain HTTP. Raises Misconfigured."""
        if self.address[0] == "http":
            return None
        reading = "ca_file"
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
            reading = "client_cert"
            if self.client_cert:
                # An encrypted key would be asked for on the terminal, in the middle of a decision.
                context.load_cert_chain(self.client_cert, self.client_key, password=_no_password)
        except (OSError, ValueError) as error:
            raise Misconfigured(f"engine.{reading}: can't be used ({type(error).__name__}: {error})") from None
        return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one that is not, in a file that only this program may read")


def read_token(path: Path) -> str:
    """The token in a file. Raises NoAnswer (``token``)."""
    try:
        with opened_file(path) as file:
            token = file.read(MAX_TOKEN + 1).decode("ascii", "replace").strip()
    except OSError as error:
        raise NoAnswer(Fault.TOKEN, f"the token can't be read from {path}: {error.strerror}") from None
    if len(token) > MAX_TOKEN or not _TOKEN.fullmatch(token):
        raise NoAnswer(Fault.TOKEN, f"{path} holds no token: write one line of visible ASCII")
    return token


class CleanConnector(aiohttp.TCPConnector):
    """Uses a connection again only if nothing has come on it since: a second answer that lay there would be taken for
    the answer to the next question. Guards against answers that nobody asked for: tests/faults/test_opa_stand_in.py."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._owner = os.getpid()

    def __del__(self, *given: Any) -> None:
        # In a forked child the connections are its parent's, and so is what the parent's loop waits with: closing them
        # here would make the parent deaf on them.
        if self._owner == os.getpid():
            super().__del__(*given)

    async def _get(self, key: Any, traces: Any) -> Any:
        while (found := await super()._get(key, traces)) is not None:
            protocol, transport = found.protocol, found.transport
            if protocol is not None and transport is not None and not protocol.should_close and _silent(transport):
                return found
            found.close()
        return None


# Without this seam nothing would look, so every question gets a connection of its own.
REUSES: Final = hasattr(aiohttp.TCPConnector, "_get")


def _silent(transport: asyncio.Transport) -> bool:
    """Is there nothing to be read, not even the end?"""
    raw = transport.get_extra_info("socket")
    if raw is None:
        return False
    with selectors.DefaultSelector() as look:
        look.register(raw.fileno(), selectors.EVENT_READ)
        return not look.select(0)


class Reply:
    """What the client reads: status, then body. Stands in for the response that it expects."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def raise_for_status(self) -> None:
        error = of_status(self._response.status, _seconds(self._response.headers.get("Retry-After", "")))
        if error is not None:
            raise error

    async def json(self) -> Json:
        """The body, read strictly. Raises NoAnswer."""
        headers = self._response.headers
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            # Not asked for, and a few bytes could become gigabytes.
            raise NoAnswer(Fault.CONTENT_ENCODING, "its answer is compressed, which was not asked for")
        if self._response.content_type != "application/json":
            raise NoAnswer(Fault.CONTENT_TYPE, "its answer is not of the type application/json")
        body = bytearray()
        async for part in self._response.content.iter_any():
            body += part
            if len(body) > MAX_BODY:
                raise NoAnswer(Fault.TOO_LARGE, f"its answer is larger than {MAX_BODY} bytes")
        try:
            # As text: of bytes, the parser would also take UTF-16, which other readers on the way take for no JSON.
            return parse(body.decode())
        except UnicodeDecodeError:
            raise NoAnswer(Fault.MALFORMED_ANSWER, "its answer is not UTF-8") from None
        except NotCanonical as error:
            raise NoAnswer(Fault.MALFORMED_ANSWER, f"its answer is not JSON that can be trusted: {error}") from None


def _seconds(text: str) -> float:
    """A Retry-After in seconds; a date is not worth a clock."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0


class StrictOpaClient(AsyncOpaClient):  # type: ignore[misc]  # it ships no types
    """An ``AsyncOpaClient`` for one server, bound to the loop that first asks."""

    def __init__(self, server: OpaServer) -> None:
        scheme, host, port = server.address
        # No retries and no time-out of its own: both are the caller's, over everything.
        super().__init__(f"[{host}]" if ":" in host else host, port, ssl=scheme == "https", retries=0, timeout=None)
        self._server = server
        self._token = ""
        self._token_stamp: tuple[int, ...] = ()
        self._session: Any = None  # the client's own, which knows no type for it
        _CLIENTS.add(self)

    def inherited(self) -> None:
        """In a forked child: forget the connections, which are the parent's, and close nothing."""
        if self._session is not None:
            self._session.detach()
            self._session = None

    @property
    def is_open(self) -> bool:
        return self._session is not None

    async def _init_session(self) -> None:
        self._connector = CleanConnector(
            ssl=self._server.context() or False,
            limit=self._server.connections,
            **({"keepalive_timeout": 30} if REUSES else {"force_close": True}),
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            trust_env=False,  # no proxy, no .netrc: the document must go to this server alone
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        )

    @asynccontextmanager
    async def _request(self, method: str, url: str, **given: Any) -> AsyncIterator[Reply]:
        if self._session is None:
            await self._init_session()
        # The document's own bytes: what was digested is what is asked.
        body = b'{"input":' + given["json"]["input"] + b"}"
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._server.token_file:
            headers["Authorization"] = f"Bearer {self._current_token(self._server.token_file)}"
        async with self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
            yield Reply(response)

    def _current_token(self, path: Path) -> str:
        try:
            found = os.stat(path)
        except OSError as error:
            raise NoAnswer(Fault.TOKEN, f"the token can't be read from {path}: {error.strerror}") from None
        stamp = (found.st_ino, found.st_dev, found.st_mtime_ns, found.st_size)
        if stamp != self._token_stamp:
            self._token, self._token_stamp = read_token(path), stamp
        return self._token

    async def ask(self, document: bytes) -> dict[str, Json]:
        """Ask once.

        Raises:
            NoAnswer: no envelope with a result.
        """
        package, _, rule = self._server.entrypoint.rpartition(".")
        try:
            envelope = await self.query_rule(document, package, rule, QUERY)
        except Exception as error:
            raise of_exception(error) from None
        if not isinstance(envelope, dict):
            raise NoAnswer(Fault.MALFORMED_ANSWER, f"its answer is {type(envelope).__name__}, not an object")
        strange = envelope.keys() - KEYS
        if document == b"null":
            strange -= {"warning"}  # it takes null for no input, warns of that, and answers like every other engine
        if strange:
            raise NoAnswer(Fault.MALFORMED_ANSWER, f"its answer has {len(strange)} unknown keys")
        if "result" not in envelope:
            raise NoAnswer(
                Fault.UNDEFINED, f"data.{self._server.entrypoint} is undefined there: are the policies loaded?"
            )
        return envelope


_CLIENTS: Final = weakref.WeakSet[StrictOpaClient]()


def _inherited() -> None:
    for client in list(_CLIENTS):
        client.inherited()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherited)
