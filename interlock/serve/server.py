"""The server: TLS, certificates of clients, signals, and a way out that loses nothing."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from interlock.errors import Misconfigured
from interlock.serve.callers import subject_of

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
MAX_HEAD: Final = 16 * 1024
CONNECTIONS: Final = 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, and what to show.

    Attributes:
        clients: authorities of client certificates; then each client must have one.
        plaintext: another machine may be spoken to without TLS, as behind a proxy that has it.
        grace: seconds that requests under way get when the server is told to stop.
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    clients: Path | None = None
    plaintext: bool = False
    grace: int = 30

    def check(self) -> None:
        """Raises Misconfigured: tokens would go in the clear, or the options contradict each other."""
        if (self.certificate is None) != (self.key is None):
            raise Misconfigured("--tls-cert and --tls-key go together")
        if self.clients is not None and self.certificate is None:
            raise Misconfigured("--client-ca needs TLS: give --tls-cert and --tls-key")
        if self.host not in LOOPBACK and self.certificate is None and not self.plaintext:
            raise Misconfigured(
                f"{self.host} can be reached by other machines, and tokens would go in the clear; give --tls-cert and"
                " --tls-key, or accept that with --plaintext"
            )


class Protocol(H11Protocol):
    """HTTP with the subject of the client's certificate at hand: ``request.state.subject``."""

    def connection_made(self, transport: Any) -> None:
        """See :class:`asyncio.Protocol`. The certificate was verified by then, or there is no connection."""
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        certificate = secured.getpeercert() if secured is not None else None
        self.app_state = {**self.app_state, "subject": subject_of(certificate)}


def server(app: Any, listening: Listening) -> Announcing:
    """The server, which is not started yet.

    Raises:
        Misconfigured: a certificate or a key can't be used.
    """
    listening.check()
    config = uvicorn.Config(
        app,
        host=listening.host,
        port=listening.port,
        http=Protocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=listening.grace,
        h11_max_incomplete_event_size=MAX_HEAD,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        ssl_ca_certs=listening.clients,
        ssl_cert_reqs=ssl.CERT_REQUIRED if listening.clients is not None else ssl.CERT_NONE,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError, ValueError) as error:
        raise Misconfigured(f"TLS can't be set up with these files: {type(error).__name__}: {error}") from None
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return Announcing(config)


class Announcing(uvicorn.Server):
    """Says where it listens once it does: with port 0 nobody else knows."""

    announce: Callable[[str, int], None] | None = None

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 - uvicorn's signature
        """Stop when the requests under way are answered; a second interrupt does not wait. Ends with exit code 0:
        uvicorn's own way raises the signal again, and what follows the server would not run."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def startup(self, sockets: Any = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        for one in self.servers:
            for bound in one.sockets:
                host, port = bound.getsockname()[:2]
                if self.announce is not None:
                    self.announce(host, port)
                return
