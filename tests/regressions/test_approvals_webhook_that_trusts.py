"""The webhook, which trusts nothing that the service returns, read all of it: a reply that never ended held the call as
long as it liked, past every time-out, and filled the memory meanwhile.

And a host that mounts the callbacks in a server of its own could give them an empty secret, with which everybody can
sign. The secret was measured only where questions are sent. A length of five thousand digits, or a caller that hung up,
was a traceback on the host's standard error.

Found by review.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock.approvals.webhook import Callbacks, Webhook, answer_body
from interlock.errors import Misconfigured
from tests.approvals.desk import EVE, NO, Person, Sent, locked, reader
from tests.approvals.test_webhook import SECRET, desk, post, signed


def test_a_reply_without_end_holds_nobody() -> None:
    stop = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            while not stop.wait(0.05):
                try:
                    self.wfile.write(b"yes " * 1000)
                except OSError:
                    return

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    threading.Timer(15, stop.set).start()
    try:
        person = Person(NO)
        lock = locked(person)
        reader(lock).call("send", EVE, run=Sent())
        hook = Webhook(f"http://127.0.0.1:{server.server_address[1]}/", SECRET, lock.journal, poll=0.02)
        began = time.monotonic()
        assert hook.ask(person.asked[0], 1.0) is None
        assert time.monotonic() - began < 5
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("secret", [b"", b"short", "x" * 40], ids=["none", "short", "text"])
def test_callbacks_have_a_secret(secret: Any) -> None:
    with pytest.raises(Misconfigured, match="at least 32 bytes"):
        Callbacks(secret, lambda _: None)  # type: ignore[arg-type,return-value]  # never asked
    with pytest.raises(Misconfigured, match="at least 32 bytes"):
        Webhook("https://approvals.example/", secret, None)  # type: ignore[arg-type]  # never asked


def test_odd_requests_are_refused_quietly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = {"question": "q-1", "digest": "x", "namespace": "default", "conversation": "c-1"}
    with desk(tmp_path) as (_, _, server):
        for length in ("9" * 5000, "-1", "1e3", ""):
            with socket.create_connection(server.address, timeout=10) as line:
                line.sendall(f"POST / HTTP/1.0\r\nContent-Length: {length}\r\n\r\n".encode())
                assert line.recv(100).startswith(b"HTTP/1.0 413")
        for body in (
            b"\xff",
            b"[]",
            json.dumps({**json.loads(answer_body(asked, "approve", "k")), "schema": True}).encode(),
        ):
            assert post(server, body, signed(body)).status_code == 403
        space = answer_body({**asked, "namespace": "../no such"}, "approve", "kim")
        assert post(server, space, signed(space)).status_code == 403
    assert "Traceback" not in capfd.readouterr().err
