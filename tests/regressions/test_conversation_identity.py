"""T2: forgetting a conversation could lose its labels, and never ended.

When there were too many conversations the oldest was taken out first, and its labels were given to the bucket after
that: if the bucket's journal failed in between they were nowhere. And an id that providers give to the first call of
every conversation kept the name of each one for ever, so that noting one more cost as much as all before.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Conversation, MemoryJournal
from interlock.errors import JournalUnavailable
from interlock.gate.identity import Identities


class Failing(MemoryJournal):
    """A journal that can be told to fail."""

    fails = False

    def append(self, *args: Any, **options: Any) -> Any:
        if self.fails:
            raise JournalUnavailable("full")
        return super().append(*args, **options)


def test_t2_what_the_bucket_could_not_take_is_not_forgotten() -> None:
    known, journal = Identities(conversations=1), Failing()
    known.bucket().bind(journal)
    known.note(Conversation(labels=["private:mail"]), ["a"])
    journal.fails = True
    with pytest.raises(JournalUnavailable):
        known.note(Conversation.new(), ["b"])
    journal.fails = False
    assert "private:mail" in known.recognise().exposure


def test_t2_an_id_that_was_forgotten_names_all_who_had_it() -> None:
    known = Identities(calls=1)
    first, second = Conversation(labels=["private:first"]), Conversation.new()
    known.note(first, ["call_0"])
    known.note(second, ["something else"])
    known.note(second, ["call_0"])
    assert "private:first" in known.recognise(call_ids=["call_0"]).exposure


def test_an_id_of_every_conversation_does_not_grow_for_ever() -> None:
    known = Identities(conversations=10)
    for _ in range(500):
        known.note(Conversation.new(), ["call_0"])
    assert max(map(len, known._owners.values())) <= 20
    last = Conversation.new()
    known.note(last, ["call_0"])
    assert known.recognise(call_ids=["call_0"]) is last
    # It may be one of those that were forgotten.
    assert {"untrusted:unknown", "private:unknown", "egress:unknown"} <= set(last.exposure)
