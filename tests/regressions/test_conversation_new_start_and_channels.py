"""A new start from trusted words missed a channel that was opened late, and held for ever one that was never opened.

Channels that stand open come along into it. A call that was under way in the old conversation opened one after the
start, and the new one did not learn of it. And all that a running child might have opened counted as open for ever, so
a person who began anew because a child hung could read nothing private any more.
"""

from __future__ import annotations

import pytest

from interlock import Call, Conversation, ToolResult
from interlock.model.tools import ToolId
from tests.regressions.stage import MANIFEST, call, interlock, says

OPENED = ToolResult("listening", labels=("egress:port", "private:credentials"))


def test_a_channel_that_is_opened_late_is_known_in_the_new_start() -> None:
    old = interlock().guard(Conversation.user("hello"))
    waiting = old.propose(Call("read_file", {"path": "plan.txt"}, "read"))
    new = old.conversation.restart_from_trusted()
    old.observe(waiting, "read", OPENED)
    assert set(new.taint) == {"egress:port"}  # and nothing else of it


def test_a_channel_that_a_child_opens_late_is_known_in_the_new_start() -> None:
    old = Conversation.user("hello")
    child = old.child("task", tools=[])
    new = old.restart_from_trusted()
    interlock().guard(child).admit("x", labels=["egress:port", "private:mail"], source="x")
    old.join(child)
    assert set(new.taint) == {"egress:port"}


@pytest.mark.parametrize("tools", [None, [MANIFEST.spec(ToolId("", "fetch"))]])
def test_the_honest_new_start_because_a_child_hangs(tools: object) -> None:
    old = Conversation.user("hello")
    old.child("task", tools=tools)  # type: ignore[arg-type]
    new = interlock().guard(old.restart_from_trusted())
    assert not new.conversation.taint
    call(new, "fetch", url="http://guide.example/")
    assert says(call(new, "read_file", path="plan.txt").decision) == "allow"
