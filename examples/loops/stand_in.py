"""A stand-in for the APIs of Anthropic and OpenAI, over real HTTP on loopback, with a model that says what it is told.

It is stateless like the real ones: which turn comes next depends on how many turns of the model are in the request. And
it is strict like the real ones: a request in which some call has no result, two results, or a result in the wrong place
gets status 400. With ``"stream": true`` it sends server-sent events, arguments in small pieces.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A turn of the model: a text, some calls as (name, arguments), or a whole response as the API would send it.
Turn = str | list[tuple[str, dict[str, Any]]] | dict[str, Any]
Body = dict[str, Any]


class StandIn:
    """A server for one conversation at a time; ``with StandIn(turns) as url:``.

    ``requests`` holds every request body that came, and ``refused`` why some got status 400.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.turns = list(turns)
        self.requests: list[Body] = []
        self.refused: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, api: API, request: Body) -> tuple[int, Body]:
        self.requests.append(request)
        problem, said = api.look(request)
        if problem:
            self.refused.append(problem)
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": problem}}
        turn = self.turns[said] if said < len(self.turns) else "I have nothing more to say."
        return 200, turn if isinstance(turn, dict) else api.response(turn, said)


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            api = APIS.get(self.path)
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, body = (404, {"error": "no such API"}) if api is None else stand_in.answer(api, request)
            streams = api is not None and status == 200 and request.get("stream") is True
            text = "".join(api.events(body)) if streams else json.dumps(body)
            self.send_response(status)
            self.send_header("content-type", "text/event-stream" if streams else "application/json")
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


class API:
    """What one API demands and how it answers."""

    def __init__(
        self,
        look: Callable[[Body], tuple[str, int]],
        response: Callable[[Any, int], Body],
        events: Callable[[Body], Iterator[str]],
    ) -> None:
        self.look, self.response, self.events = look, response, events


def _calls(turn: Turn, said: int) -> list[tuple[str, str, dict[str, Any]]]:
    return [] if isinstance(turn, str) else [(f"call_{said}_{n}", name, given) for n, (name, given) in enumerate(turn)]


def _pieces(text: str) -> Iterator[str]:
    yield from (text[start : start + 7] for start in range(0, len(text), 7))


def _event(body: Body, *, named: bool) -> str:
    return (f"event: {body['type']}\n" if named else "") + f"data: {json.dumps(body)}\n\n"


# --- Anthropic Messages -----------------------------------------------------------------------------------------------


def _look_anthropic(request: Body) -> tuple[str, int]:
    seen: set[str] = set()
    owed: list[str] = []
    said = 0
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = [block["type"] for block in blocks]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(owed):
            return f"tool_use ids {owed} must be answered in the next message, each once; found {answered}", said
        if message["role"] == "user" and "tool_result" in kinds[len(answered) :]:
            return "tool_result blocks must come first", said
        owed = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len({*owed, *seen}) < len(owed) + len(seen):
            return "tool_use ids must be unique", said
        seen.update(owed)
        said += message["role"] == "assistant"
    return (f"tool_use ids {owed} were not answered" if owed else ""), said


def _anthropic(turn: Turn, said: int) -> Body:
    calls = _calls(turn, said)
    content: list[Body] = [{"type": "text", "text": turn if isinstance(turn, str) else "I'll do that."}]
    content += [{"type": "tool_use", "id": one, "name": name, "input": given} for one, name, given in calls]
    return {
        "id": f"msg_{said}",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _anthropic_events(body: Body) -> Iterator[str]:
    begun = {**body, "content": [], "stop_reason": None}
    events: list[Body] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(body["content"]):
        start, deltas = dict(block), []
        if block["type"] == "text":
            start["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        elif block["type"] in ("tool_use", "server_tool_use", "mcp_tool_use"):
            start["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": one} for one in _pieces(json.dumps(block["input"]))]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}}, {"type": "message_stop"}]
    yield from (_event(event, named=True) for event in events)


# --- Chat Completions -------------------------------------------------------------------------------------------------


def _look_chat(request: Body) -> tuple[str, int]:
    owed: list[str] = []
    said = 0
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in owed:
                return "a tool message must follow the tool_calls that it answers, once for each", said
            owed.remove(message["tool_call_id"])
            continue
        if owed:
            return f"tool_call_ids {owed} did not have response messages", said
        owed = [one["id"] for one in message.get("tool_calls") or []]
        said += message["role"] == "assistant"
    return (f"tool_call_ids {owed} did not have response messages" if owed else ""), said


def _chat(turn: Turn, said: int) -> Body:
    message: Body = {"role": "assistant", "content": turn if isinstance(turn, str) else None, "refusal": None}
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for one, name, given in _calls(turn, said)
    ]
    if calls:
        message["tool_calls"] = calls
    return {
        "id": f"chatcmpl-{said}",
        "object": "chat.completion",
        "created": 0,
        "model": "stand-in",
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _chat_events(body: Body) -> Iterator[str]:
    choice = body["choices"][0]
    message = choice["message"]
    deltas: list[Body] = [{"role": "assistant", "content": None}]
    deltas += [{"content": piece} for piece in _pieces(message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    head = {"id": body["id"], "object": "chat.completion.chunk", "created": 0, "model": "stand-in"}
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, named=False)
    yield _event(
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}, named=False
    )
    yield "data: [DONE]\n\n"


# --- Responses --------------------------------------------------------------------------------------------------------


def _look_responses(request: Body) -> tuple[str, int]:
    """Items do not say where a response ends: it does where something of the caller's follows."""
    given = request["input"]
    called = [item["call_id"] for item in given if item.get("type") == "function_call"]
    answered = [item["call_id"] for item in given if item.get("type") == "function_call_output"]
    theirs = [item.get("type") == "function_call_output" or item.get("role") == "user" for item in given]
    said = sum(before and not now for before, now in zip([True, *theirs], theirs, strict=False))
    if len(set(called)) < len(called):
        return "call_ids must be unique", said
    if sorted(called) != sorted(answered):
        return f"no tool output found for function calls {sorted({*called} ^ {*answered})}", said
    return "", said


def _responses(turn: Turn, said: int) -> Body:
    output: list[Body] = [{"type": "reasoning", "id": f"rs_{said}", "summary": []}]
    if isinstance(turn, str):
        content = [{"type": "output_text", "text": turn, "annotations": []}]
        output.append(
            {"type": "message", "id": f"msg_{said}", "role": "assistant", "status": "completed", "content": content}
        )
    for one, name, given in _calls(turn, said):
        call = {"type": "function_call", "id": f"fc_{one}", "call_id": one, "name": name, "status": "completed"}
        output.append({**call, "arguments": json.dumps(given)})
    return {
        "id": f"resp_{said}",
        "object": "response",
        "created_at": 0,
        "model": "stand-in",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _responses_events(body: Body) -> Iterator[str]:
    begun = {**body, "output": [], "status": "in_progress"}
    events: list[Body] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item.get("id", "")}
        if item["type"] == "function_call":
            started = {**item, "arguments": "", "status": "in_progress"}
            events.append({"type": "response.output_item.added", **place, "item": started})
            for piece in _pieces(item["arguments"]):
                events.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
            done = {"arguments": item["arguments"], "name": item["name"]}
            events.append({"type": "response.function_call_arguments.done", **place, **done})
        else:
            events.append({"type": "response.output_item.added", **place, "item": {**item, "status": "in_progress"}})
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": body})
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number}, named=True)


APIS = {
    "/v1/messages": API(_look_anthropic, _anthropic, _anthropic_events),
    "/v1/chat/completions": API(_look_chat, _chat, _chat_events),
    "/v1/responses": API(_look_responses, _responses, _responses_events),
}
