"""Resources, prompts and completions: content that enters without a tool, under the names of the methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.shared.uri_template import UriTemplate
from pydantic import TypeAdapter

from interlock.integrations.mcp import names, results
from interlock.integrations.mcp.asking import Asking
from interlock.integrations.mcp.identity import Held
from interlock.integrations.mcp.proxy import Look, Passed, Proxy, why_not
from interlock.integrations.mcp.upstream import Unreachable, Upstream, pages

_READ: Final[TypeAdapter[Any]] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)
_PROMPT: Final[TypeAdapter[Any]] = TypeAdapter(types.GetPromptResult | types.InputRequiredResult)


class Content:
    """Handlers of these methods."""

    def __init__(self, proxy: Proxy, asking: Asking) -> None:
        self._proxy = proxy
        self._asking = asking

    # --- lists ------------------------------------------------------------------------------------------------------

    async def resources(self, context: Any, _params: Any) -> types.ListResourcesResult:
        """All resources of all servers."""
        found = await self._listed(
            context, "resources", types.ListResourcesRequest, types.ListResourcesResult, "resources"
        )
        return types.ListResourcesResult(resources=[item for _, item in found])

    async def templates(self, context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        """All templates of resources of all servers."""
        request, result = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        found = await self._listed(context, "resources", request, result, "resource_templates")
        return types.ListResourceTemplatesResult(resource_templates=[item for _, item in found])

    async def prompts(self, context: Any, _params: Any) -> types.ListPromptsResult:
        """All prompts of all servers, under the names that tools would have."""
        found = await self._listed(context, "prompts", types.ListPromptsRequest, types.ListPromptsResult, "prompts")
        shown = [
            item.model_copy(update={"name": names.shown(upstream.name, item.name, alone=self._proxy.alone)})
            for upstream, item in found
        ]
        return types.ListPromptsResult(prompts=shown)

    async def _listed(
        self, context: Any, capability: str, request: Any, result: Any, key: str
    ) -> list[tuple[Upstream, Any]]:
        """Items of all servers that have the capability; on record before they are shown."""
        held = await self._proxy.ready(context)
        found: list[tuple[Upstream, Any]] = []
        problems: list[MCPError] = []
        for upstream in self._proxy.with_capability(capability):
            try:
                items = await self._items(upstream, request, result, key)
            except (MCPError, Unreachable) as error:
                problems.append(error if isinstance(error, MCPError) else _unreachable(error))
                continue
            if items:
                text = "\n".join(one.model_dump_json(by_alias=True, exclude_none=True) for one in items)
                await self._proxy.admit(held, upstream, text, f"its {key}")
            found += [(upstream, item) for item in items]
        if problems and not found:
            raise problems[0]
        return found

    async def _items(self, upstream: Upstream, request: Any, result: Any, key: str) -> list[Any]:
        return await pages(await upstream.session(), request, result, key)

    async def _some(self, upstream: Upstream, request: Any, result: Any, key: str) -> list[Any]:
        """The items of a list; none where the server does not have it or does not answer."""
        try:
            return await self._items(upstream, request, result, key)
        except (MCPError, Unreachable):
            return []

    # --- which server is meant --------------------------------------------------------------------------------------

    async def _owner(self, uri: str) -> Upstream:
        """The one server that has a resource. Two that claim the same are none: neither may shadow the other."""
        candidates = self._proxy.with_capability("resources")
        if len(candidates) == 1 and self._proxy.alone:
            return candidates[0]
        listed, matching = [], []
        for upstream in candidates:
            items = await self._some(upstream, types.ListResourcesRequest, types.ListResourcesResult, "resources")
            request, result = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
            templates = await self._some(upstream, request, result, "resource_templates")
            if any(str(one.uri) == uri for one in items):
                listed.append(upstream)
            if any(_matches(one.uri_template, uri) for one in templates):
                matching.append(upstream)
        claimed = {one.name: one for one in (*listed, *matching)}
        if len(claimed) == 1:
            return next(iter(claimed.values()))
        problem = "more than one server claims this resource" if claimed else "no server lists this resource"
        raise MCPError(types.INVALID_PARAMS, f"refused: {problem}")

    def _prompt(self, shown: str) -> tuple[Upstream, str]:
        for upstream in self._proxy.with_capability("prompts"):
            prefix = names.shown(upstream.name, "", alone=self._proxy.alone)
            if shown.startswith(prefix):
                return upstream, shown[len(prefix) :]
        raise MCPError(types.INVALID_PARAMS, "refused: no server has a prompt of this name")

    # --- content ----------------------------------------------------------------------------------------------------

    async def read(self, context: Any, params: types.ReadResourceRequestParams) -> Any:
        """One resource. Its result is labelled like that of a tool."""
        held = await self._proxy.ready(context)
        upstream = await self._owner(params.uri)

        async def send(arguments: dict[str, Any], responses: Any = None, state: str | None = None) -> Any:
            sent = types.ReadResourceRequestParams(uri=arguments["uri"], input_responses=responses, request_state=state)
            return await (await upstream.session()).send_request(types.ReadResourceRequest(params=sent), _READ)

        def look(answer: Any) -> Look:
            if isinstance(answer, types.InputRequiredResult):
                return _asked(upstream, answer)
            texts = [one.text for one in answer.contents if isinstance(one, types.TextResourceContents)]
            whole = answer.model_dump(by_alias=True, mode="json", exclude_none=True, include={"contents"})
            content = texts[0] if len(texts) == len(answer.contents) == 1 else whole
            return _look(upstream, answer, content, answer.contents)

        method, arguments = "resources/read", {"uri": params.uri}
        done = await self._passed(context, held, upstream, params, (method, arguments), send, look)
        if done.dropped:
            left = types.TextResourceContents(uri=params.uri, text=done.outcome.for_model)
            return types.ReadResourceResult(contents=[left])
        return self._out(upstream, method, done, look)

    async def prompt(self, context: Any, params: types.GetPromptRequestParams) -> Any:
        """One prompt of a server: text that the model will read as if somebody had said it."""
        held = await self._proxy.ready(context)
        upstream, name = self._prompt(params.name)

        async def send(arguments: dict[str, Any], responses: Any = None, state: str | None = None) -> Any:
            sent = types.GetPromptRequestParams(
                name=arguments["name"],
                arguments=arguments.get("arguments"),
                input_responses=responses,
                request_state=state,
            )
            return await (await upstream.session()).send_request(types.GetPromptRequest(params=sent), _PROMPT)

        def look(answer: Any) -> Look:
            if isinstance(answer, types.InputRequiredResult):
                return _asked(upstream, answer)
            whole = answer.model_dump(
                by_alias=True, mode="json", exclude_none=True, include={"description", "messages"}
            )
            return _look(upstream, answer, whole, [one.content for one in answer.messages])

        arguments: dict[str, Any] = {"name": name}
        if params.arguments is not None:
            arguments["arguments"] = dict(params.arguments)
        done = await self._passed(context, held, upstream, params, ("prompts/get", arguments), send, look)
        if done.dropped:
            text = types.TextContent(type="text", text=done.outcome.for_model)
            return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])
        return self._out(upstream, "prompts/get", done, look)

    async def complete(self, context: Any, params: types.CompleteRequestParams) -> Any:
        """Completions of an argument: what was typed so far goes to the server."""
        held = await self._proxy.ready(context)
        ref: Any = params.ref
        if isinstance(ref, types.PromptReference):
            upstream, name = self._prompt(ref.name)
            ref = ref.model_copy(update={"name": name})
        else:
            upstream = await self._template_owner(ref.uri)
        arguments = params.model_copy(update={"ref": ref}).model_dump(
            by_alias=True, mode="json", exclude_none=True, exclude={"meta"}
        )

        async def send(arguments: dict[str, Any]) -> Any:
            sent = types.CompleteRequestParams.model_validate(arguments)
            return await (await upstream.session()).send_request(
                types.CompleteRequest(params=sent), types.CompleteResult
            )

        def look(answer: Any) -> Look:
            return _look(upstream, answer, answer.completion.model_dump(mode="json", exclude_none=True), ())

        done = await self._proxy.passed(context, held, upstream, [("completion/complete", arguments)], send, look)
        _raise_if_refused(upstream, done)
        if done.dropped:
            return types.CompleteResult(completion=types.Completion(values=[]))
        return self._out(upstream, "completion/complete", done, look)

    async def _template_owner(self, template: str) -> Upstream:
        candidates = self._proxy.with_capability("completions")
        if len(candidates) == 1 and self._proxy.alone:
            return candidates[0]
        owners = []
        request, result = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        for upstream in candidates:
            if upstream.capabilities.resources is not None:
                listed = await self._items(upstream, request, result, "resource_templates")
                owners += [upstream] if any(one.uri_template == template for one in listed) else []
        if len(owners) != 1:
            raise MCPError(types.INVALID_PARAMS, "refused: it can't be told which server has this template")
        return owners[0]

    async def subscribed(self, context: Any, uri: str) -> Upstream:
        """Ask a server to say when a resource changes; the address goes to the server, so the gate is asked.

        Raises:
            MCPError: refused, or the server can't.
        """
        held = await self._proxy.ready(context)
        upstream = await self._owner(uri)

        async def send(arguments: dict[str, Any]) -> Any:
            await upstream.subscribe(arguments["uri"])
            return types.EmptyResult()

        calls = [("resources/subscribe", {"uri": uri})]
        done = await self._proxy.passed(context, held, upstream, calls, send, lambda _: Look("", external=False))
        _raise_if_refused(upstream, done)
        return upstream

    async def _passed(
        self,
        context: Any,
        held: Held,
        upstream: Upstream,
        params: Any,
        call: tuple[str, Mapping[str, Any]],
        send: Any,
        look: Any,
    ) -> Passed:
        through = self._asking.driven(context, held, upstream, params, send)
        done = await self._proxy.passed(context, held, upstream, [call, *self._asking.along(params)], through, look)
        _raise_if_refused(upstream, done)
        return done

    def _out(self, upstream: Upstream, method: str, done: Passed, look: Any) -> Any:
        if isinstance(done.answer, types.InputRequiredResult):
            return done.answer
        labels = self._proxy.labels_of(upstream, method, look(done.answer).labels)
        return done.answer.model_copy(update={"meta": results.meta_out(done.answer.meta, labels)})


def _raise_if_refused(upstream: Upstream, done: Passed) -> None:
    if done.error is not None:
        raise done.error
    if done.answer is None:
        raise MCPError(types.INVALID_REQUEST, why_not(upstream, done.outcome), {"code": done.outcome.decision.code})


def _look(upstream: Upstream, answer: Any, content: Any, parts: Any) -> Look:
    trusted = upstream.choice.trusted
    labels = results.extra_labels(upstream.name, trusted, answer.meta, parts)
    return Look(content, frozenset(labels), not (trusted and results.called_trusted(answer.meta)))


def _asked(upstream: Upstream, answer: types.InputRequiredResult) -> Look:
    asked = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
    return Look(asked, frozenset() if upstream.choice.trusted else frozenset({results.server_label(upstream.name)}))


def _unreachable(error: Unreachable) -> MCPError:
    return MCPError(types.INTERNAL_ERROR, f"refused: {error}")


def _matches(template: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except ValueError:
        return False
