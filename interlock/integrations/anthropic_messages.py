"""Anthropic's Messages API: an assistant message into a turn, and outcomes into the next user message.

Content that Anthropic brings into the assistant message by itself (web search, code execution, MCP servers) is
*hosted*: it is in the model's context before we see it, so its labels are admitted before anything of the turn is
decided. A block of a type that nobody has heard of is hosted too, with labels that stand for everything.

Takes plain dicts and the SDK's objects alike, and imports no SDK.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from interlock.model.calls import Call
from interlock.model.messages import Image, Message
from interlock.model.results import Outcome
from interlock.model.sides import Side, base64_of, sent_name, sent_object, sent_result, sides, system_text
from interlock.model.turns import (
    ATTACHED,
    IMAGE,
    UNKNOWN,
    Answered,
    Attached,
    Event,
    Hosted,
    Labels,
    Proposal,
    Said,
    Turn,
    UnparsedText,
    answers,
    arguments_of,
    category,
    held,
    items,
    kind_of,
    mapping,
    sendable,
    text_of,
    unique_ids,
    urls_in,
    written,
)

MESSAGES: Final = "messages"  # the keyword of a request that takes the history
_SERVER: Final = "anthropic"

# How a message ends when nothing of it is missing. Whatever else may come, also tomorrow, is not complete.
_COMPLETE: Final = frozenset({"end_turn", "tool_use", "stop_sequence", "pause_turn"})

_WEB: Final = ("untrusted:web",)
_CODE: Final = ("private:code", "untrusted:code")
_NOTHING: Final[Labels] = ()

# Tools that Anthropic runs, by name; their results are blocks of type `<name>_tool_result`.
_TOOLS: Final[Mapping[str, Labels]] = {
    "web_search": _WEB,
    "web_fetch": _WEB,
    "code_execution": _CODE,
    "bash_code_execution": _CODE,
    "text_editor_code_execution": _CODE,
    # They find tools that the request itself defines, and say what the same conversation makes another model say.
    "tool_search": _NOTHING,
    "tool_search_tool_regex": _NOTHING,
    "tool_search_tool_bm25": _NOTHING,
    "advisor": _NOTHING,
}
# What the model itself writes, and marks that hold no content.
_OWN: Final = frozenset({"text", "thinking", "redacted_thinking", "compaction", "fallback"})
# Types of entries under `tools` that the caller runs.
_CALLERS: Final = ("custom", "bash", "text_editor", "computer", "memory", "browser_toolset")
# A part of a stream that could not be put together: known to `_turn`, and never sent back.
_LOST: Final = "interlock_lost"


def read(response: Any, *, taken: Collection[str] = ()) -> Turn:
    """The turn in a response of the API.

    Args:
        response: the whole message, never a part of a stream; see :class:`Assembly`.
        taken: ids that calls of earlier turns carry.
    """
    message = mapping(response)
    return _turn(message.get("content"), text_of(message.get("stop_reason")), taken)


def _turn(content: Any, stop: str, taken: Collection[str], *, recorded: bool = False) -> Turn:
    blocks = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [mapping(one) for one in items(content)]
    )
    complete = recorded or stop in _COMPLETE
    uses = [place for place, block in enumerate(blocks) if kind_of(block) == "tool_use"]
    ids = dict(zip(uses, unique_ids([blocks[place].get("id") for place in uses], taken), strict=True))
    history = [_sent(block, ids.get(place)) for place, block in enumerate(blocks) if _returns(block)]
    return Turn(
        text="\n".join(text for block in blocks if kind_of(block) == "text" and (text := text_of(block.get("text")))),
        proposals=tuple(_proposal(blocks[place], ids[place]) for place in uses) if complete else (),
        hosted=tuple(_hosted(blocks)),
        history=({"role": "assistant", "content": history},) if history and complete else (),
        complete=complete,
        paused=complete and stop == "pause_turn" and not uses,
        stop=stop,
    )


def _proposal(block: Mapping[str, Any], call_id: str) -> Proposal:
    family = block.get("toolset_name")
    name = block.get("name")
    if family and isinstance(name, str):
        # `/` stands in no name that the API takes, so no other tool has this one; and `run` is given this very name.
        name = f"{family}/{name}"
    arguments = block.get("input")
    call = Call(name if isinstance(name, str) else "", arguments, call_id)  # type: ignore[arg-type]  # unchecked yet
    return Proposal(call, "tool_use", block.get("id"), {"toolset_name": family} if family else {})


def _returns(block: Mapping[str, Any]) -> bool:
    """Does the block go back? The API refuses empty texts and blocks without a type, and a lost part is ours."""
    kind = kind_of(block)
    return kind not in ("", _LOST) and not (kind == "text" and not block.get("text"))


def _sent(block: dict[str, Any], call_id: str | None) -> dict[str, Any]:
    if call_id is None:
        return {key: item for key, item in block.items() if key != "parsed_output"}  # the SDK's own, not the API's
    return {
        **block,
        "id": call_id,
        "name": text_of(block.get("name")) or "unknown",
        "input": sendable(block.get("input")),
    }


# --- what the provider brought ----------------------------------------------------------------------------------------


def _hosted(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Hosted]:
    asked: dict[Any, Hosted] = {}
    for block in blocks:
        kind = kind_of(block)
        if kind == "server_tool_use":
            name = text_of(block.get("name"))
            asked[_key(block.get("id"))] = Hosted(
                _SERVER, name, _TOOLS.get(name, UNKNOWN), arguments=block.get("input")
            )
        elif kind == "mcp_tool_use":
            server, name = text_of(block.get("server_name")), text_of(block.get("name"))
            asked[_key(block.get("id"))] = Hosted(server, name, UNKNOWN, arguments=block.get("input"))
    for block in blocks:
        kind = kind_of(block)
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            continue
        if kind == "text":
            # A citation of a page shows where the text comes from, whether or not the search itself is shown.
            urls = urls_in(block.get("citations"))
            if urls:
                yield Hosted(_SERVER, "web_search", _WEB, written(block.get("citations")), urls=urls)
        elif kind == "mcp_tool_listing":
            server = text_of(block.get("mcp_server_name"))
            yield Hosted(server, "", (f"untrusted:server:{category(server)}",), written(block.get("tools")))
        elif kind.endswith("_tool_result"):
            yield _result(kind, block, asked.pop(_key(block.get("tool_use_id")), None))
        elif kind == "container_upload":
            yield Hosted(_SERVER, "code_execution", _CODE, written(block))
        elif kind not in _OWN:
            yield Hosted(_SERVER, "", UNKNOWN, written(block))
    yield from asked.values()  # those whose results are still to come: what they ask for is under way


def _key(value: Any) -> Any:
    return value if isinstance(value, str) else None


def _result(kind: str, block: Mapping[str, Any], asked: Hosted | None) -> Hosted:
    """The result of a hosted tool: what it was asked, if that is in the turn, and what its type alone says."""
    content = block.get("content")
    named = kind.removesuffix("_tool_result")
    labels = _TOOLS.get(named, UNKNOWN)
    if asked is None:
        server, name, arguments = _SERVER, named if named in _TOOLS else "", None
    elif named == "mcp" or named in _TOOLS:
        server, name, arguments = asked.server, asked.name, asked.arguments
        labels = tuple(sorted({*labels, *asked.labels}))
    else:
        server, name, arguments = _SERVER, "", asked.arguments  # a type that nobody has described keeps every label
    return Hosted(server, name, labels, written(content), arguments, urls_in(content))


def offered(request: Mapping[str, Any]) -> tuple[Hosted, ...]:
    """What a request lets in unseen by the gate: tools that run there at any time, and history that is held there."""
    found = held(_SERVER, request, "thread")
    for entry in map(mapping, items(request.get("tools"))):
        kind = kind_of(entry)
        if not kind or kind.startswith(_CALLERS):
            continue
        if kind == "mcp_toolset":
            found += _server_offered(text_of(entry.get("mcp_server_name")), None)
            continue
        name = next((one for one in sorted(_TOOLS, key=len, reverse=True) if kind.startswith(one)), "")
        found.append(Hosted(_SERVER, name, _TOOLS.get(name, UNKNOWN)))
    for server in map(mapping, items(request.get("mcp_servers"))):
        wanted = mapping(server.get("tool_configuration")).get("allowed_tools")
        found += _server_offered(text_of(server.get("name")), wanted)
    return tuple(one for one in found if one.labels)


def _server_offered(server: str, wanted: Any) -> Iterator[Hosted]:
    yield Hosted(server, "", (f"untrusted:server:{category(server)}",))  # descriptions of tools are text of the server
    names = [one for one in items(wanted) if isinstance(one, str)]
    for name in names or [""]:
        yield Hosted(server, name, UNKNOWN)


# --- back to the provider ---------------------------------------------------------------------------------------------


def results(turn: Turn, outcomes: Iterable[Outcome], *, also: str = "") -> list[dict[str, Any]]:
    """One user message that answers every call of the turn, in order; ``also`` is text after the results.

    Raises:
        Refused: the outcomes are not those of this turn.
    """
    content: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": one.proposal.call.id,
            "content": one.text,
            "is_error": one.is_error,
            **one.proposal.echo,
        }
        for one in answers(turn, outcomes)
    ]
    if also:
        content.append({"type": "text", "text": also})
    return [{"role": "user", "content": content}] if content else []


def user(text: str) -> dict[str, Any]:
    """What the person says, as a message."""
    return {"role": "user", "content": text}


# --- a whole transcript of ours ---------------------------------------------------------------------------------------

_LONGEST_ID: Final = 64


def encoded(messages: Iterable[Message], *, system: str = "") -> dict[str, Any]:
    """Our messages as the keywords ``messages`` and, unless there is nothing to say in it, ``system``.

    A side that says several things in a row is one message; results come first in it. System messages join ``system``.
    The API takes the request if every call in ``messages`` has exactly one result (T17) and the model's side is not
    the first; nothing about that is repaired. Blank texts are left out.
    """
    given = list(messages)
    found: dict[str, Any] = {"messages": [_side(one) for one in sides(given, longest_id=_LONGEST_ID)]}
    told = system_text(system, given)
    return {"system": told, **found} if told else found


def _side(side: Side) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": one.id,
            "content": sent_result(one),
            "is_error": one.is_error,
        }
        for one in side.answers
    ]
    for shown in side.shown:
        if isinstance(shown, Image):
            source = {"type": "base64", "media_type": shown.media_type, "data": base64_of(shown)}
            content.append({"type": "image", "source": source})
        else:
            content.append({"type": "text", "text": shown.text})
    for use in side.uses:
        call = {"id": use.id, "name": sent_name(use.name), "input": sent_object(use.arguments)}
        content.append({"type": "tool_use", **call})
    return {"role": "assistant" if side.by_model else "user", "content": content}


# --- recorded conversations -------------------------------------------------------------------------------------------


def recorded(messages: Iterable[Any]) -> Iterator[Event]:
    """What happened in a recorded conversation, in order. Nothing about it is repaired but ids that repeat.

    Assistant messages that follow each other are one turn, as they are to the API.
    """
    taken: set[str] = set()
    waiting: list[Any] = []
    for message in map(mapping, messages):
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            waiting += [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
            continue
        yield from _flushed(waiting, taken)
        if role == "user":
            yield from _from_user(content)
        elif role not in ("system", "developer"):
            yield Attached(UNKNOWN, "a message in an unknown role", written(content))
    yield from _flushed(waiting, taken)


def _flushed(waiting: list[Any], taken: set[str]) -> Iterator[Turn]:
    if waiting:
        turn = _turn(waiting, "", taken, recorded=True)
        taken.update(call.id for call in turn.calls)
        waiting.clear()
        yield turn


def _from_user(content: Any) -> Iterator[Event]:
    if isinstance(content, str):
        yield Said(content)
    for block in map(mapping, items(content)):
        kind = kind_of(block)
        if kind == "tool_result":
            inner = block.get("content")
            yield Answered(block.get("tool_use_id"), _joined(inner), block.get("is_error") is True)
        elif kind == "text":
            yield Said(text_of(block.get("text")))
        elif kind == "image":
            yield Attached(IMAGE, "image", written(block.get("source")))
        elif kind in ("document", "container_upload"):
            yield Attached(ATTACHED, text_of(block.get("title")) or "document", written(block.get("source")))
        else:
            yield Attached(UNKNOWN, "an attachment of an unknown type", written(block))


def _joined(content: Any) -> str:
    """A result that is nothing but text blocks is their text; any other is its JSON."""
    blocks = [mapping(one) for one in items(content)]
    if blocks and all(kind_of(block) == "text" for block in blocks):
        return "\n".join(text_of(block.get("text")) for block in blocks)
    return written(content)


def resembles(message: Any) -> bool:
    """Does a recorded message have something that only this shape has?"""
    fields = mapping(message)
    if fields.get("type") == "message" and "stop_reason" in fields:
        return True
    own = ("tool_use", "tool_result", "server_tool_use", "thinking", "mcp_tool_use")
    return "role" in fields and any(kind_of(mapping(one)) in own for one in items(fields.get("content")))


# --- streams ----------------------------------------------------------------------------------------------------------

_INERT: Final = frozenset(
    {"ping", "text", "thinking", "signature", "input_json", "citation"}
)  # the last: the SDK's own


class Assembly:
    """Puts the events of a stream together. Nothing is decided before :meth:`response` is complete.

    Takes the raw events and those that the SDK derives. A stream that was cut off gives a response that is not
    complete, so its turn proposes nothing; a part that can't be put together makes its call malformed, or, outside of
    a call, content that nobody knows.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, str] = {}
        self._open: set[int] = set()
        self._lost = False
        self._ended = False

    def add(self, event: Any) -> None:
        """Take one event, in the order of the stream."""
        fields = mapping(event)
        kind = kind_of(fields)
        if kind == "message_start":
            self._message = mapping(fields.get("message"))
            self._message["stop_reason"] = None  # it is not said before the end
        elif kind == "message_delta":
            self._message.update(mapping(fields.get("delta")))
        elif kind == "message_stop":
            self._ended = True
        elif kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            self._block(kind, fields.get("index"), fields)
        elif kind not in _INERT:
            self._lost = True

    def _block(self, kind: str, index: Any, fields: Mapping[str, Any]) -> None:
        if not isinstance(index, int) or isinstance(index, bool):
            self._lost = True
        elif kind == "content_block_start":
            self._lost |= index in self._blocks
            self._blocks[index] = mapping(fields.get("content_block"))
            self._json.pop(index, None)
            self._open.add(index)
        elif index not in self._open:
            self._lost = True
        elif kind == "content_block_stop":
            self._open.discard(index)
        else:
            self._delta(index, mapping(fields.get("delta")))

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        match kind_of(delta):
            case "text_delta":
                block["text"] = text_of(block.get("text")) + text_of(delta.get("text"))
            case "input_json_delta":
                self._json[index] = self._json.get(index, "") + text_of(delta.get("partial_json"))
            case "thinking_delta":
                block["thinking"] = text_of(block.get("thinking")) + text_of(delta.get("thinking"))
            case "signature_delta":
                block["signature"] = delta.get("signature")
            case "citations_delta":
                block["citations"] = [*items(block.get("citations")), delta.get("citation")]
            case "compaction_delta":
                block.update({key: item for key, item in delta.items() if key != "type"})
            case _:
                self._lost = True
                block["input"] = UnparsedText("", "a part of the stream is of an unknown type")

    def response(self) -> dict[str, Any]:
        """The message so far; complete only when the stream has said so itself."""
        content = [self._whole(index) for index in sorted(self._blocks)]
        if self._lost:
            content.append({"type": _LOST})
        whole = {**self._message, "content": content}
        if not self._ended or self._open:
            whole["stop_reason"] = None
        return whole

    def _whole(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        text = self._json.get(index, "")
        if not text or isinstance(block.get("input"), UnparsedText):
            return block  # a call without arguments streams none; its `input` came with the start of the block
        block["input"] = arguments_of(text) if kind_of(block) == "tool_use" else _lenient(text)
        return block


def _lenient(text: str) -> Any:
    """What a hosted tool was asked: it has run already, so this is only to be shown and sent back."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {}
