"""Case 33: a caller says that its shortened history is clean, and is believed.

After a compaction the host hands in a smaller set of labels, an empty one, or tries to put one in place; or it gives a
clean conversation to the session that holds the record. There is no door for it: labels are only ever added, by
results, by admitted text and by outcomes that come twice or late. The honest twin adds labels by each of these doors
and finds them all.
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from interlock import Call, Conversation, Message, Session, Taint, ToolResult
from interlock.errors import Refused
from interlock.model.labels import Source
from tests.cases.desk import armed, did, shared

HELD = {"private:files", "untrusted:attachment"}


def test_attack_nothing_can_be_put_in_place_of_the_taint() -> None:
    guard = armed()
    conversation = guard.conversation
    for name in ("taint", "exposure", "state"):
        with pytest.raises(AttributeError):
            setattr(conversation, name, Taint())
        with pytest.raises(AttributeError):
            delattr(conversation, name)
    for thing in (conversation.state, conversation.taint):
        with pytest.raises((AttributeError, TypeError)):
            thing.taint = Taint()  # type: ignore[union-attr,misc]
    assert set(conversation.taint) == HELD


def test_attack_an_empty_set_that_is_joined_is_nothing() -> None:
    guard = armed()
    before = guard.conversation.taint
    assert before.join(Taint()) == before
    assert Taint().join(before) == before
    did(guard, "calc", {"expression": "1"}, ToolResult("1", external=False, labels=()))
    assert set(guard.conversation.taint) == HELD
    with pytest.raises(Refused):
        guard.admit("clean summary", labels=[], source="summary")
    assert set(guard.conversation.taint) == HELD


def test_attack_no_name_of_a_taint_takes_anything_away() -> None:
    held = Taint.of(sorted(HELD), Source("2026-11-29T12:00:00.000000Z", 1, "x"))
    for name in (
        "remove",
        "discard",
        "clear",
        "pop",
        "difference",
        "__sub__",
        "__isub__",
        "__delitem__",
        "__setitem__",
    ):
        assert not hasattr(held, name), name
    for name in ("clear", "reset", "forget", "untaint", "clean", "set_taint"):
        assert not hasattr(Conversation, name), name


def test_attack_a_copy_is_no_second_record() -> None:
    conversation = armed().conversation
    for made in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert set(conversation.exposure) <= set(made(conversation).taint)


def test_attack_an_outcome_that_comes_twice_takes_nothing_back() -> None:
    guard = shared().guard(Conversation.new())
    ticket = guard.propose(Call("page_text", {"page": "guide"}, "a"))
    guard.observe(ticket, "a", ToolResult("text"))
    guard.observe(ticket, "a", ToolResult("text", external=False))
    assert set(guard.conversation.taint) == {"untrusted:web"}


def test_attack_a_clean_conversation_in_place_of_the_stored_one(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with Session.create(path, armed().conversation) as session:
        shortened = Conversation.resumed([Message.user("Summary.")], Taint())
        session.record_run(shortened.snapshot(), shortened)
        assert set(session.conversation.taint) == HELD
    with Session.load(path) as session:
        assert set(session.conversation.taint) == HELD
        assert session.timeline.labels_of(0) != ()
        clean = Conversation.from_messages(session.conversation.messages)
        session.record_run(clean.snapshot(), clean)
        session.conversation.rewrite([])
        assert set(session.conversation.taint) == HELD
    with Session.load(path) as session:
        assert set(session.conversation.taint) == HELD


def test_attack_a_smaller_set_for_a_child_or_a_fork() -> None:
    conversation = armed().conversation
    for wrong in ({"taint": Taint()}, {"labels": ()}):
        with pytest.raises(TypeError):
            conversation.fork(**wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            conversation.child("task", **wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            conversation.rewrite([], **wrong)  # type: ignore[arg-type]
    clean = Conversation.new()
    with pytest.raises(Refused):
        conversation.join(clean)
    with pytest.raises(Refused):
        conversation.roll_back_failed_turn(clean.snapshot())
    assert set(conversation.taint) == HELD


def test_honest_every_door_adds() -> None:
    guard = shared().guard(Conversation.resumed([], ["private:notes"]))
    guard.admit("memory", labels=["untrusted:memory"], source="notes/7")
    guard.conversation.say("copied", pasted=True)
    did(guard, "calc", {"expression": "1"}, ToolResult("1", labels=["private:ledger"]))
    assert set(guard.conversation.taint) == {
        "private:notes",
        "untrusted:memory",
        "untrusted:paste",
        "private:ledger",
    }
    with guard.conversation.child("task") as child:
        shared().guard(child).admit("mail", labels=["private:mail"], source="mail")
    guard.conversation.receive(Message.user("a letter"), Conversation.resumed([], ["untrusted:chat"]))
    assert {"private:mail", "untrusted:chat"} <= set(guard.conversation.taint)
