"""A server could keep `bundle push` for ever, and fill its memory.

The answer to the PUT was read to its end, which nobody looks at, and what is there now was waited for byte by byte:
each of them within the time of one read, all of them for as long as the server liked.
Mutations that this file catches: the body of the answer read; no bound on the time of the whole.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

pytest.importorskip("httpx")

from interlock.errors import Unavailable
from interlock.policy import publishing
from interlock.policy.publishing import Access, put_address

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


def serving(answer: Callable[[socket.socket], None]) -> str:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener, suppress(OSError):
            connection.recv(65536)
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/bundle.tar.gz"


def dripping(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    for _ in range(300):
        connection.sendall(b"x")
        time.sleep(0.05)


def test_the_answer_to_a_put_is_not_read() -> None:
    began = time.monotonic()
    assert put_address(b"data", serving(dripping), Access(read_back=False))
    assert time.monotonic() - began < 5


def test_what_is_there_must_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "TIMEOUT", 0.5)
    with pytest.raises(Unavailable, match=r"within 0\.5 s"):
        put_address(b"data", serving(dripping), Access())
