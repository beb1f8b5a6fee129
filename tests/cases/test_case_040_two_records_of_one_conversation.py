"""Case 40: two places hold the taint, and after some change they differ.

A gate that asks one place while another place was written lets through what the other knew. Here every way to read the
labels is the same fold of the same entries, after each step of a long story and from a second guard, also after a
rewrite, a rollback and a fork, after the conversation moved into a session, and when that was loaded again; a second
journal is refused. The honest twin: two conversations of one journal do not mix.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal, Message, Session, ToolResult
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
    before = conversation.snapshot()
    steps = [
        lambda: did(guard, "page_text", {"page": "guide"}),
        lambda: did(other, "read_file", {"path": "plan.txt"}, OSError("x")),
        lambda: did(guard, "send_email", EVIL),
        lambda: other.admit("memory", labels=["untrusted:memory"], source="notes"),
        lambda: conversation.say("copied", pasted=True),
        lambda: conversation.rewrite([Message.user("Summary.")]),
        lambda: conversation.roll_back_failed_turn(before),
        conversation.fork,
        lambda: conversation.join(conversation.child("task")),
        conversation.restart_from_trusted,
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


def test_attack_all_readings_agree_in_a_session(tmp_path: Path) -> None:
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    guard = lock.guard(Conversation.user("Write to kim@corp.example please."))
    did(guard, "page_text", {"page": "guide"})
    waiting = guard.propose(Call("read_page", {"page": "Clients"}, "slow"))
    with Session.create(tmp_path / "s.jsonl", guard.conversation) as session:
        other = lock.guard(session.conversation)
        for step in (
            lambda: did(other, "read_file", {"path": "plan.txt"}),
            lambda: guard.observe(waiting, "slow", ToolResult("late")),
            lambda: session.conversation.rewrite([]),
        ):
            step()
            assert guard.conversation.state == other.conversation.state == session.conversation.state
        held = set(session.conversation.exposure)
        assert held == {"untrusted:web", "private:workspace", "private:files"}
        assert got(did(guard, "send_email", EVIL)) == got(did(other, "send_email", EVIL)) == ("deny", "trifecta")
    with Session.load(tmp_path / "s.jsonl") as session:
        assert set(session.conversation.taint) == set(session.conversation.exposure) == held
        assert got(did(lock.guard(session.conversation), "send_email", EVIL)) == ("deny", "trifecta")


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
