"""The proxy: one server for clients, any number of servers behind it, and the gate in between.

Whatever moves content is a call for the gate: tools under their names, and the protocol's own methods
(``resources/read``, ``prompts/get`` and so on) as tools of their server under theirs. What is not in :data:`METHODS` is
refused. Text that a server writes about itself is on record before a client sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server import Server
from mcp.server.lowlevel.server import NotificationOptions
from pydantic import TypeAdapter

from interlock.errors import Bug, InterlockError, Misconfigured
from interlock.gate.conversation import Conversation
from interlock.integrations.mcp import names, results
from interlock.integrations.mcp.identity import Gate, Held, Identity
from interlock.integrations.mcp.upstream import Hooks, ListedTool, Unreachable, Upstream
from interlock.model.calls import Call
from interlock.model.decisions import Verdict
from interlock.model.pins import ServerPins
from interlock.model.proxies import ProxyChoice
from interlock.model.results import Outcome, ToolResult, class_name, text_for_model
from interlock.model.tools import ToolId

_LOGGER = logging.getLogger("interlock.mcp")

METHODS: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "tools/call",
        "notifications/initialized",
        "notifications/cancelled",
    }
)
"""Everything that a client may send. The list is closed: what is new in the protocol is refused until it is here."""

_CALLED: Final[TypeAdapter[Any]] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_GONE: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)


class Proxy:
    """What stands between clients and servers."""

    def __init__(
        self,
        gate: Gate,
        choice: ProxyChoice,
        folder: Path,
        pins: dict[str, ServerPins] | None = None,
        first: Conversation | None = None,
    ) -> None:
        """
        Args:
            first: the conversation of everything that can't be told apart; by default a new one.
            folder: of the configuration; commands' folders are relative to it.
            pins: by server, what the operator has seen.

        Raises:
            Misconfigured: something of the configuration can't be had here.
        """
        self._gate = gate
        self._choice = choice
        stray = sorted(set(pins or {}) - set(choice.servers))
        if stray:
            raise Misconfigured(f"{choice.pins}: there is no server {stray[0]!r} under [mcp.servers]; remove its pins")
        hooks = Hooks(self._listed, self._notified)
        self.upstreams = {
            name: Upstream(name, one, folder, (pins or {}).get(name), hooks) for name, one in choice.servers.items()
        }
        for name in self.upstreams:
            gate.listed(name, ())  # until a server has said what it has, nothing that was declared of it stands
        self.identity = Identity(gate, choice, first)
        self._number = 0

    # --- what servers tell ------------------------------------------------------------------------------------------

    async def _listed(self, upstream: Upstream) -> None:
        """A server said what it has: what was declared stands or falls, and every conversation knows whose text it is,
        before anybody sees it."""
        self._gate.listed(upstream.name, upstream.listing.standing)
        for held in self.identity.all():
            await self._admitted(held, upstream)

    async def _admitted(self, held: Held, upstream: Upstream) -> None:
        listing = upstream.listing
        if upstream.choice.trusted or listing.reviewed:
            return
        text = "\n".join((listing.instructions, *sorted(one.digest for one in listing.tools.values())))
        await self.admit(held, upstream, text, "what it says of itself and of its tools")

    async def admit(self, held: Held, upstream: Upstream, text: str, what: str) -> None:
        """Put on record that text of a server enters a conversation. Once per text: labels are never taken away.

        Raises:
            InterlockError: it is not on record, so nobody may see it.
        """
        key = (upstream.name, text)
        if upstream.choice.trusted or key in held.admitted:
            return
        label, source = results.server_label(upstream.name), f"mcp server {upstream.name}: {what}"
        await anyio.to_thread.run_sync(lambda: held.guard.admit(text, labels=[label], source=source))
        held.admitted.add(key)

    async def _notified(self, upstream: Upstream, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification) or type(message).__name__ == "ToolsListChanged":
            await upstream.refresh()

    # --- for clients ------------------------------------------------------------------------------------------------

    def held(self, context: Any) -> Held:
        """The conversation that a request belongs to."""
        return self.identity.of(context)

    async def ready(self, context: Any) -> Held:
        """The same, with the text of every server on record."""
        held = self.held(context)
        for upstream in self.upstreams.values():
            await self._admitted(held, upstream)
        return held

    def _tools(self) -> dict[str, tuple[Upstream, ListedTool]]:
        shown = names.table({name: one.listing.tools for name, one in self.upstreams.items()})
        return {
            key: (self.upstreams[server], self.upstreams[server].listing.tools[name])
            for key, (server, name) in shown.items()
        }

    def tool_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments by its shown name."""
        found = self._tools().get(name)
        return found[1].tool.input_schema if found is not None else None

    async def list_tools(self, context: Any, _params: Any) -> types.ListToolsResult:
        """All tools of all servers that can be reached, as they are now."""
        await self._refreshed(self.upstreams.values())
        await self.ready(context)
        listed = []
        for key, (_, one) in self._tools().items():
            meta = results.meta_out(one.tool.meta, ())
            meta = {name: value for name, value in meta.items() if name not in (results.LABELS, "ifc")}
            meta["dev.interlock/declared"] = one.stands
            listed.append(one.tool.model_copy(update={"name": key, "meta": meta, "execution": None}))
        return types.ListToolsResult(tools=listed)

    async def _refreshed(self, upstreams: Iterable[Upstream]) -> None:
        async def one(upstream: Upstream) -> None:
            try:
                await upstream.refresh()
            except (MCPError, Unreachable) as error:
                _LOGGER.warning("mcp server %s gave no list: %s", upstream.name, class_name(error))

        async with anyio.create_task_group() as tasks:
            for upstream in upstreams:
                tasks.start_soon(one, upstream)

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> Any:
        """One call of a tool, through the gate."""
        held = await self.ready(context)
        found = self._tools().get(params.name)
        if found is None:
            return results.refusal(
                "Not done: no server behind this proxy has a tool of this name. List the tools again.", "unknown_name"
            )
        if params.task is not None:
            raise MCPError(types.INVALID_PARAMS, "tasks do not pass this proxy; call the tool without one")
        upstream, listed = found
        name = listed.tool.name
        caught: list[types.CallToolResult | MCPError] = []

        async def run(_name: str, arguments: dict[str, Any]) -> ToolResult:
            try:
                answer = await self._send_call(upstream, name, arguments, context)
            except MCPError as error:
                if error.code in _GONE:
                    raise
                caught.append(error)
                return ToolResult(_error_text(error), is_error=True, labels=self._changed(upstream, listed))
            if isinstance(answer, types.InputRequiredResult):
                raise Unreachable("the server asks for input in the middle of the call, which is not configured")
            caught.append(answer)
            labels = results.extra_labels(upstream.name, upstream.choice.trusted, answer.meta, answer.content)
            labels |= set(self._changed(upstream, listed))
            external = not (upstream.choice.trusted and results.called_trusted(answer.meta))
            content = results.for_gate(answer)
            kept.append(content)
            return ToolResult(content, external=external, labels=sorted(labels), is_error=answer.is_error)

        kept: list[Any] = []
        outcome = await self.through_gate(held, upstream, name, params.arguments or {}, run)
        if not outcome.executed:
            return self._refused(outcome, listed)
        answer = caught[0] if caught else None
        if outcome.error is not None or answer is None:
            self._lost(upstream, outcome.error)
            return results.refusal(_failed(upstream, outcome), "failed")
        if isinstance(answer, MCPError):
            raise answer
        if outcome.result is not kept[0]:
            answer = results.rebuilt(answer, outcome.result, outcome.for_model)
        return answer.model_copy(update={"meta": results.meta_out(answer.meta, self._labels(upstream, name, answer))})

    async def through_gate(
        self, held: Held, upstream: Upstream, name: str, arguments: dict[str, Any], run: Callable[..., Awaitable[Any]]
    ) -> Outcome:
        """Decide, journal, run and observe one call; of the gate's own failures nothing is forwarded either."""
        self._number += 1
        call = Call(name, arguments, f"mcp-{self._number}", upstream.name)
        (outcome,) = await held.guard.abatch([call], run=run)
        return outcome

    def _changed(self, upstream: Upstream, listed: ListedTool) -> tuple[str, ...]:
        """A tool that its server changed while the call was under way may have brought anything."""
        now = upstream.listing.tools.get(listed.tool.name)
        if now is not None and now.digest == listed.digest:
            return ()
        return ("private:unknown", "untrusted:unknown")

    def _labels(self, upstream: Upstream, name: str, answer: types.CallToolResult) -> set[str]:
        spec = self._gate.manifest.spec(ToolId(upstream.name, name))
        said = results.extra_labels(upstream.name, upstream.choice.trusted, answer.meta, answer.content)
        return {*spec.private, *spec.untrusted, *said}

    async def _send_call(self, upstream: Upstream, name: str, arguments: dict[str, Any], context: Any) -> Any:
        session = await upstream.session()

        async def told(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        request = types.CallToolRequest(params=types.CallToolRequestParams(name=name, arguments=arguments))
        return await session.send_request(request, _CALLED, progress_callback=told)

    def _lost(self, upstream: Upstream, error: BaseException | None) -> None:
        if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
            upstream.lost()

    def _refused(self, outcome: Outcome, listed: ListedTool | None = None) -> types.CallToolResult:
        text = outcome.for_model
        if outcome.verdict is Verdict.ASK:
            text += " Nobody could be asked: the proxy has no way to a person."
        if listed is not None and listed.problem:
            text += f" (The tool is not what the operator declared: {listed.problem}.)"
        return results.refusal(text, outcome.decision.code)


def _error_text(error: MCPError) -> str:
    return error.message if error.data is None else f"{error.message}\n{text_for_model(error.data)}"


def _failed(upstream: Upstream, outcome: Outcome) -> str:
    error = outcome.error
    if isinstance(error, MCPError) and error.code in _GONE:
        why = "did not answer in time" if error.code == types.REQUEST_TIMEOUT else "is gone"
        return (
            f"The server {upstream.name!r} {why}, so nobody knows whether the call was carried out."
            " Do not repeat it without looking."
        )
    if isinstance(error, Unreachable):
        return f"The server {upstream.name!r} can't be reached."
    return outcome.for_model


async def only_known(ctx: Any, call_next: Any) -> Any:
    """Middleware: the closed list of methods, before anything else looks at a message (case 82)."""
    if ctx.method not in METHODS:
        if ctx.request_id is None:
            return None
        raise MCPError(types.METHOD_NOT_FOUND, "this proxy does not know the method", ctx.method)
    try:
        return await call_next(ctx)
    except (Bug, InterlockError) as error:
        # Whatever fails in the gate is an answer to this request, and never a message that went on.
        _LOGGER.error("%s was refused: %s", ctx.method, error)
        raise MCPError(types.INTERNAL_ERROR, f"refused: the gate could not decide ({class_name(error)})") from error


class Front(Server[Any]):
    """The server that clients see."""

    def create_initialization_options(self, *_: Any, **__: Any) -> Any:
        """See the SDK; lists change, and clients are told."""
        changed = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(changed)


def front_of(proxy: Proxy, version: str) -> Front:
    """The server in front of a proxy whose servers were reached."""
    instructions = "\n\n".join(one.listing.instructions for one in proxy.upstreams.values() if one.listing.instructions)
    front = Front(
        "interlock",
        version=version,
        instructions=instructions or None,
        on_list_tools=proxy.list_tools,
        on_call_tool=proxy.call_tool,
        get_tool_input_schema=proxy.tool_schema,
    )
    front.middleware.append(only_known)
    return front
