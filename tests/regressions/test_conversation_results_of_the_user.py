"""T17: text was folded between the results of a round, when these stood in messages of the user.

One provider keeps results in the user's messages, and hosts that follow it push them so. Whether a round was still open
was read off messages of the tool role only. So what the person said went into the half of the results, and the other
half could not follow any more.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, Message, ToolUse
from interlock.errors import Refused
from interlock.model.messages import Role, ToolAnswer
from interlock.model.transcript import unpaired

ROUND = Message.assistant("", ToolUse("a", "calc", {}), ToolUse("b", "calc", {}))


def test_t17_nothing_is_said_between_results_in_any_role() -> None:
    for role in (Role.TOOL, Role.USER):
        conversation = Conversation.new()
        conversation.push(ROUND)
        conversation.push(Message(role, (ToolAnswer("a", "1"),)))
        with pytest.raises(Refused):
            conversation.say("stop")
        conversation.push(Message(role, (ToolAnswer("b", "2"),)))
        conversation.say("stop")
        assert not unpaired(conversation)
        assert not unpaired(conversation.fork())
