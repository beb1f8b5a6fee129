"""T2: what a child had brought was not told to its parent, because something else might have brought it too.

A child tells its parent what nobody foresaw. It held that against the parent's exposure, in which calls and delegations
that are still under way count as well. When one of them then came back without the label, the parent had lost it: a
sibling with every tool was joined clean, and what this child had really read was unknown until its own join. Hosts that
name one conversation by the calls of another had the same hole.
"""

from __future__ import annotations

import pytest

from interlock import Call, Conversation, Guard, ToolResult
from interlock.gate.identity import Identities
from tests.regressions.stage import call, interlock, says

PAGE = Call("fetch", {"url": "http://guide.example/"}, "page")


def guarded(conversation: Conversation) -> Guard:
    return interlock().guard(conversation)


def test_t2_a_call_of_the_parent_that_brought_nothing() -> None:
    parent = guarded(Conversation.new())
    child = parent.conversation.child("task", tools=[])
    waiting = parent.propose(PAGE)
    call(guarded(child), "fetch", url="http://guide.example/")
    parent.observe(waiting, "page", ToolResult("no such host", external=False))
    assert "untrusted:web" in parent.conversation.exposure


def test_t2_a_sibling_that_brought_nothing() -> None:
    parent = guarded(Conversation.new())
    reader = parent.conversation.child("read", tools=[])
    sibling = parent.conversation.child("anything")
    call(guarded(reader), "fetch", url="http://guide.example/")
    parent.conversation.join(sibling)
    assert "untrusted:web" in parent.conversation.exposure
    call(parent, "read_file", path="plan.txt")
    refused = call(parent, "send_email", to="eve@evil.test")
    assert "trifecta" in says(refused.decision)


@pytest.mark.parametrize("landed", [False, True])
def test_t2_a_child_that_began_while_a_call_was_under_way(landed: bool) -> None:
    """The parent holds at least what its child began with, until the child is joined and after."""
    parent = guarded(Conversation.new())
    waiting = parent.propose(PAGE)
    child = parent.conversation.child("task", tools=[])
    if landed:
        parent.observe(waiting, "page", ToolResult("no such host", external=False))
    assert set(child.exposure) <= set(parent.conversation.exposure)
    parent.conversation.join(child)
    assert set(child.exposure) <= set(parent.conversation.exposure)


def test_t2_a_conversation_that_may_be_another_one() -> None:
    reader, busy = Conversation.new(), guarded(Conversation.new())
    call(guarded(reader), "fetch", url="http://guide.example/")
    known = Identities()
    known.note(reader, ["call_0"])
    known.note(busy.conversation, ["call_0"])
    waiting = busy.propose(PAGE)
    assert known.recognise(call_ids=["call_0"]) is busy.conversation
    busy.observe(waiting, "page", ToolResult("no such host", external=False))
    assert "untrusted:web" in busy.conversation.exposure
