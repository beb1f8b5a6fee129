"""Running the proxy: over standard input and output, or over HTTP."""

from __future__ import annotations

import hmac
import logging
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from interlock.errors import InterlockError, Misconfigured
from interlock.integrations.mcp.front import Front
from interlock.integrations.mcp.proxy import Proxy
from interlock.model.proxies import is_loopback

_LOGGER = logging.getLogger("interlock.mcp")
PATH: Final = "/mcp"
MIN_TOKEN: Final = 16


def run(what: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """Run one of this package's coroutines to its end, for commands.

    Raises:
        InterlockError: as the coroutine did, and not in a group.
    """
    try:
        return anyio.run(what, *arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if isinstance(error, InterlockError):
            raise error from None
        raise


@asynccontextmanager
async def running(proxy: Proxy, version: str) -> AsyncGenerator[Front]:
    """The proxy with its servers, each connected or found to be out of reach."""
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as starting:
            for upstream in proxy.upstreams.values():
                starting.start_soon(tasks.start, upstream.serve)
        yield Front(proxy, version)
        tasks.cancel_scope.cancel()


async def over_stdio(proxy: Proxy, version: str) -> None:
    """Serve one client on standard input and output, which belong to the protocol alone, until it closes them."""
    # The streams first: what a server's process prints while it starts must not reach the client.
    async with stdio_server() as (reading, writing), running(proxy, version) as front:
        await front.run(reading, writing, front.create_initialization_options())


async def over_http(
    proxy: Proxy, version: str, host: str, port: int, token: str = "", started: Callable[[str], None] | None = None
) -> None:
    """Serve clients over streamable HTTP until the process is told to end.

    Args:
        token: what clients must send as ``Authorization: Bearer``; needed where others than this machine can connect.
        started: told the address once connections are taken.

    Raises:
        Misconfigured: the address can't be had, or is open to others without a token.
    """
    if not is_loopback(host) and not token:
        raise Misconfigured(f"{host}: others can connect there; set mcp.token_from, or listen on 127.0.0.1")
    if token and len(token) < MIN_TOKEN:
        raise Misconfigured(f"mcp.token_from: a token of {len(token)} characters can be guessed; take 32 random ones")
    with _listening(host, port) as listening:
        where = listening.getsockname()
        shown = f"[{where[0]}]" if ":" in where[0] else where[0]
        async with running(proxy, version) as front:
            app: Any = front.streamable_http_app(streamable_http_path=PATH, host=host)
            if token:
                app = _Guarded(app, token)
            server = uvicorn.Server(
                uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=2)
            )
            (started or _announce)(f"http://{shown}:{where[1]}{PATH}")
            await server.serve(sockets=[listening])


def _announce(address: str) -> None:
    print(f"interlock: serving MCP at {address}", file=sys.stderr, flush=True)  # noqa: T201 - for people, not a log


def _listening(host: str, port: int) -> socket.socket:
    # The protocol is named, since asyncio turns Nagle's algorithm off only then: 40 ms for each answer otherwise.
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise Misconfigured(f"{host}:{port}: can't listen there: {error.strerror}") from None
    return made


class _Guarded:
    """ASGI: nobody without the token gets further than this."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = b"bearer " + token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        kind, space, rest = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if hmac.compare_digest(kind.lower() + space + rest, self._wanted):
            await self._app(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
        await send(start)
        await send({"type": "http.response.body", "body": b"a token is needed"})
