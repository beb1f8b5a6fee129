"""Calls in doubt were forgotten when the conversation that had made them was a child, or not the session's own.

Nobody knows whether a call that was cancelled has happened, so it goes along into a new start from trusted words. A
join took over the labels of a child and not its doubts, and beginning anew in the parent knew nothing of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Session
from tests.regressions.stage import interlock


def interrupted(conversation: Conversation) -> None:
    """Send something, and be stopped in the middle of it."""

    def send(**_: object) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interlock().guard(conversation).call("send_email", {"to": "kim@corp.example"}, run=send)
    assert len(conversation.state.doubts) == 1


def test_the_doubts_of_a_child_come_back_with_it() -> None:
    parent = Conversation.new()
    with parent.child("task") as child:
        interrupted(child)
    assert parent.state.doubts == child.state.doubts
    assert parent.restart_from_trusted().state.doubts == child.state.doubts


def test_the_doubts_of_a_recorded_run_come_with_it(tmp_path: Path) -> None:
    with Session.create(tmp_path / "s.jsonl", Conversation.new()) as session:
        other = Conversation.new()
        before = other.snapshot()
        interrupted(other)
        session.record_run(before, other)
        assert session.conversation.state.doubts == other.state.doubts
