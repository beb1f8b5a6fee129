"""Messages of a snapshot that was made by hand were not written, without a word.

What covers each message of a snapshot may be left out. Written were only as many messages as had covers: none, while
the session showed them all. What nobody knows covers is written as unknown, and reads as every leg.
Mutation that this file catches: messages and covers zipped to the shorter of both.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Message, Session
from interlock.errors import InterlockError
from interlock.model.transcript import Snapshot


@pytest.mark.parametrize("covers", [(), ((),)])
def test_messages_without_covers_are_written_or_refused(tmp_path: Path, covers: tuple[tuple[()], ...]) -> None:
    other = Conversation.from_messages([Message.user("hi"), Message.assistant("hello")])
    session = Session.create(tmp_path / "s", Conversation.new())
    try:
        session.record_run(Snapshot(other.id, other.messages, covers), other)
    except InterlockError:
        session.close()
        return
    assert len(session.timeline) == 2
    session.close()
    after = Session.load(tmp_path / "s")
    assert [one.text for one in after.messages_ever()] == ["hi", "hello"]
    assert len(after.timeline) == 2
    after.close()
