"""Proves T1 to T6, T8, T10, T11, T13, T16 and T17 of our own implementations by the checks that others run on theirs.

The same functions, called as `docs/property-suite.md` says. The number of examples is the profile's; 20,000 on demand
(`INTERLOCK_PROFILE=deep`). What each check can find is shown in `test_planted_faults.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, MemoryJournal, Session
from interlock.stores.memory import MemoryJournal as Memory
from interlock.testing import check_conversation, check_engine, check_integration, check_journal, check_session
from interlock.testing.toolbox import guards
from interlock.testing.traces import Report, chosen
from tests.machines.suite_faults import Honest, Mute
from tests.strategies import COVERING, SETTINGS, embedded, reference, settings_id

FOLDER = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
KEY = b"key"


def shown(report: Report) -> None:
    """A check that drew nothing, or did nothing, has shown nothing."""
    assert report.examples >= 5
    assert report.steps >= report.examples


def test_conversation() -> None:
    shown(check_conversation(Conversation.new))


def test_a_conversation_that_brings_labels() -> None:
    def brings() -> Conversation:
        return Conversation(labels=["untrusted:memory", "private:notes"])

    shown(check_conversation(brings, examples=chosen(None, 3)))


def test_a_conversation_in_a_session(tmp_path: Path) -> None:
    """The conversation of a session obeys the same laws, its journal being a file."""
    opened: list[Session] = []
    folder = FOLDER or tmp_path

    def in_a_session() -> Conversation:
        for session in opened:
            session.close()
        path = folder / f"interlock-suite-{id(opened)}" / f"{len(opened)}"
        opened[:] = []
        path.parent.mkdir(mode=0o700, exist_ok=True)
        for old in path.parent.iterdir():
            old.unlink()
        opened.append(Session.create(path, Conversation.new()))
        return opened[0].conversation

    try:
        shown(check_conversation(in_a_session, examples=chosen(None, 3)))
    finally:
        for session in opened:
            session.close()
        for old in (folder / f"interlock-suite-{id(opened)}").iterdir():
            old.unlink()
        (folder / f"interlock-suite-{id(opened)}").rmdir()


def test_session() -> None:
    shown(check_session(Session.create, Session.load, folder=FOLDER))


def test_a_session_with_a_key() -> None:
    shown(
        check_session(
            lambda path, conversation: Session.create(path, conversation, key=KEY),
            lambda path: Session.load(path, key=KEY),
            folder=FOLDER,
            examples=30,
        )
    )


def test_memory_journal() -> None:
    shown(check_journal(MemoryJournal))


def test_a_journal_with_a_key_that_is_copied_after_a_crash() -> None:
    def reopen(journal: Memory) -> Memory:
        other = Memory(key=KEY)
        for name, record in journal._records.items():
            other._records[name] = type(record)(record.state, list(record.entries))
        return other

    shown(check_journal(lambda: Memory(key=KEY), reopen=reopen, key=KEY, examples=30))


@pytest.mark.parametrize("index", COVERING, ids=[settings_id(SETTINGS[index]) for index in COVERING])
@pytest.mark.parametrize("engine", [embedded, reference], ids=["embedded", "reference"])
def test_engine(engine: Any, index: int) -> None:
    examples = None if index == COVERING[0] else 30
    shown(check_engine(engine(index), settings=SETTINGS[index], examples=examples))


@pytest.mark.parametrize("agent", [Honest, Mute], ids=["tells its labels", "tells nothing"])
def test_an_agent_that_does_everything_right(agent: Any) -> None:
    report = check_integration(agent, folder=FOLDER)
    shown(report)
    assert report.without == (() if agent is Honest else ("taint", "messages"))


def test_a_guard_of_ones_own() -> None:
    """Guards may come from elsewhere, for conversations that ours do not know."""
    shown(check_conversation(Conversation.new, guard=guards(), examples=10))


@pytest.mark.parametrize("examples", [0, -1])
def test_no_examples_are_refused(examples: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        check_conversation(Conversation.new, examples=examples)


def test_an_assertion_of_the_subject_is_told_with_its_steps() -> None:
    class Asserts(Conversation):
        def fork(self) -> Conversation:
            assert not self.taint, "we never fork what is tainted"
            return super().fork()

    with pytest.raises(AssertionError, match=r"(?s)(fork|copy) of A.*AssertionError: we never fork what is tainted"):
        check_conversation(Asserts)


def test_what_depends_on_something_else_is_told_so() -> None:
    """A subject that fails every other time is no fault with a trace, but one with a name."""
    made: list[int] = []

    class Moody(Conversation):
        def say(self, text: str, *, pasted: bool = False) -> None:
            made.append(1)
            if len(made) == 40:
                raise RuntimeError("moody")
            super().say(text, pasted=pasted)

    with pytest.raises(AssertionError, match="the same steps gave another result the second time"):
        check_conversation(Moody)
