"""What the tests of the OPA engine stand on: a bundle in a folder, a server that misbehaves, an agent. No test here."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock import Conversation, Interlock, Manifest, MemoryJournal
from interlock.assembly import Parts, bundled
from interlock.model.results import Outcome
from interlock.policy.bundle import Bundle
from interlock.policy.opa import Contract, Limits, OpaEngine
from interlock.policy.opa_client import OpaServer
from interlock.ports import Engine

MANIFEST = Manifest.parse(
    {"version": 1, "tools": {"note": {"returns": [], "egress": "none"}}},
    "tests",
)
BUNDLE: Bundle = bundled(Parts(MANIFEST))[1]
REVISION = BUNDLE.revision
ALL_ALLOW: dict[str, Any] = {code: {"verdict": "allow"} for code in BUNDLE.controls}
DEADLINE = 0.3
PATIENT = 5.0  # where time is not what is tested
# What the promise is, and what a busy machine may add to it in a test of two cores that run something else as well.
PROMISED = 0.05
SLACK = 0.0 if os.environ.get("INTERLOCK_PROFILE") == "deep" else 1.0


def written(bundle: Bundle, folder: Path, revision: str | None = None) -> Path:
    """A bundle as OPA loads it: the files, the data, and a manifest with the revision."""
    for source in bundle.sources:
        path = folder / source.path.lstrip("/").replace("..", "_")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.text)
    (folder / "data.json").write_bytes(bundle.data)
    manifest = {"revision": bundle.revision if revision is None else revision, "roots": [""]}
    (folder / ".manifest").write_text(json.dumps(manifest))
    return folder


def said(**changed: Any) -> dict[str, Any]:
    """What OPA would say when every control allows, with some keys changed; None takes one away."""
    provenance = {"version": "1.22.3", "bundles": {"interlock": {"revision": REVISION}}}
    whole = {"decision_id": "d-1", "provenance": provenance, "result": ALL_ALLOW, **changed}
    return {key: value for key, value in whole.items() if value is not None}


def answer(
    body: bytes | dict[str, Any], *headers: str, status: str = "200 OK", type: str = "application/json"
) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", *([f"Content-Type: {type}"] if type else []), *headers]
    if not any(one.lower().startswith(("content-length", "transfer-encoding")) for one in headers):
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode() + content


GOOD = answer(said())


class Connection:
    """One accepted connection: what a stand-in can do with it."""

    def __init__(self, raw: socket.socket, stopped: threading.Event) -> None:
        self.raw, self.stopped = raw, stopped

    def request(self) -> bytes:
        """Read one request, with its body. Empty when the client is gone."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = self.raw.recv(65536)
            if not part:
                return b""
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(one.split(b":")[1]) for one in head.split(b"\r\n") if one.lower().startswith(b"content-length")), 0
        )
        while len(body) < length:
            body += self.raw.recv(65536)
        return head + b"\r\n\r\n" + body

    def send(self, data: bytes) -> None:
        self.raw.sendall(data)

    def drip(self, data: bytes, seconds: float) -> None:
        for byte in data:
            if self.stopped.wait(seconds):
                return
            self.send(bytes([byte]))

    def hang(self) -> None:
        self.stopped.wait(10)

    def reset(self) -> None:
        """End with a reset, not with an orderly end."""
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.raw.close()


Behaviour = Callable[[Connection], None]


def behaves(connection: Connection) -> None:
    """As OPA does."""
    while connection.request():
        connection.send(GOOD)


@dataclass
class StandIn:
    """A server on loopback that does with each connection what `behaviour` says, which may be exchanged."""

    behaviour: Behaviour = behaves
    context: ssl.SSLContext | None = None
    asked: int = 0
    seen: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accepts, daemon=True).start()

    def url(self, host: str = "127.0.0.1") -> str:
        return f"http{'s' if self.context else ''}://{host}:{self.port}"

    def _accepts(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            self.asked += 1
            self._open.append(raw)
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        with suppress(OSError, ValueError):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context is not None:
                raw = self.context.wrap_socket(raw, server_side=True)
                self._open.append(raw)
            self.behaviour(Connection(raw, self.stopped))
        with suppress(OSError):
            raw.close()

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *ended: object) -> None:
        self.stopped.set()
        self._listener.close()
        for one in self._open:
            with suppress(OSError):
                one.close()


@contextmanager
def engine_for(
    url: str,
    *,
    contract: Contract | None = None,
    limits: Limits | None = None,
    **server: Any,
) -> Iterator[OpaEngine]:
    from interlock.policy.revisions import Demand

    engine = OpaEngine(
        BUNDLE,
        OpaServer(url, **server),
        contract=contract or Contract(Demand(exact=REVISION)),
        limits=limits or Limits(PATIENT, breaker_failures=1000),
    )
    try:
        yield engine
    finally:
        engine.close()


class Agent:
    """One conversation with a tool that counts how often it really ran."""

    def __init__(self, engine: Engine, driver: str) -> None:
        self.lock = Interlock(manifest=MANIFEST, engine=engine, journal=MemoryJournal())
        self.guard = self.lock.guard(Conversation.new())
        self.driver = driver
        self.ran = 0
        self.took = 0.0

    def _note(self, **arguments: Any) -> str:
        self.ran += 1
        return "noted"

    def call(self) -> Outcome:
        begun = time.monotonic()
        if self.driver == "sync":
            outcome = self.guard.call("note", {"text": "x"}, run=self._note)
            self.took = time.monotonic() - begun
            return outcome

        async def turn() -> Outcome:
            nonlocal begun
            begun = time.monotonic()
            found = await self.guard.acall("note", {"text": "x"}, run=self._note)
            self.took = time.monotonic() - begun
            return found

        return asyncio.run(turn())


def in_time(took: float, deadline: float = DEADLINE) -> bool:
    return took <= deadline + PROMISED + SLACK


def kinds(engine: OpaEngine) -> Mapping[str, int]:
    return {kind: n for kind, n in engine.counts.items() if kind not in ("retried", "opened", "answered", "fallback")}


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
