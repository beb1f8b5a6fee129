"""A port whose methods are coroutines did nothing, and nobody noticed.

A journal with ``async def append``, given to a synchronous guard, gave back coroutines that nobody awaited: calls ran,
content entered and text was typed with no entry at all, so the taint stayed empty and the last send went out. Nothing
looked at what a port answered. Now every reply is checked for its kind: one that is not what the port promises is a
port that did no work, and what depended on it is refused.
Mutations that this file catches: ``_checked`` letting any reply pass; ``_done`` letting any reply pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal, Message, Verdict
from interlock.errors import JournalUnavailable
from interlock.model.messages import Image
from tests.regressions.stage import MANIFEST, interlock


class Port:
    """A port around another, with some of its methods as coroutines."""

    def __init__(self, port: Any, *late: str) -> None:
        self._port, self._late = port, late

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in self._late:
            return found

        async def later(*args: Any, **kwargs: Any) -> Any:
            return found(*args, **kwargs)

        return later


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 11, 29, 12, tzinfo=UTC)


class Files:
    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(paths)


def _with(which: str, method: str) -> Interlock:
    ports: dict[str, Any] = {"journal": MemoryJournal(), "clock": Clock(), "files": Files()}
    ports["engine"] = interlock().engine
    ports[which] = Port(ports[which], method)
    return Interlock(manifest=MANIFEST, **ports)


LATE = [("journal", "append"), ("journal", "state"), ("clock", "now"), ("files", "resolve"), ("engine", "evaluate")]


@pytest.mark.parametrize(("which", "method"), LATE)
def test_nothing_runs_when_a_port_does_not_answer(which: str, method: str) -> None:
    guard = _with(which, method).guard(Conversation.new())
    ran: list[str] = []
    outcome = guard.call("write", {"path": "notes.txt", "text": "x"}, run=lambda **_: ran.append("ran"))
    assert not ran
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == ("engine_error" if which == "engine" else "journal_error")


def test_a_conversation_is_not_bound_to_a_journal_that_opens_later() -> None:
    conversation = Conversation.user("")
    late = _with("journal", "open")
    with pytest.raises(JournalUnavailable):
        late.guard(conversation)
    assert interlock().guard(conversation).conversation.state.typed == frozenset()


def test_content_does_not_enter_before_its_labels_are_on_record() -> None:
    guard = _with("journal", "append").guard(Conversation.new())
    with pytest.raises(JournalUnavailable):
        guard.admit("a stranger's text", labels=["untrusted:memory"], source="notes")


def test_a_result_is_withheld_when_its_outcome_is_not_on_record() -> None:
    journal = Port(MemoryJournal())
    guard = Interlock(manifest=MANIFEST, journal=journal).guard(Conversation.new())
    ticket = guard.propose(Call("fetch", {"url": "https://page.example/"}, id="a"))
    journal._late = ("append",)
    outcome = guard.observe(ticket, "a", "a stranger's text")
    assert outcome.result is None
    assert "stranger" not in outcome.for_model


def test_messages_wait_for_their_record() -> None:
    conversation = Conversation.new()
    _with("journal", "append").guard(conversation)
    with pytest.raises(JournalUnavailable):
        conversation.say("hello")
    with pytest.raises(JournalUnavailable):
        conversation.say("a page", pasted=True)
    with pytest.raises(JournalUnavailable):
        conversation.push(Message.user("look", Image("image/png", b"pixels")))
    assert conversation.is_empty()


def test_honest_an_engine_that_must_be_awaited_is_awaited() -> None:
    async def story() -> None:
        guard = _with("engine", "evaluate").guard(Conversation.new())
        outcome = await guard.acall("calc", {}, run=lambda: 2)
        assert outcome.result == 2

    asyncio.run(story())


def test_honest_ports_that_answer_are_believed() -> None:
    guard = Interlock(manifest=MANIFEST, journal=Port(MemoryJournal())).guard(Conversation.user(""))
    assert guard.call("fetch", {"url": "https://page.example/"}, run=lambda url: "text").result == "text"
    assert "untrusted:web" in guard.conversation.taint
