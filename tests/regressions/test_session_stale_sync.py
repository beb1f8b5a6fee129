"""A rewrite that had returned was taken back in the file by a run that was recorded at the same time.

The list to record was read before the file's turn was waited for. A rewrite in between is in the file when it returns;
then the older list was written after it, as if the conversation had gone back. A crash later, what compaction had
dropped stood before the model again.
Mutation that this file catches: the list read before the lock is held.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Message, Session
from interlock.stores.session_file import SessionFile
from tests.faults.disks import abandon


@pytest.mark.parametrize("how", ["record_run", "close"])
def test_a_rewrite_that_returned_stays_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("long"))
    conversation = session.conversation
    conversation.push(Message.assistant("and longer"))
    real = SessionFile.sync

    def late(self: SessionFile, *given: Any, **known: Any) -> Any:
        """Another thread rewrites between the call and the file's turn."""
        monkeypatch.setattr(SessionFile, "sync", real)
        conversation.rewrite([Message.user("short")])
        return real(self, *given, **known)

    monkeypatch.setattr(SessionFile, "sync", late)
    if how == "close":
        session.close()
    else:
        session.record_run(conversation.snapshot(), conversation)
        abandon(session)
    after = Session.load(tmp_path / "s")
    assert [one.text for one in after.conversation.messages] == ["short"]
    after.close()
