"""Case 40: two places hold the taint, and after some change they differ.

A gate that asks one place while another place was written lets through what the other knew. Here every way to read the
labels is the same fold of the same entries, after each step of a long story and from a second guard; a second journal
is refused. The honest twin: two conversations of one journal do not mix.
"""

from __future__ import annotations

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal, ToolResult
from interlock.errors import WrongJournal
from interlock.model.state import State, apply
from tests.cases.desk import EVIL, MANIFEST, did, entries, got


def every_reading(guard: Guard, other: Guard, journal: MemoryJournal) -> list[State]:
    folded = State()
    for entry in entries(guard, journal):
        folded = apply(folded, entry)
    return [guard.conversation.state, other.conversation.state, journal.state(guard.conversation.id), folded]


def test_attack_all_readings_agree_after_every_step() -> None:
    journal = MemoryJournal()
    lock = Interlock(manifest=MANIFEST, journal=journal)
    conversation = Conversation.user("Write to kim@corp.example please.")
    guard, other = lock.guard(conversation), Interlock(manifest=MANIFEST, journal=journal).guard(conversation)
    waiting = guard.propose(Call("read_page", {"page": "Clients"}, "slow"))
    steps = [
        lambda: did(guard, "page_text", {"page": "guide"}),
        lambda: did(other, "read_file", {"path": "plan.txt"}, OSError("x")),
        lambda: did(guard, "send_email", EVIL),
        lambda: other.admit("memory", labels=["untrusted:memory"], source="notes"),
        lambda: conversation.say("copied", pasted=True),
        lambda: guard.observe(waiting, "slow", ToolResult("late")),
        lambda: did(other, "expose_port", {"port": 1}),
        lambda: did(guard, "nobody", {}),
    ]
    for step in steps:
        step()
        first, *rest = every_reading(guard, other, journal)
        assert all(one == first for one in rest)
        assert conversation.taint == first.taint
        assert conversation.exposure == first.exposure
    assert got(did(other, "send_email", EVIL))[0] == "deny"


def test_attack_a_second_journal_would_know_half() -> None:
    conversation = Conversation.new()
    did(Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation), "page_text", {"page": "x"})
    with pytest.raises(WrongJournal):
        Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation)


def test_honest_conversations_of_one_journal_are_apart() -> None:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    one, other = lock.guard(Conversation.new()), lock.guard(Conversation.new())
    did(one, "read_mail", {"query": "today"})
    assert not other.conversation.taint
    assert did(other, "send_email", EVIL).executed
