"""The result that a load makes up for a call without one was covered by less than stood when it entered.

A crash leaves a call without its result; loading joins the call's labels and puts a result there that says so. That
result took over what covered the message before it: nothing, although `untrusted:web` had joined by then.
Mutation that this file catches: the cover of the message before.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Call, Conversation, Message, Session
from interlock.model.messages import ToolUse
from tests.faults.disks import abandon, guarded


def test_t2_a_made_up_result_is_covered_by_what_stands_when_it_is_made_up(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("go"))
    conversation = session.conversation
    conversation.push(Message.assistant("", ToolUse("a", "fetch", {"url": "http://a.example/"})))
    session.record_run(conversation.snapshot(), conversation)
    guarded(session).propose(Call("fetch", {"url": "http://a.example/"}, "a"))
    abandon(session)
    after = Session.load(tmp_path / "s")
    assert "untrusted:web" in after.conversation.taint
    assert "untrusted:web" in after.timeline.labels_of(len(after.timeline) - 1)
    after.close()
    again = Session.load(tmp_path / "s")
    assert "untrusted:web" in again.timeline.labels_of(2)
    again.close()
