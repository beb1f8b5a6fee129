"""Asking an MCP server which tools it has: started by its command, or reached at its address, listed, and let go.

Nothing is called but ``tools/list``. What a server says of itself and of its tools is a claim: it is returned as it
came, for :mod:`interlock.model.listed` to read.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from interlock.errors import Misconfigured, Unavailable
from interlock.model.results import printable

if TYPE_CHECKING:
    from mcp import Client

MAX_PAGES: Final = 100
MAX_STDERR: Final = 300


class NotListed(Unavailable):
    """A server could not be started or reached, or did not give its list; the message says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is: a command with its arguments, or an address.

    Attributes:
        env: what the command finds in its environment, beside what every process needs.
        headers: what is sent with every request to the address.
        sse: the address speaks the older transport, of events sent by the server.
    """

    command: str = ""
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    folder: str = ""
    url: str = ""
    headers: Mapping[str, str] | None = None
    sse: bool = False

    def __str__(self) -> str:
        return self.url or self.command


def listed_tools(place: Place, seconds: float = 30.0) -> dict[str, Any]:
    """``{"server": {"name", "version"}, "tools": [...]}`` as the server gave it, all pages together.

    Raises:
        Misconfigured: the SDK is not installed.
        NotListed: the server can't be started or reached, or gives no list within ``seconds``.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        try:
            return asyncio.run(asyncio.wait_for(_listed(place, said, seconds), seconds))
        except ImportError as error:
            raise Misconfigured(
                f"asking MCP servers needs the SDK ({error.name} is missing); pip install interlock[mcp]"
            ) from None
        except TimeoutError:
            raise NotListed(f"{place}: no list of tools within {seconds:g} s{_last_words(said)}") from None
        except Exception as error:  # the SDK lets errors of four libraries and groups of them through
            raise NotListed(f"{place}: no list of tools: {_first(error)}{_last_words(said)}") from error


async def _listed(place: Place, said: IO[str], seconds: float) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        client = await _connected(place, said, seconds, stack)
        tools: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                info = client.server_info
                server = {"name": info.name, "version": info.version} if info is not None else {}
                return {"server": server, "tools": tools}
        raise NotListed(f"more than {MAX_PAGES} pages")


async def _connected(place: Place, said: IO[str], seconds: float, stack: AsyncExitStack) -> Client:
    """The client in the stack; a server's list that was cut short must not pass for the whole.

    Not through a proxy of the environment, which would see the headers and may be anybody's.
    """
    import httpx2  # the SDK brings it along and speaks through it
    from mcp import Client, StdioServerParameters
    from mcp.client.sse import sse_client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    transport: Any
    if not place.url:
        parameters = StdioServerParameters(
            command=place.command,
            args=list(place.arguments),
            env=dict(place.env or {}),
            cwd=Path(place.folder) if place.folder else None,
        )
        transport = stdio_client(parameters, errlog=said)  # type: ignore[arg-type] # it takes what has a file number
    elif place.sse:

        def direct(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False)

        transport = sse_client(place.url, headers=dict(place.headers or {}), httpx_client_factory=direct)
    else:
        http = httpx2.AsyncClient(headers=dict(place.headers or {}), timeout=seconds, trust_env=False)
        transport = streamable_http_client(place.url, http_client=await stack.enter_async_context(http))
    return await stack.enter_async_context(Client(transport, read_timeout_seconds=seconds, cache=None))


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {printable(str(error))[:MAX_STDERR]}"


def _last_words(said: IO[str]) -> str:
    """The last line that the server wrote to standard error: it usually says what it misses."""
    try:
        said.seek(0)
        lines = [one.strip() for one in said.read(1 << 20).splitlines() if one.strip()]
    except (OSError, ValueError):
        return ""
    return f"; its last words: {printable(lines[-1])[:MAX_STDERR]}" if lines else ""
