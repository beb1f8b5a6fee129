"""One server behind the proxy: its connection, what it lists, and whether that is what the operator pinned.

A connection lives in one task, since that is where the SDK's scopes must be left again. It is made anew when somebody
needs it after it was lost; what was under way then is never sent a second time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from interlock.errors import Misconfigured, Unavailable
from interlock.model.digests import Digest
from interlock.model.pins import (
    METHODS,
    ServerIdentity,
    ServerPins,
    instructions_digest,
    is_gateway,
    method_digest,
    nameable,
    tool_digest,
)
from interlock.model.proxies import UpstreamChoice
from interlock.model.results import class_name, printable

MAX_PAGES: Final = 100
MAX_ITEMS: Final = 10_000
NEW_ERA: Final = "2026-07-28"
_LOGGER = logging.getLogger("interlock.mcp")


class Unreachable(Unavailable):
    """A server behind the proxy does not answer."""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One tool as its server lists it now."""

    tool: types.Tool
    digest: Digest
    stands: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server says of itself.

    Attributes:
        tools: by name, without those whose names can't be used.
        standing: names of tools and methods that are as they were pinned.
        reviewed: all of its text is as it was pinned, so nothing of it is a stranger's.
        fingerprint: of all of its text.
    """

    identity: ServerIdentity = field(default_factory=ServerIdentity)
    instructions: str = ""
    tools: Mapping[str, ListedTool] = field(default_factory=dict)
    standing: frozenset[str] = frozenset()
    reviewed: bool = False
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What an upstream tells and asks the proxy.

    Attributes:
        listed: a new list of tools, before anybody sees it.
        notified: a notification of the server.
        asked: by kind (``sampling``, ``elicitation``, ``roots``), who answers what a server asks for.
    """

    listed: Callable[[Upstream], Awaitable[None]]
    notified: Callable[[Upstream, Any], Awaitable[None]]
    asked: Mapping[str, Callable[[Upstream, Any], Awaitable[Any]]] = field(default_factory=dict)


class Upstream:
    """A server behind the proxy."""

    def __init__(
        self,
        name: str,
        choice: UpstreamChoice,
        folder: Path,
        pins: ServerPins | None,
        hooks: Hooks,
        *,
        quiet: bool = False,
        here: Callable[[], Any] | None = None,
    ) -> None:
        """
        Args:
            folder: what a command's ``cwd`` is relative to.
            pins: what the operator has seen of it; None pins nothing.
            quiet: nothing is said of tools that are not as they were pinned.
            here: gives the server itself, or a transport to it, for servers that live in this process.

        Raises:
            Misconfigured: an environment variable that it needs is not set.
        """
        self.name = name
        self.choice = choice
        self.pins = pins or ServerPins()
        self.listing = Listing()
        self.capabilities = types.ServerCapabilities()
        self._hooks = hooks
        self._folder = folder
        self._environment = {**choice.env, **{one: _variable(name, one) for one in choice.env_from}}
        self._headers = {header: _variable(name, one) for header, one in choice.headers_from.items()}
        self._client: Client | None = None
        self.problem = "it was not connected yet"
        self.connection = 0
        self._quiet, self._here = quiet, here
        self._said: frozenset[str] = frozenset()
        self._wanted = anyio.Event()
        self._settled = anyio.Event()
        self._lost = anyio.Event()
        self._refreshing = anyio.Lock()

    # --- connection -------------------------------------------------------------------------------------------------

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep a connection for as long as the proxy runs; reports when the first attempt has succeeded or failed."""
        first = True
        while True:
            self._lost = anyio.Event()
            try:
                async with self._connect() as client:
                    self.capabilities = client.server_capabilities
                    await self.refresh(client.session)  # nothing goes to it before it is known who it is now
                    self._client, self.problem = client, ""
                    self.connection += 1
                    self._settled.set()
                    if first:
                        first = False
                        task_status.started()
                    if client.protocol_version >= NEW_ERA:
                        await self._listen(client)
                    await self._lost.wait()
                    self.problem = "the connection was lost"
            except Exception as error:  # anything that a server or its transport can come up with
                self.problem = _reason(error)
                _LOGGER.warning("mcp server %s can't be reached: %s", self.name, self.problem)
            if self._client is None and not self._lost.is_set():
                self._settled.set()  # this attempt failed, and whoever waits for it may know
            self._client = None
            if first:
                first = False
                task_status.started()
            await self._wanted.wait()
            self._wanted = anyio.Event()

    async def _listen(self, client: Client) -> None:
        """In the era without sessions changes are heard on a stream of their own, while the server keeps it."""
        wanted = self.capabilities
        try:
            async with (
                client.listen(
                    tools_list_changed=bool(wanted.tools and wanted.tools.list_changed),
                    prompts_list_changed=bool(wanted.prompts and wanted.prompts.list_changed),
                    resources_list_changed=bool(wanted.resources and wanted.resources.list_changed),
                ) as changes,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(self._until_lost, tasks.cancel_scope)
                async for event in changes:
                    await self._hooks.notified(self, event)
        except (MCPError, RuntimeError, TimeoutError) as error:
            _LOGGER.info("mcp server %s announces no changes: %s", self.name, class_name(error))

    async def _until_lost(self, scope: anyio.CancelScope) -> None:
        await self._lost.wait()
        scope.cancel()

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Client]:
        choice = self.choice

        def answering(kind: str) -> Any:
            """What is not offered to a server is not asked by an honest one; what is asked all the same is refused."""
            if kind not in choice.requests:
                return None

            async def callback(_context: Any, params: Any = None) -> Any:
                return await self._hooks.asked[kind](self, params)

            return callback

        client = Client(
            self._transport(),
            mode=choice.era,
            cache=None,  # a list that was kept could be one that changed meanwhile
            read_timeout_seconds=choice.timeout,
            message_handler=self._heard,
            client_info=types.Implementation(name="interlock", version=""),
            sampling_callback=answering("sampling"),
            elicitation_callback=answering("elicitation"),
            list_roots_callback=answering("roots"),
            logging_callback=self._logged if choice.logs else None,
            log_level="debug" if choice.logs else None,
        )
        async with client:
            yield client

    def _transport(self) -> Any:
        choice = self.choice
        if self._here is not None:
            return self._here()
        if choice.command:
            where = str(self._folder / choice.cwd) if choice.cwd else None
            return stdio_client(
                StdioServerParameters(command=choice.command, args=choice.args, env=self._environment, cwd=where)
            )
        return _over_http(choice.url, self._headers, choice.timeout)

    async def session(self) -> ClientSession:
        """The connection, made again if it was lost.

        Raises:
            Unreachable: there is none.
        """
        if self._client is None:
            if self._settled.is_set():  # by an attempt of before
                self._settled = anyio.Event()
            self._wanted.set()
            await self._settled.wait()
        if self._client is None:
            raise Unreachable(f"mcp server {self.name!r} can't be reached: {self.problem}")
        return self._client.session

    def lost(self, connection: int) -> None:
        """A connection is of no use any more. The next request makes another one."""
        if connection != self.connection:
            return  # there is a new one already
        self._client = None
        self._settled = anyio.Event()
        self._lost.set()

    async def subscribe(self, uri: str) -> None:
        """Ask to be told when a resource changes; heard like every notification.

        Raises:
            MCPError, Unreachable: it will not be told.
        """
        session = await self.session()
        if session.protocol_version is not None and session.protocol_version >= NEW_ERA:
            raise MCPError(types.METHOD_NOT_FOUND, "changes of single resources are not passed on from this server")
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        await session.send_request(request, types.EmptyResult)

    # --- lists ------------------------------------------------------------------------------------------------------

    async def refresh(self, session: ClientSession | None = None) -> Listing:
        """Ask the server what it is and has, hold it against the pins, and tell the proxy before anybody sees it.

        Raises:
            MCPError, Unreachable: it does not say.
        """
        async with self._refreshing:
            session = session or await self.session()
            found: list[types.Tool] = []
            if self.capabilities.tools is not None:
                found = await pages(session, types.ListToolsRequest, types.ListToolsResult, "tools")
            info = session.server_info
            identity = ServerIdentity(info.name, info.version) if info is not None else ServerIdentity()
            self.listing, problems = listing_of(identity, session.instructions or "", found, self.pins)
            self._say(problems)
            await self._hooks.listed(self)
            return self.listing

    def _say(self, problems: frozenset[str]) -> None:
        """Say what is wrong with the server's tools, each thing once."""
        for problem in () if self._quiet else sorted(problems - self._said):
            _LOGGER.warning("mcp server %s: %s", self.name, problem)
        self._said = problems

    async def _heard(self, message: Any) -> None:
        if isinstance(message, Exception):
            return
        await self._hooks.notified(self, message)

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        await self._hooks.notified(self, params)


async def pages(session: ClientSession, request: Any, result: Any, key: str) -> list[Any]:
    """All items of a list, page by page.

    Raises:
        MCPError: the server does not say, or never stops.
    """
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        if key == "tools":
            page: Any = await session.list_tools(params=params)
        else:
            page = await session.send_request(request(params=params), result)
        found += getattr(page, key)
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_ITEMS:
            break
    if cursor is not None or len(found) > MAX_ITEMS:
        raise MCPError(types.INTERNAL_ERROR, f"the server's list of {key} has no end")
    return found


def listing_of(
    identity: ServerIdentity, instructions: str, tools: list[types.Tool], pins: ServerPins
) -> tuple[Listing, frozenset[str]]:
    """What a server says, held against what was pinned, and what an operator should know of it."""
    names, problems = nameable(one.name for one in tools)
    listed: dict[str, ListedTool] = {}
    for tool in tools:
        if tool.name not in names:
            continue
        pin = pin_of(identity, tool)
        problem = ""
        if tool.name not in pins.tools:
            problem = "it is not pinned"
        elif pins.tools[tool.name] != pin:
            problem = "it is not what was pinned: the server changed it, or is another version"
        elif is_gateway(tool.input_schema):
            problem = "it takes the name of another tool and its arguments, so what it does is not what its name says"
        listed[tool.name] = ListedTool(tool, pin, not problem, problem)
    said = {f"tool {printable(name)} is left out: {why}" for name, why in problems.items()}
    said |= {f"tool {printable(name)} has every leg: {one.problem}" for name, one in listed.items() if one.problem}
    methods = {one for one in METHODS if pins.tools.get(one) == method_digest(identity, one)}
    known = not instructions or pins.instructions == instructions_digest(identity, instructions)
    pinned = all(pins.tools.get(one.tool.name) == one.digest for one in listed.values())
    standing = methods | {name for name, one in listed.items() if one.stands}
    fingerprint = instructions_digest(
        identity, "\n".join((*sorted(one.digest for one in listed.values()), instructions))
    )
    listing = Listing(identity, instructions, listed, frozenset(standing), known and pinned, fingerprint)
    return listing, frozenset(said)


def pin_of(identity: ServerIdentity, tool: types.Tool) -> Digest:
    """The digest of a tool as it is listed."""
    return tool_digest(identity, tool.model_dump(by_alias=True, mode="json", exclude_none=True))


@asynccontextmanager
async def _over_http(url: str, headers: dict[str, str], seconds: float) -> AsyncGenerator[Any]:
    # Not through a proxy of the environment, which would see everything and may be anybody's.
    client = httpx2.AsyncClient(
        headers=headers, timeout=httpx2.Timeout(seconds, read=max(seconds, 300.0)), trust_env=False
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams


def _variable(server: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise Misconfigured(f"mcp.servers.{server}: the environment variable {name} is not set")
    return value


def _reason(error: BaseException) -> str:
    """The innermost reason of an error, in words that hold nothing a server wrote."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.strerror:
        return f"{class_name(error)}: {error.strerror}"
    return class_name(error)
