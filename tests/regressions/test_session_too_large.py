"""A damaged session of many large records could never be loaded again.

What can still be read of a damaged file is written into one record of the new one. A record has a bound, and a file has
none: a session of 100 MB, damaged in one byte, raised `Refused` at every load. Its labels may not be lost, and whoever
has to work must be able to: what does not fit is left out, the evidence beside has it.
And a run that is too large for one record is refused without harm to anything else.
Mutations that this file catches: all salvaged messages written whatever their size; a session that is broken after a
record was refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Conversation, Message, Session
from interlock.errors import Refused
from interlock.model import records
from tests.faults.disks import abandon, every_leg, guarded


def test_t2_a_large_file_that_is_damaged_loads_every_leg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_LINE", 20_000)
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    for number in range(4):
        session.conversation.push(Message.assistant(f"{number}" * 9000))
        session.record_run(session.conversation.snapshot(), session.conversation)
    session.close()
    data = bytearray(session.path.read_bytes())
    data[-9] ^= 1
    session.path.write_bytes(bytes(data))
    after = Session.load(session.path)
    assert after.damage
    assert every_leg(after.conversation)
    assert session.path.with_name("s.damaged-1").read_bytes() == bytes(data)
    after.close()


def test_a_run_that_is_too_large_is_refused_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_LINE", 20_000)
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    session.conversation.push(Message.assistant("x" * 30_000))
    for _ in range(2):
        with pytest.raises(Refused, match="more than a session file takes"):
            session.record_run(session.conversation.snapshot(), session.conversation)
        guarded(session).admit("text", labels=["private:memory"], source="notes")
    with pytest.raises(Refused):
        session.close()
    after = Session.load(session.path)
    assert not after.damage
    assert "private:memory" in after.conversation.taint
    assert [one.text for one in after.conversation.messages] == ["hello"]
    abandon(after)
