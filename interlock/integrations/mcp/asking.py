"""What servers ask for: a sample of the client's model, input of the person, the client's folders.

The question is a server's text that reaches a person or a model, and the answer leaves to that server. So each is a
call for the gate, of the server's tool ``sampling/createMessage``, ``elicitation/create`` or ``roots/list``; what the
operator did not let the server ask is not even offered to it. An answer goes to the server whose call it belongs to,
and a question to the one client that waits for that call: where more wait, nobody is asked (case 84).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import mcp_types as types

from interlock.errors import InterlockError
from interlock.integrations.mcp.identity import Held
from interlock.integrations.mcp.proxy import Look, Proxy
from interlock.integrations.mcp.upstream import Unreachable, Upstream

MAX_ROUNDS: Final = 8
_METHOD: Final[dict[type, tuple[str, str, type]]] = {
    types.CreateMessageRequest: ("sampling", "sampling/createMessage", types.CreateMessageResult),
    types.ElicitRequest: ("elicitation", "elicitation/create", types.ElicitResult),
    types.ListRootsRequest: ("roots", "roots/list", types.ListRootsResult),
}
_RESPONSE: Final[dict[type, str]] = {
    types.CreateMessageResult: "sampling/createMessage",
    types.CreateMessageResultWithTools: "sampling/createMessage",
    types.ElicitResult: "elicitation/create",
    types.ListRootsResult: "roots/list",
}
_NEW_ERA: Final = "2026-07-28"
Send = Callable[..., Awaitable[Any]]


class NotAsked(InterlockError):
    """A server asked for something that it does not get; the message says why."""


class Asking:
    """Passes on what servers ask, where the operator lets them."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        proxy.asked["sampling"] = lambda up, params: self._called_back(up, types.CreateMessageRequest(params=params))
        proxy.asked["elicitation"] = lambda up, params: self._called_back(up, types.ElicitRequest(params=params))
        proxy.asked["roots"] = lambda up, _params: self._called_back(up, types.ListRootsRequest())

    # --- the era without sessions: questions are results, answers come with the call that is made again -------------

    def along(self, params: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Answers that a client sends along with a call, each as a call of its own: they leave to the server."""
        for key, response in (params.input_responses or {}).items():
            method = _RESPONSE.get(type(response), "elicitation/create")
            yield method, {"key": key, "answer": response.model_dump(by_alias=True, mode="json", exclude_none=True)}

    def driven(self, context: Any, held: Held, upstream: Upstream, params: Any, send: Send) -> Send:
        """``send`` for a server that may ask in between: the question is handed to clients that know how to come back
        with an answer, and put to the others while the call waits."""

        async def through(arguments: dict[str, Any]) -> Any:
            responses, state = params.input_responses, params.request_state
            for _ in range(MAX_ROUNDS):
                answer = await send(arguments, responses, state)
                if not isinstance(answer, types.InputRequiredResult):
                    return answer
                for request in (answer.input_requests or {}).values():
                    self._checked(upstream, request)
                if context.protocol_version >= _NEW_ERA:
                    return answer
                responses = {
                    key: await self._asked(context, held, upstream, request)
                    for key, request in (answer.input_requests or {}).items()
                }
                state = answer.request_state
            raise Unreachable(f"mcp server {upstream.name!r} asks for input again and again")

        return through

    # --- the older era: questions are requests of the server --------------------------------------------------------

    async def _called_back(self, upstream: Upstream, request: Any) -> Any:
        waiting = list(self._proxy.under_way[upstream.name].values())
        clients = {id(held): context for held, context in waiting}
        sessions = {id(context.session) for _, context in waiting}
        try:
            self._checked(upstream, request)
            if len(clients) != 1 or len(sessions) != 1:
                raise NotAsked("it can't be told which client's call this belongs to")
            held, context = waiting[0]
            if context.protocol_version >= _NEW_ERA:
                raise NotAsked("the client can't be asked while a call waits")
            return await self._asked(context, held, upstream, request)
        except InterlockError as error:
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"refused by the client's proxy: {error}")

    def _checked(self, upstream: Upstream, request: Any) -> None:
        kind = _METHOD[type(request)][0]
        if kind not in upstream.choice.requests:
            raise NotAsked(f"the operator does not let this server ask for {kind}")
        if kind == "sampling" and (request.params.tools or request.params.tool_choice):
            raise NotAsked("a request for a sample may not bring tools")

    async def _asked(self, context: Any, held: Held, upstream: Upstream, request: Any) -> Any:
        """Put one question to the client, through the gate.

        Raises:
            NotAsked: the gate refused, or the client has no answer.
        """
        kind, method, result = _METHOD[type(request)]
        _capable(context, kind, request)
        asked = request.model_dump(by_alias=True, mode="json", exclude_none=True).get("params") or {}
        asked.pop("_meta", None)
        text = f"{kind}: {asked}"
        await self._proxy.admit(held, upstream, text, f"asks for {kind}")

        async def send(_arguments: dict[str, Any]) -> Any:
            return await context.session.send_request(request, result)

        def look(answer: Any) -> Look:
            # What the client answers is its own; it goes to the server, and no model reads it here.
            return Look(answer.model_dump(by_alias=True, mode="json", exclude_none=True), external=False)

        done = await self._proxy.passed(context, held, upstream, [(method, asked)], send, look)
        if done.error is not None:
            raise NotAsked("the client did not answer")
        if done.answer is None or done.dropped:
            raise NotAsked(f"denied by policy ({done.outcome.decision.code})")
        return done.answer


def _capable(context: Any, kind: str, request: Any) -> None:
    capabilities = context.session.client_capabilities
    if getattr(capabilities, kind, None) is None:
        raise NotAsked(f"the client offers no {kind}")
    if kind == "elicitation" and isinstance(request.params, types.ElicitRequestURLParams):
        raise NotAsked("addresses to visit do not pass")
