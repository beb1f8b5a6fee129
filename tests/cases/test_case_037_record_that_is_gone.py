"""Case 37: the record of a conversation is deleted between two turns, and the next turn begins clean.

The journal loses the conversation, can't be read, or answers something that is no state. Every call is then refused as
a failure, told apart from a refusal by rule, and no tool runs. The honest twin has its record and goes on.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Conversation, Interlock, MemoryJournal
from interlock.errors import JournalUnavailable
from tests.cases.desk import EVIL, MANIFEST, did, got

LOST = {
    "gone": lambda _: JournalUnavailable("no such conversation"),
    "unreadable": lambda _: PermissionError(13, "denied"),
    "nothing": lambda _: None,
    "an empty record": lambda _: {},
    "text": lambda _: "clean",
}


class Forgetful(MemoryJournal):
    """A journal whose records can go."""

    lost: Any = None

    def state(self, conversation: str) -> Any:
        if self.lost is None:
            return super().state(conversation)
        found = self.lost(conversation)
        if isinstance(found, BaseException):
            raise found
        return found


@pytest.mark.parametrize("how", LOST)
def test_attack_what_is_gone_is_not_clean(how: str) -> None:
    journal = Forgetful()
    guard = Interlock(manifest=MANIFEST, journal=journal).guard(Conversation.new())
    did(guard, "read_mail", {"query": "today"})
    journal.lost = LOST[how]
    ran: list[str] = []
    for name, arguments in (("send_email", EVIL), ("read_file", {}), ("calc", {"expression": "1"})):
        outcome = guard.call(name, arguments, run=lambda **_: ran.append("ran"))
        assert got(outcome) == ("deny", "journal_error")
        assert not outcome.executed
    assert ran == []


def test_attack_a_record_taken_out_of_the_store() -> None:
    journal = MemoryJournal()
    guard = Interlock(manifest=MANIFEST, journal=journal).guard(Conversation.new())
    did(guard, "read_mail", {"query": "today"})
    journal._records.clear()
    assert got(did(guard, "send_email", EVIL)) == ("deny", "journal_error")
    with pytest.raises(JournalUnavailable):
        _ = guard.conversation.taint


def test_honest_the_record_is_there() -> None:
    guard = Interlock(manifest=MANIFEST, journal=Forgetful()).guard(Conversation.new())
    assert did(guard, "read_mail", {"query": "today"}).executed
    assert did(guard, "calc", {"expression": "1"}).executed
    assert set(guard.conversation.taint) == {"private:mail", "untrusted:mail"}
