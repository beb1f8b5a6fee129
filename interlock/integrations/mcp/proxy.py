"""The proxy: what stands between clients and servers, with the gate in it.

Whatever moves content is a call for the gate: tools under their names, and the protocol's own methods
(``resources/read``, ``prompts/get`` and so on) as tools of their server under theirs. Text that a server writes about
itself is on record before a client sees it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.abc
import anyio.to_thread
import mcp_types as types
from mcp import MCPError

from interlock.errors import InterlockError, Misconfigured
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

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGGER = logging.getLogger("interlock.mcp")
GONE: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)


@dataclass(frozen=True, slots=True)
class Look:
    """An answer of a server as the gate sees it."""

    content: Any
    labels: frozenset[str] = frozenset()
    external: bool = True
    is_error: bool = False


@dataclass(slots=True)
class Passed:
    """What came of a call through the gate.

    Attributes:
        answer: the server's, when the client may have it: on record, and of the kind that was looked at.
        error: an answer of the server that is an error of the protocol; the client may have it too.
        dropped: the client may have only what is left of the answer: the outcome's result.
    """

    outcome: Outcome
    answer: Any = None
    error: MCPError | None = None
    dropped: bool = False


@dataclass(slots=True)
class Clients:
    """Sessions of the older era that are told of changes, by their id, and what they subscribed to."""

    sessions: dict[str, Any] = field(default_factory=dict)
    subscribed: dict[tuple[str, str], set[str]] = field(default_factory=dict)


class Proxy:
    """Holds servers and conversations, and passes calls from the one to the other."""

    def __init__(
        self,
        gate: Gate,
        choice: ProxyChoice,
        folder: Path,
        pins: Mapping[str, ServerPins] | None = None,
        first: Conversation | None = None,
        *,
        here: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        """
        Args:
            here: by name, what gives servers that live in this process, instead of their commands and addresses.
            folder: of the configuration; commands' folders are relative to it.
            pins: by server, what the operator has seen.
            first: the conversation of everything that can't be told apart; by default a new one.

        Raises:
            Misconfigured: something of the configuration can't be had here.
        """
        self.gate = gate
        self.choice = choice
        self.clients = Clients()
        self.changed: list[Callable[[Upstream, Any], Awaitable[None]]] = []
        self.asked: dict[str, Callable[[Upstream, Any], Awaitable[Any]]] = {}
        self.under_way: dict[str, dict[int, tuple[Held, Any]]] = {name: {} for name in choice.servers}
        stray = sorted(set(pins or {}) - set(choice.servers))
        if stray:
            raise Misconfigured(f"{choice.pins}: there is no server {stray[0]!r} under [mcp.servers]; remove its pins")
        hooks = Hooks(self._listed, self._notified, self.asked)
        self.upstreams = {
            name: Upstream(name, one, folder, (pins or {}).get(name), hooks, here=(here or {}).get(name))
            for name, one in choice.servers.items()
        }
        self.alone = len(self.upstreams) == 1
        for name in self.upstreams:
            gate.listed(name, ())  # until a server has said what it has, nothing that was declared of it stands
        self.identity = Identity(gate, choice, first)
        self.tools: dict[str, tuple[Upstream, ListedTool]] = {}
        self._number = 0

    # --- what servers tell ------------------------------------------------------------------------------------------

    async def _listed(self, upstream: Upstream) -> None:
        """A server said what it has: what was declared stands or falls, and every conversation knows whose text it is,
        before anybody sees it."""
        self.gate.listed(upstream.name, upstream.listing.standing)
        for held in self.identity.all():
            await self._admitted(held, upstream)
        shown = names.table({name: one.listing.tools for name, one in self.upstreams.items()})
        self.tools = {
            key: (self.upstreams[server], self.upstreams[server].listing.tools[name])
            for key, (server, name) in shown.items()
        }

    async def _admitted(self, held: Held, upstream: Upstream) -> None:
        listing = upstream.listing
        if not listing.reviewed:
            await self.admit(held, upstream, listing.fingerprint, "what it says of itself and of its tools")

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
        held.note(key)

    async def _notified(self, upstream: Upstream, message: Any) -> None:
        for told in self.changed:
            await told(upstream, message)

    # --- for clients ------------------------------------------------------------------------------------------------

    async def ready(self, context: Any) -> Held:
        """The conversation that a request belongs to, with the text of every server on record."""
        held = self.identity.of(context)
        for upstream in self.upstreams.values():
            await self._admitted(held, upstream)
        return held

    async def refreshed(self) -> None:
        """Ask every server anew what it has; those that do not answer keep what they had."""

        async def one(upstream: Upstream) -> None:
            try:
                await upstream.refresh()
            except (MCPError, Unreachable) as error:
                _LOGGER.warning("mcp server %s gave no list: %s", upstream.name, class_name(error))

        async with anyio.create_task_group() as tasks:
            for upstream in self.upstreams.values():
                tasks.start_soon(one, upstream)

    def with_capability(self, name: str) -> list[Upstream]:
        """Servers that say they have a capability."""
        return [one for one in self.upstreams.values() if getattr(one.capabilities, name) is not None]

    # --- one call ---------------------------------------------------------------------------------------------------

    async def passed(
        self,
        context: Any,
        held: Held,
        upstream: Upstream,
        calls: Iterable[tuple[str, Mapping[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[Any]],
        look: Callable[[Any], Look],
    ) -> Passed:
        """Decide calls together, and only if all of them are allowed send the first; the others go along with it.

        Whatever fails in the gate is an outcome that was not executed: then nothing was sent. An answer that is not on
        record is not handed on.
        """
        self._number += 1
        number = self._number
        proposed = [
            Call(name, dict(arguments), f"mcp-{number}-{place}", upstream.name)
            for place, (name, arguments) in enumerate(calls)
        ]
        caught: list[Any] = []
        connection = upstream.connection
        if len(proposed) > 1:
            refused = await self._refused_along(held, proposed[1:])
            if refused is not None:
                return Passed(refused)

        async def run(_name: str, arguments: dict[str, Any]) -> ToolResult:
            try:
                answer = await send(arguments)
            except MCPError as error:
                if error.code in GONE:
                    raise
                caught[:] = [error, text_of(error)]
                return ToolResult(caught[1], is_error=True)
            seen = look(answer)
            caught[:] = [answer, seen.content]
            return ToolResult(seen.content, external=seen.external, labels=sorted(seen.labels), is_error=seen.is_error)

        with self._counted(upstream, number, held, context):
            (outcome,) = await held.guard.abatch(proposed[:1], run=run)
        if isinstance(outcome.error, MCPError) and outcome.error.code == types.CONNECTION_CLOSED:
            upstream.lost(connection)
        if not outcome.executed or outcome.error is not None or not caught:
            return Passed(outcome)
        answer, content = caught
        if isinstance(answer, MCPError):
            return Passed(outcome, error=answer)
        return Passed(outcome, answer, dropped=outcome.result is not content)

    async def _refused_along(self, held: Held, calls: list[Call]) -> Outcome | None:
        """What goes along with a call is decided before it, and what it would send counts as sent."""
        for call in calls:

            async def gone(_name: str, _arguments: dict[str, Any]) -> ToolResult:
                return ToolResult("", external=False)

            (outcome,) = await held.guard.abatch([call], run=gone)
            if not outcome.executed or outcome.error is not None:
                return outcome
        return None

    @contextmanager
    def _counted(self, upstream: Upstream, number: int, held: Held, context: Any) -> Iterator[None]:
        self.under_way[upstream.name][number] = (held, context)
        try:
            yield
        finally:
            del self.under_way[upstream.name][number]

    def labels_of(self, upstream: Upstream, name: str, more: Iterable[str]) -> set[str]:
        """Labels of a result, as a client may be told them: all that its tool may bring, and its own."""
        spec = self.gate.manifest.spec(ToolId(upstream.name, name))
        return {*spec.private, *spec.untrusted, *more}


def why_not(upstream: Upstream, outcome: Outcome, problem: str = "") -> str:
    """What the model is told of a call that gave nothing."""
    error = outcome.error
    if not outcome.executed:
        text = outcome.for_model
        if outcome.verdict is Verdict.ASK and "Nobody" not in text:
            text += " Nobody could be asked: this proxy has no way to a person."
        return f"{text} (The tool is not what the operator declared: {problem}.)" if problem else text
    if isinstance(error, MCPError) and error.code in GONE:
        why = "did not answer in time" if error.code == types.REQUEST_TIMEOUT else "is gone"
        return (
            f"The server {upstream.name!r} {why}, so nobody knows whether the call was carried out."
            " Do not repeat it without looking."
        )
    if isinstance(error, InterlockError):
        return f"The call gave nothing: {error}."
    return outcome.for_model


def text_of(error: MCPError) -> str:
    """Everything that a server wrote into an error."""
    return error.message if error.data is None else f"{error.message}\n{text_for_model(error.data)}"
