"""A run that only made a prompt longer could not be recorded: `IndexError`.

Whether a change of the list is a rewrite or the person's text folded into the last message was answered by looking at
the list in the file, for every change of several. With an empty file there was no last message; with another list
there, a rewrite could pass as a fold, without an entry that says so.
Mutation that this file catches: `_folds` looking at the list in the file.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Conversation, Message, Session
from interlock.model.entries import Entry, Rewritten
from interlock.model.records import read_line
from interlock.stores.session_file import HEADER


def entries(path: Path) -> list[Entry]:
    lines = path.read_bytes().removeprefix(HEADER).splitlines()
    return [entry for place, line in enumerate(lines, 1) for entry in read_line(line, place)[1].entries]


def test_a_prompt_that_grew_during_the_run_is_recorded(tmp_path: Path) -> None:
    other = Conversation.user("hi")
    before = other.snapshot()
    other.say("more")
    with Session.create(tmp_path / "s", Conversation.new()) as session:
        session.record_run(before, other)
        assert [one.text for one in session.messages_ever()] == ["hi\nmore"]
        assert not any(isinstance(one, Rewritten) for one in entries(tmp_path / "s"))


def test_a_rewrite_among_several_changes_is_an_entry(tmp_path: Path) -> None:
    other = Conversation.from_messages([Message.user("a"), Message.assistant("b")])
    before = other.snapshot()
    other.rewrite([Message.user("summary")])
    with Session.create(tmp_path / "s", Conversation.new()) as session:
        session.record_run(before, other)
        assert [one.text for one in session.messages_ever()] == ["a", "b", "summary"]
        rewrites = [one for one in entries(tmp_path / "s") if isinstance(one, Rewritten)]
        assert [(one.before, one.after) for one in rewrites] == [(2, 1)]
