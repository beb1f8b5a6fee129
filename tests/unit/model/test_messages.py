"""Proves that messages are values without labels, and that every result answers its own call (T17).

Mutation that this file catches: results that are given back in another order, or under another id.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Message, Outcome, ToolUse, Verdict
from interlock.model.decisions import Decision
from interlock.model.messages import Image, Role, Text, ToolAnswer

IMAGE = Image("image/png", b"\x89PNG")


def test_t17_one_result_per_outcome_in_order() -> None:
    outcomes = [
        Outcome("x", f"id-{n}", Decision(Verdict.ALLOW), for_model=f"text {n}", is_error=n % 2 == 1) for n in range(4)
    ]
    message = Message.results(*outcomes)
    assert message.role is Role.TOOL
    assert message.blocks == tuple(ToolAnswer(f"id-{n}", f"text {n}", n % 2 == 1) for n in range(4))
    assert message.text == "text 0\ntext 1\ntext 2\ntext 3"


def test_kinds_of_messages() -> None:
    use = ToolUse("id", "fetch", {"url": "u"}, "srv")
    assert Message.system("s").role is Role.SYSTEM
    assert Message.user("u", IMAGE).images == (IMAGE,)
    assert Message.assistant("", use).blocks == (use,)
    assert Message.assistant("t", use).uses == (use,)
    assert Message.assistant("t").blocks == (Text("t"),)
    assert Message.user("u").uses == ()
    with pytest.raises(AttributeError):
        Message.user("u").role = Role.SYSTEM  # type: ignore[misc]


def test_t2_an_image_arms_before_it_can_be_seen() -> None:
    conversation = Conversation.new()
    conversation.push(Message.user("look", IMAGE, IMAGE))
    assert conversation.taint.labels == {"private:image"}
    assert len(conversation) == 1
    assert not conversation.is_empty()
    assert Conversation.from_messages([Message.user("look", IMAGE)]).taint.labels == {"private:image"}
    assert bool(Conversation.new())
    assert Conversation.new().is_empty()
