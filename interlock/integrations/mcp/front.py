"""The server that clients see: which methods there are, and who is told when something changes."""

from __future__ import annotations

import logging
from typing import Any, Final

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

from interlock.errors import Bug, InterlockError
from interlock.integrations.mcp.asking import Asking
from interlock.integrations.mcp.content import Content
from interlock.integrations.mcp.identity import session_of
from interlock.integrations.mcp.proxy import Proxy
from interlock.integrations.mcp.tools import Tools
from interlock.integrations.mcp.upstream import Unreachable, Upstream
from interlock.model.results import class_name

_LOGGER = logging.getLogger("interlock.mcp")
MAX_CLIENTS: Final = 1000
MAX_SUBSCRIBED: Final = 10_000
NEW_ERA: Final = "2026-07-28"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"

METHODS: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/roots/list_changed",
    }
)
"""Everything that a client may send. The list is closed: what the protocol gets anew is refused until it is here."""

_CHANGES: Final[dict[type, tuple[type, str]]] = {
    types.ToolListChangedNotification: (ToolsListChanged, "send_tool_list_changed"),
    types.PromptListChangedNotification: (PromptsListChanged, "send_prompt_list_changed"),
    types.ResourceListChangedNotification: (ResourcesListChanged, "send_resource_list_changed"),
}
_EVENTS: Final = dict(_CHANGES.values())


class Front(Server[Any]):
    """The server in front of a proxy. It offers what the servers behind it offered when it was made."""

    def __init__(self, proxy: Proxy, version: str) -> None:
        self.proxy = proxy
        asking = Asking(proxy)
        tools, self._content = Tools(proxy, asking), Content(proxy, asking)
        said = [one.listing.instructions for one in proxy.upstreams.values() if one.listing.instructions]
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        super().__init__(
            "interlock", version=version, instructions="\n\n".join(said) or None, get_tool_input_schema=tools.schema
        )
        self.middleware.append(self._only_known)
        self.add_request_handler("tools/list", types.PaginatedRequestParams, tools.list)
        self.add_request_handler("tools/call", types.CallToolRequestParams, tools.call)
        self.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, self._roots_changed)
        content = self._content
        if proxy.with_capability("resources"):
            self.add_request_handler("resources/list", types.PaginatedRequestParams, content.resources)
            self.add_request_handler("resources/templates/list", types.PaginatedRequestParams, content.templates)
            self.add_request_handler("resources/read", types.ReadResourceRequestParams, content.read)
            self.add_request_handler("resources/subscribe", types.SubscribeRequestParams, self._subscribe)
            self.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, self._unsubscribe)
        if proxy.with_capability("prompts"):
            self.add_request_handler("prompts/list", types.PaginatedRequestParams, content.prompts)
            self.add_request_handler("prompts/get", types.GetPromptRequestParams, content.prompt)
        if proxy.with_capability("completions"):
            self.add_request_handler("completion/complete", types.CompleteRequestParams, content.complete)
        proxy.changed.append(self._changed)

    def create_initialization_options(self, *_: Any, **__: Any) -> Any:
        """See the SDK; lists change, and clients are told."""
        return super().create_initialization_options(NotificationOptions(True, True, True))

    async def _only_known(self, ctx: Any, call_next: Any) -> Any:
        """Middleware: the closed list of methods, before anything else looks at a message (case 82)."""
        if ctx.method not in METHODS:
            if ctx.request_id is None:
                return None
            raise MCPError(types.METHOD_NOT_FOUND, "this proxy does not pass on this method", ctx.method)
        if ctx.protocol_version < NEW_ERA and ctx.request_id is not None and ctx.method != "initialize":
            self._known(ctx)
        try:
            return await call_next(ctx)
        except Bug:
            _LOGGER.exception("a bug of Interlock; the request was refused")
            raise MCPError(types.INTERNAL_ERROR, "refused: an invariant of the gate is broken") from None
        except InterlockError as error:
            # Whatever fails in the gate is an answer to this request, and never a message that went on.
            _LOGGER.error("%s was refused: %s", ctx.method, error)
            raise MCPError(types.INTERNAL_ERROR, f"refused: {class_name(error)} in the gate") from error

    def _known(self, ctx: Any) -> None:
        sessions = self.proxy.clients.sessions
        sessions.pop(session_of(ctx), None)
        sessions[session_of(ctx)] = ctx.session
        while len(sessions) > MAX_CLIENTS:
            self._forget(next(iter(sessions)))

    def _forget(self, session: str) -> None:
        self.proxy.clients.sessions.pop(session, None)
        for keys in self.proxy.clients.subscribed.values():
            keys.discard(session)

    # --- changes ----------------------------------------------------------------------------------------------------

    async def _changed(self, upstream: Upstream, message: Any) -> None:
        """A notification of a server. What is not known here goes no further."""
        event: Any = None
        if type(message) in _CHANGES:
            event = _CHANGES[type(message)][0]()
        elif type(message) in _EVENTS:
            event = message
        if event is not None:
            if isinstance(event, ToolsListChanged):
                try:
                    # Before anybody is told: calls that come meanwhile are decided under the new list already.
                    await upstream.refresh()
                except (MCPError, Unreachable):
                    self.proxy.gate.listed(upstream.name, ())  # nobody knows what its tools are now
            await self._bus.publish(event)
            await self._tell(list(self.proxy.clients.sessions), _EVENTS[type(event)])
        elif isinstance(message, types.ResourceUpdatedNotification | ResourceUpdated):
            uri = str(message.uri if isinstance(message, ResourceUpdated) else message.params.uri)
            keys = self.proxy.clients.subscribed.get((upstream.name, uri))
            if keys is not None:
                await self._bus.publish(ResourceUpdated(uri=uri))
                await self._tell(sorted(keys), "send_resource_updated", uri)
        elif isinstance(message, types.LoggingMessageNotificationParams):
            await self._log(upstream, message)

    async def _tell(self, keys: list[str], what: str, *arguments: Any) -> None:
        for key in keys:
            session = self.proxy.clients.sessions.get(key)
            if session is None:
                continue
            try:
                with anyio.fail_after(5):
                    await getattr(session, what)(*arguments)
            except Exception:  # a client that is gone is told nothing
                self._forget(key)

    async def _log(self, upstream: Upstream, params: types.LoggingMessageNotificationParams) -> None:
        """A line that a server logs: text of its own, so it is on record before a client sees it."""
        waiting = list(self.proxy.under_way[upstream.name].values())
        text = params.model_dump_json(by_alias=True, exclude_none=True)
        note = types.LoggingMessageNotification(params=params.model_copy(update={"meta": None}))
        for held, ctx in waiting:
            if ctx.protocol_version < NEW_ERA or LOG_LEVEL in (ctx.meta or {}):
                await self.proxy.admit(held, upstream, text, "a line of its log")
                await ctx.session.send_notification(note, related_request_id=ctx.request_id)
        if waiting:
            return
        for held in self.proxy.identity.all():
            await self.proxy.admit(held, upstream, text, "a line of its log")
        await self._tell(list(self.proxy.clients.sessions), "send_notification", note)

    # --- subscriptions ----------------------------------------------------------------------------------------------

    async def _subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        upstream = await self._content.subscribed(ctx, str(params.uri))
        self._note(upstream, str(params.uri), session_of(ctx))
        return types.EmptyResult()

    def _note(self, upstream: Upstream, uri: str, key: str) -> None:
        subscribed = self.proxy.clients.subscribed
        if len(subscribed) >= MAX_SUBSCRIBED:
            raise MCPError(types.INTERNAL_ERROR, "refused: too many subscriptions")
        subscribed.setdefault((upstream.name, uri), set()).add(key)

    async def _unsubscribe(self, ctx: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        for (_, uri), keys in self.proxy.clients.subscribed.items():
            if uri == str(params.uri):
                keys.discard(session_of(ctx))
        return types.EmptyResult()

    async def _listen(self, ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        for uri in params.notifications.resource_subscriptions or ():
            upstream = await self._content.subscribed(ctx, uri)
            self._note(upstream, uri, "")
        return await self._listening(ctx, params)

    # --- without content --------------------------------------------------------------------------------------------

    async def _set_level(self, _ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """From which level on servers log: one word of a closed list."""
        for upstream in self.proxy.with_capability("logging"):
            if upstream.choice.logs:
                session = await upstream.session()
                await session.send_request(
                    types.SetLevelRequest(params=types.SetLevelRequestParams(level=params.level)), types.EmptyResult
                )
        return types.EmptyResult()

    async def _roots_changed(self, _ctx: Any, _params: Any) -> None:
        for upstream in self.proxy.upstreams.values():
            if "roots" in upstream.choice.requests:
                await (await upstream.session()).send_notification(types.RootsListChangedNotification())
