"""What the encoders of provider APIs have in common: a transcript as two sides that take turns.

An API knows two sides, the model and its caller, and wants them to take turns: results of a round first and together,
then what the person says. A transcript of ours is freer. It has four roles, several messages of one role in a row,
results in one message or in many, the person's words folded in after them. Here it becomes sides, in an order that
every API takes, and its parts become values that every API takes. Nothing is decided, and no result is invented: a
transcript in which every call has one result (T17) gives a request in which every call has one.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, TypeAlias

from interlock.model.digests import content_digest
from interlock.model.messages import Block, Image, Message, Role, Text, ToolAnswer, ToolUse
from interlock.model.turns import NO_TEXT, arguments_of, sendable, text_of

Shown: TypeAlias = Text | Image

# The kinds of images that all of the APIs take.
_PICTURES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})


@dataclass(frozen=True, slots=True)
class Side:
    """What one side says before the other one does.

    Attributes:
        by_model: is it the model's? Then it has no answers; else it has no uses.
        answers: results of the model's last round, in order.
        shown: texts and images, in order; no text is blank, and the model's side has no images.
        uses: the calls that the model made.
    """

    by_model: bool
    answers: tuple[ToolAnswer, ...]
    shown: tuple[Shown, ...]
    uses: tuple[ToolUse, ...]

    @property
    def has_images(self) -> bool:
        return any(isinstance(one, Image) for one in self.shown)

    @property
    def text(self) -> str:
        """All texts, joined by line breaks. Empty when nothing was said."""
        return "\n".join(one.text for one in self.shown if isinstance(one, Text))


def sides(messages: Iterable[Message], *, longest_id: int) -> Iterator[Side]:
    """The sides of a transcript in turns, none of them empty. System messages are left out; see :func:`system_text`.

    A call is always the model's and a result always the caller's, whatever role their message has. Their ids become
    ids that an API takes, of at most ``longest_id`` characters, a result's that of the latest call with its id. No two
    calls of a transcript have the same id then, though some providers begin again in every round (T17).
    """
    parts = (part for message in messages if message.role is not Role.SYSTEM for part in _parts(message))
    times: Counter[str] = Counter()
    sent: dict[str, str] = {}
    for by_model, group in groupby(parts, key=lambda part: part[0]):
        answers: list[ToolAnswer] = []
        shown: list[Shown] = []
        uses: list[ToolUse] = []
        for _, block in group:
            if isinstance(block, ToolUse):
                sent[block.id] = sent_id(block.id, longest_id, times[block.id])
                times[block.id] += 1
                uses.append(replace(block, id=sent[block.id]))
            elif isinstance(block, ToolAnswer):
                answers.append(replace(block, id=sent.get(block.id) or sent_id(block.id, longest_id)))
            else:
                shown.append(block)
        yield Side(by_model, tuple(answers), tuple(shown), tuple(uses))


def _parts(message: Message) -> Iterator[tuple[bool, Block]]:
    by_model = message.role is Role.ASSISTANT
    said = False
    for block in message.blocks:
        if isinstance(block, ToolUse):
            yield True, block
        elif isinstance(block, ToolAnswer):
            yield False, block
        else:
            shown = _shown(block, by_model)
            if not shown:
                continue
            yield by_model, shown
        said = True
    if message.role is Role.USER and not said:
        # Left out, the turns before and after it would become one, and the first side could be the model's.
        yield False, Text(NO_TEXT)


def _shown(block: Shown, by_model: bool) -> Shown | None:
    if isinstance(block, Text):
        text = text_of(block.text)
        return Text(text) if text.strip() else None  # the APIs refuse blank texts
    if by_model or block.media_type not in _PICTURES or not block.payload:
        return Text(f"({text_of(block.media_type)}: not shown)")
    return block


def system_text(system: str, messages: Iterable[Message]) -> str:
    """The system prompt, and under it the texts of all system messages, in order, with empty lines in between."""
    said = (
        block.text
        for message in messages
        if message.role is Role.SYSTEM
        for block in message.blocks
        if isinstance(block, Text)
    )
    return "\n\n".join(text for one in (system, *said) if (text := text_of(one)).strip())


# --- values that every API takes --------------------------------------------------------------------------------------


def sent_id(call_id: str, longest: int, times: int = 0) -> str:
    """The id of a call as an API takes it: as it is, or else a digest, which is another one for each of ``times``.

    A transcript may come from another provider, whose ids are longer or have other characters.
    """
    if not times and re.fullmatch(rf"[A-Za-z0-9_-]{{1,{longest}}}", call_id):
        return call_id
    return "call_" + content_digest(f"{times} {call_id}").removeprefix("sha256:")[:32]


def sent_name(name: str) -> str:
    """The name of a tool as an API takes it: with ``_`` for what can't stand in it."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"


def sent_object(arguments: Any) -> dict[str, Any]:
    """Arguments as an object: what a model wrote, if that is one in any form, and else an empty one."""
    return sendable(arguments_of(arguments))


def sent_json(arguments: Any) -> str:
    """Arguments as the JSON text of an object. A text that is one stays what the model wrote."""
    if isinstance(arguments, str) and isinstance(arguments_of(arguments), Mapping):
        return arguments
    return json.dumps(sent_object(arguments), ensure_ascii=False)


def sent_result(answer: ToolAnswer) -> str:
    """The text of a result. The APIs refuse blank texts, and an error without any; a result may be empty."""
    text = text_of(answer.text)
    if text.strip():
        return text
    return NO_TEXT if answer.is_error else ""


def base64_of(image: Image) -> str:
    return base64.b64encode(image.payload).decode()


def data_url(image: Image) -> str:
    return f"data:{image.media_type};base64,{base64_of(image)}"
