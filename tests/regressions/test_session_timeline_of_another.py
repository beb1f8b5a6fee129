"""The timeline of a session became clean when a run of another conversation was recorded (T2).

A host that keeps its own list of messages makes a conversation of it, which is clean, and records its run. The session
took over what covered the other's messages: nothing, also for a page that had been read under `untrusted:web` here. And
what had been said in the session and was not yet written was in no list any more. Labels and messages of the other were
read in the wrong order, too: what a thread admitted and pushed in between was recorded without its label.
Mutations that this file catches: taking the other's covers as they are; following the other's messages before one's own
are written; reading the other's labels before its messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Message, Session
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted
from interlock.model.labels import Label
from interlock.model.state import State

AT = "2026-11-29T12:00:00.000000Z"
WEB = Label("untrusted:web")


def admit(conversation: Conversation, one: Label) -> None:
    conversation.record(Admitted(AT, "test", (one,), NO_DIGEST, 0))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    conversation = Conversation.user("read it")
    session = Session.create(tmp_path / "s", conversation)
    admit(conversation, WEB)
    conversation.push(Message.assistant("the page says"))
    session.record_run(conversation.snapshot(), conversation)
    return session


def test_t2_a_clean_copy_of_the_messages_cleans_no_timeline(session: Session) -> None:
    other = Conversation.from_messages(session.conversation.messages)
    before = other.snapshot()
    other.push(Message.user("again"))
    session.record_run(before, other)
    for _ in range(2):
        assert WEB in session.timeline.labels_of(1)
        assert WEB in session.timeline.labels_of(2), "this conversation held the label when the message entered it"
        session.record_run(before, other)
    session.close()
    after = Session.load(session.path)
    assert WEB in after.timeline.labels_of(1)
    assert WEB in after.timeline.labels_of(2)
    after.close()


def test_t2_labels_of_the_other_cover_what_it_brought(session: Session) -> None:
    other = Conversation(labels=["private:mail"])
    before = other.snapshot()
    other.push(Message.user("from elsewhere"))
    session.record_run(before, other)
    assert {"private:mail", WEB} <= set(session.timeline.labels_of(0))
    assert {"private:mail", WEB} <= set(session.conversation.taint)
    session.close()


def test_what_was_said_here_and_not_yet_written_is_kept(session: Session) -> None:
    session.conversation.say("mine")
    other = Conversation.from_messages([Message.user("theirs")])
    session.record_run(other.snapshot(), other)
    said = [one.text for one in session.messages_ever()]
    assert said == ["read it", "the page says", "mine", "theirs"]
    assert session.conversation.messages == other.messages
    session.close()
    after = Session.load(session.path)
    assert [one.text for one in after.messages_ever()] == said
    after.close()


class Hasty(Conversation):
    """Another thread admits and pushes right after somebody has read this conversation's labels for the first time."""

    done = False

    @property
    def state(self) -> State:
        found = super().state
        if not self.done:
            self.done = True
            admit(self, Label("untrusted:late"))
            self.push(Message.assistant("what a stranger wrote"))
        return found


def test_t2_the_labels_are_read_after_the_messages(session: Session) -> None:
    other = Hasty()
    session.record_run(other.snapshot(), other)
    assert other.done
    texts = [one.text for one in session.messages_ever()]
    assert "what a stranger wrote" not in texts or "untrusted:late" in session.conversation.taint
    session.close()
