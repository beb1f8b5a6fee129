"""A mail server on loopback that accepts everything and keeps it. The only importer of aiosmtpd."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy

try:
    from aiosmtpd.smtp import SMTP, Envelope, Session
except ImportError as error:
    raise ImportError("interlock.cli.demo.mail needs `pip install interlock[demo]`") from error

Delivered = Callable[[str, bytes], None]


class _Keeper:
    """Calls ``delivered(recipient, message)`` for every recipient of every message."""

    def __init__(self, delivered: Delivered) -> None:
        self._delivered = delivered

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: ARG002, N802
        """aiosmtpd's hook, by its name. Answers after the message is kept, so a sender's success means arrival."""
        assert isinstance(envelope.content, bytes)  # text only if asked for, nothing only before the data
        for recipient in envelope.rcpt_tos:
            self._delivered(recipient, envelope.content)
        return "250 OK"


@contextmanager
def mail_server(host: str, delivered: Delivered) -> Iterator[int]:
    """A mail server at ``host``; gives its port. Everything is closed again when the context ends.

    Not aiosmtpd's own controller: that one cannot be given port 0, and a port chosen beforehand may be taken.
    """
    loop = asyncio.new_event_loop()
    keeper = _Keeper(delivered)
    # A name is given because the default asks the resolver for this machine's, which may take seconds.
    server = loop.run_until_complete(
        loop.create_server(lambda: SMTP(keeper, hostname="localhost", loop=loop), host=host, port=0)
    )
    thread = threading.Thread(target=loop.run_forever, name="interlock-demo-mail", daemon=True)
    thread.start()
    try:
        port: int = server.sockets[0].getsockname()[1]
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(_closed(server), loop).result(timeout=10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


async def _closed(server: asyncio.Server) -> None:
    server.close()
    await server.wait_closed()
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def as_read(message: bytes) -> bytes:
    """Subject and body as the recipient's software shows them, with every transfer encoding undone."""
    parsed = message_from_bytes(message, policy=policy.default)
    body = parsed.get_body(("plain",))
    text = body.get_content() if body is not None else ""
    return f"{parsed['subject']}\n{text}".encode()
