"""Messages of a transcript: text, tool use, tool result, image.

A message is what the model said and saw. It carries no labels: those live in the journal, where a host that edits,
shortens or reorders messages can't lose them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from interlock.errors import Refused
from interlock.model.canonical import MAX_DEPTH
from interlock.model.results import Outcome, type_name


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call as the model wrote it. ``arguments`` are the provider's, unchecked."""

    id: str
    name: str
    arguments: Any
    server: str = ""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result that answers one tool use."""

    id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """An image by media type and payload; pixels can hold text, and photographs can hold secrets."""

    media_type: str
    payload: bytes


Block: TypeAlias = Text | ToolUse | ToolAnswer | Image


@dataclass(frozen=True, slots=True)
class Message:
    """One message: a role and its blocks in order."""

    role: Role
    blocks: tuple[Block, ...]

    @staticmethod
    def system(text: str) -> Message:
        return Message(Role.SYSTEM, (Text(text),))

    @staticmethod
    def user(text: str, *images: Image) -> Message:
        """A message in the user role. The role alone grounds nothing: only typed text does."""
        return Message(Role.USER, (Text(text), *images))

    @staticmethod
    def assistant(text: str = "", *uses: ToolUse) -> Message:
        return Message(Role.ASSISTANT, ((Text(text),) if text else ()) + uses)

    @staticmethod
    def results(*outcomes: Outcome) -> Message:
        """The message that answers a round of calls, one result per outcome, in order (T17)."""
        return Message(Role.TOOL, tuple(ToolAnswer(one.call_id, one.for_model, one.is_error) for one in outcomes))

    def check(self) -> None:
        """Refuse a message whose parts have other types than they say: nothing that keeps or sends it could read it.

        Raises:
            Refused: naming the place.
        """
        if type(self.role) is not Role or type(self.blocks) is not tuple:
            raise Refused("a message has a Role and a tuple of blocks")
        for place, block in enumerate(self.blocks):
            wanted = _PARTS.get(type(block))
            if wanted is None:
                raise Refused(f"block {place} of a message is no Text, ToolUse, ToolAnswer or Image")
            for name, kind in wanted:
                if type(getattr(block, name)) is not kind:
                    raise Refused(f"block {place} of a message: {name} must be {kind.__name__}")

    @property
    def text(self) -> str:
        """All text of the message, joined by line breaks."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text | ToolAnswer))

    @property
    def uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Image))


def plain(value: Any) -> Any:
    """Arguments of a call as JSON that any reader can read: a fresh copy, or their text when they are none.

    No provider writes others. An object of a host, a circle or a thousand levels must not stop a record.
    """
    try:
        if _deeper(value, MAX_DEPTH):
            return _as_text(value)
        return json.loads(json.dumps(value, sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        return _as_text(value)


def _deeper(value: Any, levels: int) -> bool:
    level: list[Any] = [value]
    for _ in range(levels + 1):
        inner = [item for one in level for item in _items(one)]
        if not inner:
            return False
        level = list({id(one): one for one in inner}.values())  # each once: lists of the same lists double each level
    return True


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # an object that fights back, or a number with thousands of digits: its kind must do
        return f"({type_name(type(value)) or 'a value'} that can't be shown)"


_PARTS: Final[dict[type, tuple[tuple[str, type], ...]]] = {
    Text: (("text", str),),
    ToolUse: (("id", str), ("name", str), ("server", str)),
    ToolAnswer: (("id", str), ("text", str), ("is_error", bool)),
    Image: (("media_type", str), ("payload", bytes)),
}
