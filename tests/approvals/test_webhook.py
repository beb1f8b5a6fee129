"""Proves that a service approves by a signed call back and by nothing else: over real HTTP, on this machine.

Mutations that this file catches: an answer in the reply that counts; a signature that is not checked, or not over the
time; a question's own signature that passes for an answer's; a recorded answer that is used again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from interlock import Conversation, Interlock
from interlock.approvals import signing
from interlock.approvals.elsewhere import Desk
from interlock.approvals.webhook import Callbacks, CallbackServer, Webhook, answer_body
from interlock.errors import Misconfigured, Refused
from interlock.gate.conversation import SystemClock
from interlock.stores.sql_questions import SqlQuestions
from interlock.stores.sqlite import SqliteStore
from tests.approvals.desk import EVE, Sent, locked

SECRET = b"0123456789abcdef0123456789abcdef"


class Service:
    """A service that is told of questions, and does with them what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.status, self.reply = 204, b""
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.heard.append((dict(self.headers.items()), body))
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(service.reply)))
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(service.reply)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/questions"

    def question(self) -> dict[str, Any]:
        until = time.monotonic() + 20
        while not self.heard and time.monotonic() < until:
            time.sleep(0.01)
        headers, body = self.heard[-1]
        signing.check(SECRET, "question", headers[signing.TIMESTAMP], headers[signing.SIGNATURE], body, time.time())
        found: dict[str, Any] = json.loads(body)
        return found


@contextmanager
def desk(tmp_path: Path) -> Iterator[tuple[Service, SqliteStore, CallbackServer]]:
    SqliteStore.migrate(tmp_path / "p" / "s.db")
    store, service = SqliteStore(tmp_path / "p" / "s.db", durability="process"), Service()
    callbacks = Callbacks(SECRET, lambda space: Desk(store, SqlQuestions(store), SystemClock(), space))
    try:
        with CallbackServer(callbacks) as server:
            yield service, store, server
    finally:
        service.server.shutdown()
        service.server.server_close()
        store.close()


def asking(service: Service, store: SqliteStore, seconds: float = 20) -> tuple[threading.Thread, list[Any], Sent]:
    from interlock import ApprovalRules

    hook = Webhook(service.url, SECRET, store, poll=0.02)
    rules = ApprovalRules(seconds=seconds, expiry=60)
    lock: Interlock = locked(hook, store, SystemClock(), approvals=rules)  # type: ignore[arg-type]
    guard, sent, came = lock.guard(Conversation()), Sent(), list[Any]()
    guard.call("read_mail", {}, run=lambda: "mail")
    thread = threading.Thread(target=lambda: came.append(guard.call("send", EVE, run=sent)), daemon=True)
    thread.start()
    return thread, came, sent


def post(server: CallbackServer, body: bytes, headers: dict[str, str]) -> httpx.Response:
    host, port = server.address
    with httpx.Client(trust_env=False) as client:
        return client.post(f"http://{host}:{port}/", content=body, headers=headers)


def signed(body: bytes, now: float | None = None, purpose: Any = "answer", secret: bytes = SECRET) -> dict[str, str]:
    return signing.headers(secret, purpose, time.time() if now is None else now, body)


def test_a_signed_answer_is_taken_once(tmp_path: Path) -> None:
    with desk(tmp_path) as (service, store, server):
        thread, came, sent = asking(service, store)
        question = service.question()
        assert any("eve@evil.test" in line for line in question["lines"])
        body = answer_body(question, "approve", "kim")
        forged = [
            {},
            signed(body, secret=b"x" * 32),
            signed(body, purpose="question"),
            signed(body + b" "),
            signed(body, now=time.time() - 400),
            signed(body, now=time.time() + 400),
            {**signed(body), signing.TIMESTAMP: str(int(time.time()) + 1)},
            {signing.TIMESTAMP: "now", signing.SIGNATURE: signing.signature(SECRET, "answer", "now", body)},
        ]
        for headers in forged:
            assert post(server, body, headers).status_code == 403
        other = answer_body({**question, "digest": "sha256:0"}, "approve", "kim")
        assert post(server, other, signed(other)).status_code == 403
        elsewhere = answer_body({**question, "namespace": "other"}, "approve", "kim")
        assert post(server, elsewhere, signed(elsewhere)).status_code == 403
        maybe = answer_body(question, "maybe", "kim")
        assert post(server, maybe, signed(maybe)).status_code == 403
        assert not came
        reply = post(server, body, signed(body))
        assert (reply.status_code, reply.json()) == (200, {"status": "granted"})
        thread.join(20)
        assert (came[0].executed, sent.calls) == (True, [EVE])
        assert post(server, body, signed(body)).status_code == 403  # a recording is worth nothing


@pytest.mark.parametrize(("status", "why"), [(200, "in time"), (500, "answered 500"), (302, "answered 302")])
def test_what_the_service_returns_is_no_answer(tmp_path: Path, status: int, why: str) -> None:
    with desk(tmp_path) as (service, store, _):
        service.status, service.reply = status, b'{"answer": "approve"}'
        thread, came, sent = asking(service, store, seconds=1.5)
        thread.join(20)
        assert (came[0].decision.code, sent.calls, len(service.heard)) == ("no_answer", [], 1)
        assert why in came[0].decision.reasons[0].for_person


def test_nobody_there(tmp_path: Path) -> None:
    with desk(tmp_path) as (service, store, _):
        service.server.shutdown()
        service.server.server_close()
        thread, came, _ = asking(service, store)
        thread.join(20)
        assert "not reached" in came[0].decision.reasons[0].for_person


def test_addresses_and_secrets_that_are_none(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, store, _):
        for url in ("http://example.com/", "ftp://127.0.0.1/", "https", "http://127.0.0.1.evil.test/"):
            with pytest.raises(Misconfigured, match="https"):
                Webhook(url, SECRET, store)
        with pytest.raises(Misconfigured, match="32 bytes"):
            Webhook("https://example.com/", b"short", store)
    with pytest.raises(Refused, match="does not fit"):
        signing.check(SECRET, "answer", "1", "v1=é", b"", 1)
