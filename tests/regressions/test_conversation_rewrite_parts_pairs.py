"""T17: a rewrite could part a call from its result, when another call with the same id had none yet.

Pairs were compared by id, over the whole list. Some providers number the calls of every round from zero, and while a
round is under way its ids have no results. So under an open `call_0` any other `call_0` could be torn apart. The open
call itself could be moved away from the end, where its result can't follow it any more, or be doubled.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Message, ToolUse
from interlock.errors import Refused
from interlock.model.messages import Role, ToolAnswer
from interlock.model.transcript import unpaired

ASK = Message.user("again")
USE = Message.assistant("", ToolUse("call_0", "calc", {}))
RESULT = Message(Role.TOOL, (ToolAnswer("call_0", "2"),))
SAID = Message.assistant("two")
SUMMARY = Message.user("Summary: twice two.")

BEFORE = (ASK, USE, RESULT, SAID, ASK, USE)  # the second round is under way
PARTED = {
    "the first result dropped": (ASK, USE, SAID, ASK, USE),
    "the first call dropped": (ASK, RESULT, SAID, ASK, USE),
    "the open call in the middle": (ASK, USE, SUMMARY),
    "the open call first": (USE, ASK),
    "the open call twice": (ASK, USE, ASK, USE),
    "a closed call opened": (ASK, USE, RESULT, SAID, ASK, USE, USE),
}
WHOLE = {
    "the first round dropped": (SUMMARY, USE),
    "both kept": (SUMMARY, ASK, USE, RESULT, SAID, ASK, USE),
    "nothing left": (),
}


def running() -> Conversation:
    conversation = Conversation.new()
    for message in BEFORE:
        conversation.push(message)
    return conversation


@pytest.mark.parametrize("new", PARTED.values(), ids=PARTED)
def test_t17_no_rewrite_parts_what_has_the_same_id(new: tuple[Message, ...]) -> None:
    conversation = running()
    with pytest.raises(Refused):
        conversation.rewrite(new)
    assert conversation.messages == BEFORE


@pytest.mark.parametrize("new", WHOLE.values(), ids=WHOLE)
def test_t17_a_rewrite_that_keeps_pairs_is_taken_while_a_call_is_open(new: tuple[Message, ...]) -> None:
    conversation = running()
    conversation.rewrite(new)
    assert conversation.messages == new
    if new:
        conversation.push(RESULT)
        assert not unpaired(conversation.messages)
