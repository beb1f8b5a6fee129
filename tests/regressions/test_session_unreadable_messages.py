"""A session wrote what it could not read again: the next load called it damage, and everything typed was lost.

A call with a number for its id, a result that is an error or `None`, arguments of 950 levels (which a deeper stack
can't read): all of it was acknowledged, and loaded as damage. Blocks in a list, or an integer of 5,000 digits, raised
foreign exceptions out of the middle of a write. Now a message is refused when it is pushed, and arguments that no
provider writes are kept as text.
Mutations that this file catches: `push` or `rewrite` without the check; arguments written as deep as they are; an
object's own text asked for without a net.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Message, Session
from interlock.errors import Refused
from interlock.model.messages import Image, Role, Text, ToolAnswer, ToolUse

WRONG: dict[str, Any] = {
    "id": Message(Role.ASSISTANT, (ToolUse(1, "t", {}),)),  # type: ignore[arg-type]
    "name": Message(Role.ASSISTANT, (ToolUse("1", None, {}),)),  # type: ignore[arg-type]
    "server": Message(Role.ASSISTANT, (ToolUse("1", "t", {}, None),)),  # type: ignore[arg-type]
    "is_error": Message(Role.TOOL, (ToolAnswer("a", "b", None),)),  # type: ignore[arg-type]
    "answer": Message(Role.TOOL, (ToolAnswer("a", b"b"),)),  # type: ignore[arg-type]
    "role": Message("user", (Text("x"),)),  # type: ignore[arg-type]
    "text": Message(Role.USER, (Text(None),)),  # type: ignore[arg-type]
    "payload": Message(Role.USER, (Image("image/png", "pixels"),)),  # type: ignore[arg-type]
    "changing payload": Message(Role.USER, (Image("image/png", bytearray(b"")),)),  # type: ignore[arg-type]
    "blocks": Message(Role.USER, [Text("x")]),  # type: ignore[arg-type]
    "block": Message(Role.USER, ("x",)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_a_message_with_wrong_parts_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with Session.create(tmp_path / "s", Conversation.user("mail bob@corp.example")) as session:
        held = session.path.read_bytes()
        for way in (session.conversation.push, lambda one: session.conversation.rewrite([one])):
            with pytest.raises(Refused):
                way(WRONG[name])
        assert session.path.read_bytes() == held
    with Session.load(tmp_path / "s") as after:
        assert not after.damage
        assert after.conversation.state.typed


def deep(levels: int) -> Any:
    return reduce(lambda inner, _: [inner], range(levels), 0)


class Stubborn:
    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


ROUND: list[Any] = []
ROUND.append(ROUND)
ARGUMENTS: dict[str, Callable[[], Any]] = {
    "64 levels": lambda: deep(64),
    "950 levels": lambda: deep(950),
    "10,000 levels": lambda: deep(10_000),
    "5,000 digits": lambda: {"n": 10**5000},
    "round": lambda: ROUND,
    "an object": lambda: {"o": object()},
    "an object that fights back": lambda: {"o": Stubborn()},
    "NaN": lambda: {"x": math.nan, "y": -math.inf},
    "keys of two kinds": lambda: {1: "a", "1": "b", None: "c"},
    "lone surrogate and NUL": lambda: {"\ud800": "\0\udfff"},
    "bytes": lambda: b"\xff",
    "a tuple": lambda: (1, 2),
}


def deeper(levels: int, work: Callable[[], Any]) -> Any:
    return work() if not levels else deeper(levels - 1, work)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_any_arguments_are_kept_and_read_from_any_stack(tmp_path: Path, name: str) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("mail bob@corp.example"))
    conversation = session.conversation
    conversation.push(Message.assistant("", ToolUse("a", "t", ARGUMENTS[name]())))
    conversation.push(Message(Role.TOOL, (ToolAnswer("a", "done"),)))
    session.record_run(conversation.snapshot(), conversation)
    conversation.rewrite(conversation.messages[1:])
    assert len(session.messages_ever()) == 3
    session.close()
    after = deeper(300, lambda: Session.load(tmp_path / "s"))
    assert not after.damage
    assert after.conversation.state.typed
    assert [one.role.value for one in after.conversation.messages] == ["assistant", "tool"]
    after.record_run(after.conversation.snapshot(), after.conversation)
    after.close()
    again = Session.load(tmp_path / "s")
    assert not again.damage
    assert len(again.messages_ever()) == 3
    again.close()
