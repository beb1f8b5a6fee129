"""Tools: ``tools/list`` and ``tools/call``."""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from pydantic import TypeAdapter

from interlock.integrations.mcp import results
from interlock.integrations.mcp.asking import Asking
from interlock.integrations.mcp.proxy import Look, Proxy, why_not
from interlock.integrations.mcp.upstream import ListedTool, Upstream

DECLARED: Final = "dev.interlock/declared"
_CALLED: Final[TypeAdapter[Any]] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)


class Tools:
    """Handlers of the two methods."""

    def __init__(self, proxy: Proxy, asking: Asking) -> None:
        self._proxy = proxy
        self._asking = asking

    def schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments by its shown name."""
        found = self._proxy.tools.get(name)
        return found[1].tool.input_schema if found is not None else None

    async def list(self, context: Any, _params: Any) -> types.ListToolsResult:
        """All tools of all servers that can be reached, as they are now."""
        await self._proxy.refreshed()
        await self._proxy.ready(context)
        listed = []
        for key, (_, one) in self._proxy.tools.items():
            meta = {**results.foreign(one.tool.meta), DECLARED: one.stands}
            # Tasks do not pass, so no tool says that it takes them.
            listed.append(one.tool.model_copy(update={"name": key, "meta": meta, "execution": None}))
        return types.ListToolsResult(tools=listed)

    async def call(self, context: Any, params: types.CallToolRequestParams) -> Any:
        """One call of a tool, through the gate. What is not made is a result that says why, never a silence."""
        held = await self._proxy.ready(context)
        found = self._proxy.tools.get(params.name)
        if found is None:
            text = "Not done: no server behind this proxy has a tool of this name. List the tools again."
            return results.refusal(text, "unknown_name")
        if params.task is not None:
            raise MCPError(types.INVALID_PARAMS, "tasks do not pass this proxy; call the tool without one")
        upstream, listed = found
        name = listed.tool.name

        async def send(arguments: dict[str, Any], responses: Any = None, state: str | None = None) -> Any:
            session = await upstream.session()

            async def told(progress: float, total: float | None, message: str | None) -> None:
                await context.session.report_progress(progress, total, message)

            sent = types.CallToolRequestParams(
                name=name, arguments=arguments, input_responses=responses, request_state=state
            )
            return await session.send_request(types.CallToolRequest(params=sent), _CALLED, progress_callback=told)

        def look(answer: Any) -> Look:
            return self._look(upstream, listed, answer)

        calls = [(name, params.arguments or {}), *self._asking.along(params)]
        through = self._asking.driven(context, held, upstream, params, send)
        done = await self._proxy.passed(context, held, upstream, calls, through, look)
        if done.error is not None:
            raise done.error
        if done.answer is None:
            problem = "" if done.outcome.executed else listed.problem
            code = "failed" if done.outcome.executed else done.outcome.decision.code
            return results.refusal(why_not(upstream, done.outcome, problem), code)
        if isinstance(done.answer, types.InputRequiredResult):
            return done.answer
        answer: types.CallToolResult = done.answer
        if done.dropped:
            answer = results.rebuilt(answer, done.outcome.result, done.outcome.for_model)
        labels = self._proxy.labels_of(upstream, name, look(done.answer).labels)
        return answer.model_copy(update={"meta": results.meta_out(answer.meta, labels)})

    def _look(self, upstream: Upstream, listed: ListedTool, answer: Any) -> Look:
        changed = self._changed(upstream, listed)
        trusted = upstream.choice.trusted
        if isinstance(answer, types.InputRequiredResult):
            asked = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            label = () if trusted else (results.server_label(upstream.name),)
            return Look(asked, frozenset(label) | changed)
        labels = results.extra_labels(upstream.name, trusted, answer.meta, answer.content)
        external = not (trusted and results.called_trusted(answer.meta))
        return Look(results.for_gate(answer), frozenset(labels) | changed, external, answer.is_error)

    def _changed(self, upstream: Upstream, listed: ListedTool) -> frozenset[str]:
        """A tool that its server changed while the call was under way may have brought anything."""
        now = upstream.listing.tools.get(listed.tool.name)
        if now is not None and now.digest == listed.digest:
            return frozenset()
        return frozenset({"private:unknown", "untrusted:unknown"})
