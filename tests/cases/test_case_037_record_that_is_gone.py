"""Case 37: the record of a conversation is deleted between two turns, and the next turn begins clean.

The journal loses the conversation, can't be read, or answers something that is no state. Every call is then refused as
a failure, told apart from a refusal by rule, and no tool runs. A session file that is gone, cut, renamed, swapped for
an older copy or parted from its head loads with every leg and says why; where nothing is left there is no conversation
at all. The honest twin has its record and goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Interlock, MemoryJournal, Session
from interlock.errors import JournalUnavailable
from interlock.model.entries import Resumed
from interlock.model.labels import EVERY_LEG
from interlock.stores.head_file import head_of
from tests.cases.desk import EVIL, MANIFEST, did, got, shared

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


def stored(folder: Path) -> Path:
    """A session that has read a mail in its second turn; the file as it was before stands beside it."""
    path = folder / "s.jsonl"
    with Session.create(path, Conversation.user("hello")) as session:
        (folder / "older.jsonl").write_bytes(path.read_bytes())
        head_of(folder / "older.jsonl").write_bytes(head_of(path).read_bytes())
        did(shared().guard(session.conversation), "read_mail", {"query": "today"})
    return path


MISHAPS: dict[str, Callable[[Path], object]] = {
    "the file is gone": Path.unlink,
    "the file is empty": lambda path: path.write_bytes(b""),
    "the file is cut": lambda path: path.write_bytes(path.read_bytes()[:-300]),
    "the last line is gone": lambda path: path.write_bytes(b"\n".join(path.read_bytes().split(b"\n")[:-2]) + b"\n"),
    "the head is gone": lambda path: head_of(path).unlink(),
    "the head is cut": lambda path: head_of(path).write_bytes(head_of(path).read_bytes()[:40]),
    "an older file": lambda path: path.write_bytes(path.with_name("older.jsonl").read_bytes()),
    "the file of another": lambda path: (
        Session.create(path.with_name("x.jsonl"), Conversation.new()).close()
        or path.write_bytes(path.with_name("x.jsonl").read_bytes())
    ),
    "renamed without its head": lambda path: (
        path.rename(path.with_name("t.jsonl")).rename(path) and head_of(path).rename(path.with_name("elsewhere"))
    ),
}


@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_attack_a_session_file_without_its_record(tmp_path: Path, mishap: Callable[[Path], object]) -> None:
    path = stored(tmp_path)
    mishap(path)
    for _ in range(2):  # nor does it heal by being loaded
        with Session.load(path) as session:
            assert set(session.conversation.exposure) >= set(EVERY_LEG)
            guard = shared().guard(session.conversation)
            assert got(did(guard, "send_email", EVIL))[0] == "deny"
            assert got(did(guard, "read_file", {"path": "plan.txt"})) == ("deny", "open_channel")
    assert list(tmp_path.glob("*damaged*"))


def test_attack_the_entry_says_why(tmp_path: Path) -> None:
    path = stored(tmp_path)
    head_of(path).unlink()
    with Session.load(path) as session:
        assert "head" in session.damage
        source = session.conversation.taint.source("untrusted:unknown")
        assert source is not None
        assert source.tool == "opened" or Resumed.__name__.lower() in source.tool
    assert b"damaged" in path.read_bytes()


def test_attack_where_nothing_is_left_nothing_begins(tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.unlink()
    head_of(path).unlink()
    with pytest.raises(JournalUnavailable):
        Session.load(path)
    assert not path.exists()


def test_honest_a_session_with_its_record_goes_on(tmp_path: Path) -> None:
    path = stored(tmp_path)
    for _ in range(2):
        with Session.load(path) as session:
            assert set(session.conversation.taint) == {"private:mail", "untrusted:mail"}
            assert did(shared().guard(session.conversation), "calc", {"expression": "1"}).executed
            assert not session.damage


def test_honest_the_record_is_there() -> None:
    guard = Interlock(manifest=MANIFEST, journal=Forgetful()).guard(Conversation.new())
    assert did(guard, "read_mail", {"query": "today"}).executed
    assert did(guard, "calc", {"expression": "1"}).executed
    assert set(guard.conversation.taint) == {"private:mail", "untrusted:mail"}
