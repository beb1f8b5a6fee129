"""T2: a fork of a fork was not told of a late result when nobody held the fork in between any more.

Hosts that copy their whole state at each step keep the newest copy only. The one in between was remembered weakly by
its source, so it was gone, and with it the way to the one that was still in use.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable

import pytest

from interlock import Call, Conversation, ToolResult
from tests.regressions.stage import interlock


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("copied", [Conversation.fork, copy.deepcopy])
def test_t2_the_newest_copy_is_told(copied: Callable[[Conversation], Conversation], steps: int) -> None:
    guard = interlock().guard(Conversation.new())
    waiting = guard.propose(Call("read_file", {"path": "plan.txt"}, "read"))
    newest = guard.conversation
    for _ in range(steps):
        newest = copied(newest)
    gc.collect()
    guard.observe(waiting, "read", ToolResult("password", labels=("private:credentials",)))
    assert "private:credentials" in newest.taint


def test_t2_the_newest_copy_is_told_of_late_work_of_a_child() -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=[])
    newest = parent.fork().fork()
    gc.collect()
    interlock().guard(child).admit("mail", labels=["private:mail"], source="mail")
    parent.join(child)
    assert "private:mail" in newest.taint


def test_copies_that_are_not_used_any_more_are_let_go() -> None:
    """Remembering them must not keep them for ever."""
    guard = interlock().guard(Conversation.new())
    for _ in range(50):
        waiting = guard.propose(Call("read_file", {"path": "plan.txt"}, "read"))
        copy.deepcopy(copy.deepcopy(guard.conversation))
        guard.observe(waiting, "read", ToolResult("x"))
    gc.collect()
    assert len(guard.conversation._heirs) <= 1
