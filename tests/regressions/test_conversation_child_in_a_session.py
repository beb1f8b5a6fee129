"""T2: a child that lived in a session learned labels that its parent was not told.

`record_run` of another conversation writes that one's labels into the session. They went into the file directly, past
the place where a child tells its parent and where forks are told.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Conversation, Session
from tests.regressions.stage import interlock


def test_t2_the_parent_learns_what_a_recorded_run_brings(tmp_path: Path) -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=[])
    with Session.create(tmp_path / "child.jsonl", child) as session:
        other = Conversation(labels=["private:mail"])
        before = other.snapshot()
        other.say("hello")
        session.record_run(before, other)
        assert "private:mail" in child.taint
        assert "private:mail" in parent.exposure


def test_t2_what_lands_while_a_run_is_recorded_is_recorded_with_it(tmp_path: Path) -> None:
    """Labels were read before the messages, so what landed in between was in the file without its labels."""

    class Landing(Conversation):
        """Reads a page at the moment in which its labels are looked at for the second time."""

        looks = 0

        @property
        def exposure(self):  # type: ignore[no-untyped-def]  # as in Conversation
            found = super().exposure
            self.looks += 1
            if self.looks == 2:
                interlock().guard(self).admit("a page", labels=["untrusted:web"], source="page")
                self.say("what the page says", pasted=True)
            return found

    with Session.create(tmp_path / "s.jsonl", Conversation.new()) as session:
        other = Landing()
        before = other.snapshot()
        other.say("hello")
        other.looks = 1
        session.record_run(before, other)
        if any("what the page says" in one.text for one in session.conversation.messages):
            assert "untrusted:web" in session.conversation.taint
