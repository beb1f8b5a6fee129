"""Proves what `ContextWindow` promises around a summariser: passes, deadline, cancellation, outages, both kinds of
callables, and that nothing is shown that is not on record (T12).

Mutations that this file catches: a pass that costs nothing; an answer that comes after the deadline and counts; a
summary that is kept though the conversation was rewritten meanwhile; a failure that stops a run which could go on; a
journal's failure that does not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Message, Session
from interlock.conversations import Conversations
from interlock.errors import JournalUnavailable, MemoryUnavailable, Refused, SummaryRequired
from interlock.model.messages import Role
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.stores.memory_facts import MemorySummaries
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sqlite import SqliteStore
from interlock.windows import ContextWindow, RunBudget

LIMITS = WindowLimits(messages=6, recent=2, batch=4, backlog=4)


def talk(conversation: Conversation, times: int) -> Conversation:
    for number in range(times):
        conversation.push(Message.user(f"question {number}"))
        conversation.push(Message.assistant(f"answer {number}"))
    return conversation


def fresh(times: int = 6) -> Conversation:
    return talk(Conversation(labels=["untrusted:web"]), times)


class Summariser:
    """Answers, or does what it is told to do instead."""

    def __init__(self, trouble: Any = None) -> None:
        self.asked: list[SummaryRequest] = []
        self.trouble = trouble

    def __call__(self, request: SummaryRequest) -> Any:
        self.asked.append(request)
        if isinstance(self.trouble, BaseException):
            raise self.trouble
        if self.trouble is not None:
            return self.trouble
        return f"summary {len(self.asked)}"


def test_nothing_happens_while_everything_fits() -> None:
    conversation, summarise = fresh(3), Summariser()
    assert ContextWindow(conversation, limits=LIMITS, summarise=summarise).context() == conversation.messages
    assert not summarise.asked


def test_without_a_summariser_only_what_is_required_stops_the_run() -> None:
    conversation = fresh(5)  # within the backlog
    window = ContextWindow(conversation, limits=LIMITS)
    assert window.context() == conversation.messages
    assert window.plan().batch == (0, 4)
    talk(conversation, 1)
    with pytest.raises(SummaryRequired) as raised:
        window.context()
    assert (raised.value.first, raised.value.end) == (0, 4)


def test_summaries_are_made_until_it_fits_each_from_the_one_before() -> None:
    conversation, summarise = fresh(8), Summariser()
    window = ContextWindow(conversation, limits=LIMITS, summarise=summarise)
    shown = window.context(RunBudget(passes=9))
    assert [one.previous for one in summarise.asked] == ["", "summary 1", "summary 2"]
    assert [len(one.messages) for one in summarise.asked] == [4, 4, 4]
    assert all(one.labels == ("untrusted:web",) for one in summarise.asked)
    assert all("question" in one.record for one in summarise.asked)
    assert [one.role for one in shown[:3]] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert "summary 3" in shown[2].text
    assert shown[3:] == conversation.messages[12:]
    assert len(conversation) == 16
    again = window.context()
    assert again[3:] == shown[3:]
    assert again[2] != shown[2]  # between other marks
    assert len(summarise.asked) == 3


def test_the_operators_instructions_come_first_and_are_in_no_summary() -> None:
    conversation, summarise = Conversation(), Summariser()
    conversation.push(Message.system("be careful"))
    window = ContextWindow(talk(conversation, 8), limits=LIMITS, summarise=summarise)
    assert window.context(RunBudget(passes=9))[0] == Message.system("be careful")
    assert not any("careful" in one.record for one in summarise.asked)


def test_the_budget_is_the_runs() -> None:
    budget = RunBudget(passes=2)
    window = ContextWindow(fresh(12), limits=LIMITS, summarise=Summariser())
    with pytest.raises(SummaryRequired):
        window.context(budget)
    assert budget.passes == 0
    with pytest.raises(SummaryRequired):
        window.context(budget)
    assert window.context(RunBudget(passes=9))


@pytest.mark.parametrize("trouble", [ConnectionError("down"), "", "x" * 20_000, b"bytes", 7])
def test_an_outage_does_not_stop_what_can_go_on_and_the_backlog_is_recovered(trouble: Any) -> None:
    conversation, summarise = fresh(5), Summariser(trouble)
    window = ContextWindow(conversation, limits=LIMITS, summarise=summarise)
    assert window.context() == conversation.messages
    assert window.failure is not None
    talk(conversation, 8)
    with pytest.raises(SummaryRequired) as raised:
        window.context()
    assert raised.value.__cause__ is window.failure
    assert len(conversation) == 26
    summarise.trouble = None
    shown = window.context(RunBudget(passes=20))
    assert window.failure is None
    assert len(shown) <= 3 + LIMITS.messages
    assert shown[3:] == conversation.messages[-len(shown[3:]) :]


def test_a_deadline_is_kept_and_what_comes_after_it_does_not_count() -> None:
    go = threading.Event()

    def slow(_: SummaryRequest) -> str:
        go.wait(10)
        return "too late"

    window = ContextWindow(fresh(8), limits=LIMITS, summarise=slow)
    begun = time.monotonic()
    with pytest.raises(SummaryRequired):
        window.context(RunBudget(seconds=0.1))
    assert time.monotonic() - begun < 5
    go.set()
    time.sleep(0.05)
    assert window.summary() is None


def test_a_run_that_is_cancelled_waits_for_nothing() -> None:
    cancelled: list[bool] = []
    go = threading.Event()

    def slow(_: SummaryRequest) -> str:
        cancelled.append(True)
        go.wait(10)
        return "too late"

    window = ContextWindow(fresh(8), limits=LIMITS, summarise=slow)
    with pytest.raises(SummaryRequired):
        window.context(RunBudget(cancelled=lambda: bool(cancelled)))
    go.set()
    asked = Summariser()
    with pytest.raises(SummaryRequired):
        ContextWindow(fresh(8), limits=LIMITS, summarise=asked).context(RunBudget(cancelled=lambda: True))
    assert not asked.asked


def test_a_summary_of_a_list_that_is_no_longer_there_is_dropped() -> None:
    conversation = fresh(8)

    def rewriting(_: SummaryRequest) -> str:
        conversation.rewrite([Message.user(f"other {number}") for number in range(16)])
        return "of the old list"

    window = ContextWindow(conversation, limits=LIMITS, summarise=rewriting)
    with pytest.raises(SummaryRequired):
        window.context(RunBudget(passes=1))
    assert window.summary() is None


def test_a_text_that_is_lost_is_made_anew_from_the_transcript() -> None:
    conversation, summarise = fresh(8), Summariser()
    ContextWindow(conversation, limits=LIMITS, summarise=summarise).context(RunBudget(passes=9))
    window = ContextWindow(conversation, limits=LIMITS, summarise=summarise, summaries=MemorySummaries())
    assert window.summary() is None
    shown = window.context(RunBudget(passes=9))
    assert summarise.asked[3].previous == ""
    assert window.summary() is not None
    assert shown[3:] == conversation.messages[12:]


def test_a_journal_that_fails_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = fresh(5)
    window = ContextWindow(conversation, limits=LIMITS, summarise=Summariser())

    def full(_: Any) -> None:
        raise JournalUnavailable("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(Conversation, "record", lambda _self, entry: full(entry))
        with pytest.raises(JournalUnavailable):
            window.context()
    assert window.summary() is None


def test_a_store_of_summaries_that_fails_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = MemorySummaries()

    def full(*_: Any) -> None:
        raise MemoryUnavailable("disk full")

    monkeypatch.setattr(summaries, "keep", full)
    conversation = fresh(5)
    window = ContextWindow(conversation, limits=LIMITS, summarise=Summariser(), summaries=summaries)
    assert window.context() == conversation.messages
    assert isinstance(window.failure, MemoryUnavailable)
    assert conversation.state.summary is None


def test_an_asynchronous_summariser() -> None:
    async def summarise(_: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "made by awaiting"

    async def never(_: SummaryRequest) -> str:
        await asyncio.sleep(60)
        return "too late"

    async def story() -> None:
        window = ContextWindow(fresh(8), limits=LIMITS, summarise=summarise)
        shown = await window.acontext(RunBudget(passes=9))
        assert "made by awaiting" in shown[2].text
        late = ContextWindow(fresh(8), limits=LIMITS, summarise=never)
        with pytest.raises(SummaryRequired):
            await late.acontext(RunBudget(seconds=0.05))
        task = asyncio.create_task(late.acontext())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert late.summary() is None
        plain = ContextWindow(fresh(8), limits=LIMITS, summarise=Summariser())
        assert "summary 3" in (await plain.acontext(RunBudget(passes=9)))[2].text

    asyncio.run(story())
    with pytest.raises(SummaryRequired) as raised:
        ContextWindow(fresh(8), limits=LIMITS, summarise=summarise).context()
    assert "acontext" in str(raised.value.__cause__)


def test_a_round_that_is_larger_than_the_window_can_not_be_summarised() -> None:
    conversation = Conversation()
    conversation.push(Message.user("x" * 4000))
    limits = WindowLimits(messages=6, recent=2, tokens=100)
    with pytest.raises(SummaryRequired, match="finish or shorten"):
        ContextWindow(conversation, limits=limits, summarise=Summariser()).context()


def test_a_conversation_of_which_only_the_end_is_loaded(tmp_path: Path) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", durability="process")
    summaries, place = SqlFacts(store), Conversations(store, "default")
    stored = place.keep(fresh(8))
    window = ContextWindow(stored.conversation, limits=LIMITS, summarise=Summariser(), summaries=summaries)
    shown = window.context(RunBudget(passes=9))
    stored.record_turn()
    again = place.load(stored.id, newest=4)
    assert again.earlier == 12
    window = ContextWindow(again.conversation, limits=LIMITS, summaries=summaries, earlier=again.earlier)
    assert window.context()[3:] == shown[3:]
    assert window.summary().labels == ("untrusted:web",)  # type: ignore[union-attr]
    assert summaries.summary("default", stored.id, window.summary().content) is not None  # type: ignore[union-attr]
    content = window.summary().content  # type: ignore[union-attr]
    place.namespace.erase(stored.id, at="2026-11-29T12:00:00.000000Z")
    assert summaries.summary("default", stored.id, content) is None
    assert "untrusted:web" in place.load(stored.id).conversation.taint
    store.close()


def test_a_session_file_keeps_which_summary_is_in_force(tmp_path: Path) -> None:
    summaries, conversation = MemorySummaries(), fresh(8)
    with Session.create(tmp_path / "chat.jsonl", conversation) as session:
        before = conversation.snapshot()
        window = ContextWindow(conversation, limits=LIMITS, summarise=Summariser(), summaries=summaries)
        shown = window.context(RunBudget(passes=9))
        session.record_run(before, conversation)
    with Session.load(tmp_path / "chat.jsonl") as session:
        again = ContextWindow(session.conversation, limits=LIMITS, summaries=summaries)
        assert again.summary() == window.summary()
        assert again.context()[3:] == shown[3:]
        session.conversation.rewrite([Message.user("all of it, shorter")])
        assert again.summary() is None
        assert "untrusted:web" in session.conversation.taint


def test_messages_that_are_in_no_summary_must_be_loaded(tmp_path: Path) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", durability="process")
    summaries, place = SqlFacts(store), Conversations(store, "default")
    stored = place.keep(fresh(8))
    ContextWindow(stored.conversation, limits=LIMITS, summarise=Summariser(), summaries=summaries).context(
        RunBudget(passes=9)
    )
    short = place.load(stored.id, newest=2)
    with pytest.raises(Refused, match="were not loaded"):
        ContextWindow(short.conversation, limits=LIMITS, summaries=summaries, earlier=short.earlier).context()
    store.close()
