"""Our own messages as JSON, one per line: what a conversation of ours is recorded as and replayed from.

    {"interlock": 1, "role": "user", "text": "Summarise https://news.example"}
    {"interlock": 1, "role": "user", "text": "…", "pasted": true}
    {"interlock": 1, "role": "assistant", "text": "", "uses": [{"id": "a", "name": "fetch", "arguments": {"url": "…"}}]}
    {"interlock": 1, "role": "tool", "answers": [{"id": "a", "text": "…", "is_error": false}]}
    {"interlock": 1, "role": "admitted", "text": "…", "labels": ["untrusted:memory"], "source": "notes/7"}

Of all shapes it is the only one that can say what a replay needs to know: that a text was pasted, that a call never ran
(``executed``), that a result is not external (``external``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from interlock.model.calls import Call
from interlock.model.messages import Image, Message, Role, Text, ToolAnswer, ToolUse
from interlock.model.turns import (
    IMAGE,
    UNKNOWN,
    Answered,
    Attached,
    Event,
    Proposal,
    Said,
    Turn,
    items,
    mapping,
    text_of,
    unique_ids,
    written,
)


def recorded(messages: Iterable[Any]) -> Iterator[Event]:
    """What happened in a recorded conversation, in order."""
    taken: set[str] = set()
    for message in map(mapping, messages):
        match text_of(message.get("role")):
            case "assistant":
                uses = [mapping(one) for one in items(message.get("uses"))]
                ids = unique_ids([one.get("id") for one in uses], taken)
                taken.update(ids)
                proposals = tuple(_proposal(one, call_id) for one, call_id in zip(uses, ids, strict=True))
                yield Turn(text_of(message.get("text")), proposals)
            case "user":
                yield Said(text_of(message.get("text")), message.get("pasted") is True)
                for image in map(mapping, items(message.get("images"))):
                    yield Attached(IMAGE, "image", text_of(image.get("media_type")))
            case "tool":
                yield from map(_answer, map(mapping, items(message.get("answers"))))
            case "admitted":
                labels = tuple(one for one in items(message.get("labels")) if isinstance(one, str))
                yield Attached(labels or UNKNOWN, text_of(message.get("source")), text_of(message.get("text")))
            case "system":
                pass
            case _:
                yield Attached(UNKNOWN, "a message in an unknown role", written(message.get("text")))


def _proposal(use: Mapping[str, Any], call_id: str) -> Proposal:
    call = Call(text_of(use.get("name")), use.get("arguments", {}), call_id, text_of(use.get("server")))
    return Proposal(call, "use", use.get("id"))


def _answer(fields: Mapping[str, Any]) -> Answered:
    return Answered(
        fields.get("id"),
        written(fields.get("text")),
        is_error=fields.get("is_error") is True,
        executed=fields.get("executed") is not False,
        external=fields.get("external") is not False,
    )


def resembles(message: Any) -> bool:
    """Does a recorded message have something that only this shape has?"""
    return "interlock" in mapping(message)


def lines(messages: Iterable[Message]) -> Iterator[str]:
    """Messages of a conversation as lines of JSON, for ``interlock replay``.

    A message does not say whether a person typed it, whether a call ran, or what a host admitted; a host that knows
    adds that to the line.
    """
    for message in messages:
        yield json.dumps(_as_json(message))


def _as_json(message: Message) -> dict[str, Any]:
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    line: dict[str, Any] = {"interlock": 1, "role": message.role.value}
    if texts or message.role is not Role.TOOL:
        line["text"] = "\n".join(texts)
    uses = [block for block in message.blocks if isinstance(block, ToolUse)]
    if uses:
        line["uses"] = [_use(block) for block in uses]
    given = [block for block in message.blocks if isinstance(block, ToolAnswer)]
    if given:
        line["answers"] = [{"id": one.id, "text": one.text, "is_error": one.is_error} for one in given]
    images = [block for block in message.blocks if isinstance(block, Image)]
    if images:
        line["images"] = [{"media_type": one.media_type} for one in images]
    return line


def _use(block: ToolUse) -> dict[str, Any]:
    fields = {"id": block.id, "name": block.name, "arguments": block.arguments}
    return {**fields, "server": block.server} if block.server else fields
