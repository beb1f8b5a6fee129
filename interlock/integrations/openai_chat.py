"""OpenAI's Chat Completions, and what speaks like it: an assistant message into a turn, outcomes into tool messages.

Arguments are JSON *text* here, written by a model: they are parsed strictly, and what is not JSON is a malformed call
that the gate refuses, never an exception and never repaired. Takes plain dicts and the SDK's objects alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from interlock.model.calls import Call
from interlock.model.messages import Image, Message
from interlock.model.results import Outcome
from interlock.model.sides import Shown, Side, data_url, sent_json, sent_name, sent_result, sides, system_text
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
    items,
    kind_of,
    mapping,
    sendable_text,
    text_of,
    unique_ids,
    urls_in,
    written,
)

MESSAGES: Final = "messages"  # the keyword of a request that takes the history
_SERVER: Final = "openai"
_WEB: Final[Labels] = ("untrusted:web",)

# How a completion ends when nothing of it is missing. Whatever else may come, also tomorrow, is not complete.
_COMPLETE: Final = frozenset({"stop", "tool_calls", "function_call"})
# What a model writes by itself; the last ones are other vendors' names for its reasoning.
_OWN: Final = frozenset(
    "role content refusal name audio tool_calls function_call"
    " reasoning reasoning_content reasoning_details thinking_blocks".split()
)
# What the web search of the API leaves behind, in OpenAI's words and in others'.
_PAGES: Final = frozenset({"annotations", "citations", "search_results"})
_PARTS: Final = frozenset({"text", "refusal", "output_text", "thinking", "reasoning"})
# A part of a stream that could not be put together: a field that `_hosted` does not know.
_LOST: Final = "interlock_lost"
# Fields of a message that do not go back as they came, or not at all.
_STAYS: Final = frozenset({*_PAGES, "audio", "tool_calls", "function_call", "parsed", _LOST})


def read(response: Any, *, taken: Collection[str] = ()) -> Turn:
    """The turn in a response of the API: its first choice.

    Args:
        response: the whole completion, never a chunk of a stream; see :class:`Assembly`.
        taken: ids that calls of earlier turns carry.
    """
    whole = mapping(response)
    choice = mapping(next(iter(items(whole.get("choices"))), None))
    beside = {name: item for name, item in whole.items() if name in _PAGES}
    return _turn(mapping(choice.get("message")), text_of(choice.get("finish_reason")), taken, beside=beside)


def _turn(
    message: Mapping[str, Any],
    stop: str,
    taken: Collection[str],
    *,
    recorded: bool = False,
    beside: Mapping[str, Any] | None = None,
) -> Turn:
    complete = recorded or stop in _COMPLETE
    calls = [mapping(one) for one in items(message.get("tool_calls"))]
    ids = unique_ids([one.get("id") for one in calls], taken)
    proposals = [_proposal(one, call_id) for one, call_id in zip(calls, ids, strict=True)]
    legacy = mapping(message.get("function_call"))
    if legacy and not calls:
        # The call of the first API has no id. Its result names the function instead.
        (call_id,) = unique_ids([""], taken)
        call = Call(_name(legacy), arguments_of(legacy.get("arguments")), call_id)
        proposals.append(Proposal(call, "function", "", {"name": _name(legacy)}))
    history = {name: item for name, item in message.items() if item is not None and name not in _STAYS}
    history |= {"role": "assistant", "content": message.get("content")}
    if calls:
        history["tool_calls"] = [_sent(one, call_id) for one, call_id in zip(calls, ids, strict=True)]
    elif legacy:
        history["function_call"] = {
            "name": _name(legacy) or "unknown",
            "arguments": sendable_text(legacy.get("arguments")),
        }
    audio = mapping(message.get("audio"))
    if audio.get("id"):
        history["audio"] = {"id": audio["id"]}  # the sound itself does not go back
    empty = not calls and not legacy and not audio and not message.get("content") and not message.get("refusal")
    return Turn(
        text=_text(message.get("content")),
        proposals=tuple(proposals) if complete else (),
        hosted=tuple(_hosted({**message, **(beside or {})})),
        history=(history,) if complete and not empty else (),
        complete=complete,
        stop=stop,
    )


def _name(fields: Mapping[str, Any]) -> str:
    name = fields.get("name")
    return name if isinstance(name, str) else ""


def _proposal(fields: Mapping[str, Any], call_id: str) -> Proposal:
    if fields.get("type") == "custom":
        custom = mapping(fields.get("custom"))
        call = Call(_name(custom), {"input": custom.get("input")}, call_id)
    else:
        function = mapping(fields.get("function"))
        call = Call(_name(function), arguments_of(function.get("arguments")), call_id)
    return Proposal(call, "tool", fields.get("id"))


def _sent(fields: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    if fields.get("type") == "custom":
        custom = mapping(fields.get("custom"))
        sent = {"name": _name(custom) or "unknown", "input": text_of(custom.get("input"))}
        return {**fields, "id": call_id, "type": "custom", "custom": sent}
    function = mapping(fields.get("function"))
    sent = {"name": _name(function) or "unknown", "arguments": sendable_text(function.get("arguments"))}
    kept = {name: item for name, item in fields.items() if name != "index"}  # of a stream
    return {**kept, "id": call_id, "type": "function", "function": sent}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return text_of(content)
    parts = [mapping(one) for one in items(content)]
    return "\n".join(
        text for one in parts if kind_of(one) in ("text", "output_text") and (text := text_of(one.get("text")))
    )


# --- what the provider brought ----------------------------------------------------------------------------------------


def _hosted(message: Mapping[str, Any]) -> Iterator[Hosted]:
    for name, value in message.items():
        if not value:
            continue
        if name in _PAGES:
            urls = urls_in(value) or tuple(one for one in items(value) if isinstance(one, str))
            yield Hosted(_SERVER, "web_search", _WEB, written(value), urls=urls)
        elif name == "content":
            for part in map(mapping, items(value)):
                if kind_of(part) not in _PARTS:
                    yield Hosted(_SERVER, "", UNKNOWN, written(part))
        elif name == "tool_calls" and not isinstance(value, list | tuple):
            yield Hosted(_SERVER, "", UNKNOWN, written(value))
        elif name not in _OWN and name != "parsed":
            # A field that nobody has described, such as a vendor's list of tools that it ran.
            yield Hosted(_SERVER, "", UNKNOWN, written(value))


def offered(request: Mapping[str, Any]) -> tuple[Hosted, ...]:
    """What a request lets in unseen by the gate: tools that run there at any time."""
    found = [Hosted(_SERVER, "web_search", _WEB)] if request.get("web_search_options") is not None else []
    for entry in map(mapping, items(request.get("tools"))):
        if kind_of(entry) not in ("function", "custom"):
            found.append(Hosted(_SERVER, "", UNKNOWN))  # other vendors run tools under other types
    return tuple(found)


# --- back to the provider ---------------------------------------------------------------------------------------------


def results(turn: Turn, outcomes: Iterable[Outcome], *, also: str = "") -> list[dict[str, Any]]:
    """One ``tool`` message per call, in order, directly after the turn; ``also`` is a user message after them.

    Raises:
        Refused: the outcomes are not those of this turn.
    """
    found = []
    for one in answers(turn, outcomes):
        if one.proposal.shape == "function":
            found.append({"role": "function", "name": one.proposal.call.name or "unknown", "content": one.text})
        else:
            found.append({"role": "tool", "tool_call_id": one.proposal.call.id, "content": one.text})
    return [*found, user(also)] if also else found


def user(text: str) -> dict[str, Any]:
    """What the person says, as a message."""
    return {"role": "user", "content": text}


# --- a whole transcript of ours ---------------------------------------------------------------------------------------

_LONGEST_ID: Final = 40


def encoded(messages: Iterable[Message], *, system: str = "") -> dict[str, Any]:
    """Our messages as the keyword ``messages``; ``system`` and our system messages are the first of them.

    Results are tool messages directly after their turn, and what the person said with them is a user message after
    those. The API takes the request if every call in ``messages`` has exactly one result (T17); nothing about that is
    repaired. Blank texts are left out.
    """
    given = list(messages)
    told = system_text(system, given)
    found: list[dict[str, Any]] = [{"role": "system", "content": told}] if told else []
    for side in sides(given, longest_id=_LONGEST_ID):
        found += _model_side(side) if side.by_model else _caller_side(side)
    return {"messages": found}


def _model_side(side: Side) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = {"role": "assistant", "content": side.text or None}
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": sent_name(use.name), "arguments": sent_json(use.arguments)},
        }
        for use in side.uses
    ]
    yield {**message, "tool_calls": calls} if calls else message


def _caller_side(side: Side) -> Iterator[dict[str, Any]]:
    for one in side.answers:
        yield {"role": "tool", "tool_call_id": one.id, "content": sent_result(one)}
    if side.has_images:
        yield {"role": "user", "content": [_part(one) for one in side.shown]}
    elif side.shown:
        yield user(side.text)


def _part(shown: Shown) -> dict[str, Any]:
    if isinstance(shown, Image):
        return {"type": "image_url", "image_url": {"url": data_url(shown)}}
    return {"type": "text", "text": shown.text}


# --- recorded conversations -------------------------------------------------------------------------------------------


def recorded(messages: Iterable[Any]) -> Iterator[Event]:
    """What happened in a recorded conversation, in order. Takes messages, and responses in the place of messages."""
    taken: set[str] = set()
    for message in map(mapping, messages):
        if "choices" in message:
            choice = mapping(next(iter(items(message.get("choices"))), None))
            message = {"role": "assistant", **mapping(choice.get("message"))}
        role, content = text_of(message.get("role")), message.get("content")
        if role == "assistant":
            turn = _turn(message, text_of(message.get("finish_reason")), taken, recorded=True)
            taken.update(call.id for call in turn.calls)
            yield turn
        elif role == "tool":
            yield Answered(message.get("tool_call_id"), _joined(content))
        elif role == "function":
            yield Answered("", _joined(content))
        elif role == "user":
            yield from _from_user(content)
        elif role not in ("system", "developer"):
            yield Attached(UNKNOWN, "a message in an unknown role", written(content))


def _from_user(content: Any) -> Iterator[Event]:
    if isinstance(content, str):
        yield Said(content)
    for part in map(mapping, items(content)):
        kind = kind_of(part)
        if kind == "text":
            yield Said(text_of(part.get("text")))
        elif kind == "image_url":
            yield Attached(IMAGE, "image", written(part.get("image_url")))
        elif kind in ("file", "input_audio"):
            yield Attached(ATTACHED, "document" if kind == "file" else "audio", written(part.get(kind)))
        else:
            yield Attached(UNKNOWN, "an attachment of an unknown type", written(part))


def _joined(content: Any) -> str:
    parts = [mapping(one) for one in items(content)]
    if parts and all(kind_of(part) == "text" for part in parts):
        return "\n".join(text_of(part.get("text")) for part in parts)
    return written(content)


def resembles(message: Any) -> bool:
    """Does a recorded message have something that only this shape has?"""
    fields = mapping(message)
    if "choices" in fields:
        return True
    return (fields.get("role") in ("tool", "function") and "tool_call_id" in fields) or bool(
        fields.get("role") == "assistant" and (fields.get("tool_calls") or fields.get("function_call"))
    )


# --- streams ----------------------------------------------------------------------------------------------------------


class Assembly:
    """Puts the chunks of a stream together. Nothing is decided before :meth:`response` is complete.

    A call is told apart by its ``index``, and where a server gives several calls one index, by its id. A stream that
    was cut off gives a response without a finish reason, so its turn proposes nothing.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._place: dict[int | None, int] = {}
        self._beside: dict[str, Any] = {}
        self._stop: Any = None

    def add(self, chunk: Any) -> None:
        """Take one chunk, in the order of the stream."""
        fields = mapping(chunk)
        for name in _PAGES & fields.keys():
            self._beside[name] = fields[name]
        for choice in map(mapping, items(fields.get("choices"))):
            if choice.get("index", 0) != 0:
                continue  # only the first choice is read
            self._delta(mapping(choice.get("delta")))
            self._stop = choice.get("finish_reason") or self._stop

    def _delta(self, delta: Mapping[str, Any]) -> None:
        for name, item in delta.items():
            if item is None or name == "role":
                continue
            if name == "tool_calls":
                for one in map(mapping, items(item)):
                    self._call(one)
            elif not _grow(self._message, name, item):
                self._message[_LOST] = True

    def _call(self, delta: Mapping[str, Any]) -> None:
        index, call_id = delta.get("index"), delta.get("id")
        index = index if isinstance(index, int) else None
        place = self._place.get(index)
        if place is None or (call_id and self._calls[place].get("id") not in (None, "", call_id)):
            place = self._place[index] = len(self._calls)
            self._calls.append({})
        call = self._calls[place]
        for name, item in delta.items():
            if name in ("function", "custom"):
                if not _grow(call, name, mapping(item)):
                    call[name]["arguments"] = call[name]["input"] = UnparsedText("", "its parts do not fit together")
            elif name != "index" and item:
                call[name] = item

    def response(self) -> dict[str, Any]:
        """The completion so far; complete only when the stream has said so itself."""
        message = {**self._message, **({"tool_calls": self._calls} if self._calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": self._stop}
        return {"choices": [choice], **self._beside}


def _grow(fields: dict[str, Any], name: str, item: Any) -> bool:
    """Add a part to a field: texts and lists grow, objects grow inside. False when the parts are of different kinds."""
    known = fields.get(name)
    if item is None:
        return True
    if known is None:
        fields[name] = dict(item) if isinstance(item, dict) else item
    elif isinstance(known, str) and isinstance(item, str):
        fields[name] = known + item
    elif isinstance(known, list) and isinstance(item, list):
        fields[name] = [*known, *item]
    elif isinstance(known, dict) and isinstance(item, dict):
        fits = [_grow(known, inner, part) for inner, part in item.items()]  # every part, whatever one gives
        return all(fits)
    else:
        return bool(known == item)
    return True
