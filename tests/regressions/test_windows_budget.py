"""T12: the budget of a run was not kept by all of its ways, and a window could be made of two moments.

* Several calls of one run that shared a budget from threads could each find the last pass and spend it.
* An asynchronous summariser was waited for until the deadline although the run had been cancelled.
* An answer that came just after the deadline counted: the thread was waited for in steps.
* Limits of infinity and of no number at all were taken, and then nothing was ever due or required; so was a count of
  tokens that is no number.
* The labels of a summary were read from the transcript a second time: a rewrite in between gave it those of other
  messages. And after a failure the window showed the list as it had been before the rewrite.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from interlock import Conversation, Message
from interlock.errors import Refused, SummaryRequired
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.windows import ContextWindow, RunBudget

LIMITS = WindowLimits(messages=6, recent=2, batch=4, backlog=9)


def talked(times: int, *labels: str) -> Conversation:
    conversation = Conversation(labels=labels)
    for number in range(times):
        conversation.push(Message.user(f"message {number}"))
    return conversation


def test_a_pass_is_spent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads ask whether a pass is left before any of them has taken it."""
    threads, there = 4, threading.Barrier(4)

    def together() -> bool:
        if not there.broken:
            try:
                there.wait(0.2)
            except threading.BrokenBarrierError:
                pass
        return False

    budget, taken = RunBudget(passes=1, cancelled=together), []
    workers = [threading.Thread(target=lambda: taken.append(budget.take())) for _ in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert sum(taken) == 1
    assert budget.passes == 0


@pytest.mark.parametrize("passes", [0, -1])
def test_a_budget_of_nothing_spends_nothing(passes: int) -> None:
    asked: list[SummaryRequest] = []
    window = ContextWindow(talked(20), limits=LIMITS, summarise=lambda one: asked.append(one) or "x")
    for budget in (
        RunBudget(passes=passes),
        RunBudget(seconds=0),
        RunBudget(seconds=-1),
        RunBudget(seconds=float("nan")),
    ):
        with pytest.raises(SummaryRequired):
            window.context(budget)
        with pytest.raises(SummaryRequired):
            asyncio.run(window.acontext(budget))
    assert not asked


def test_an_asynchronous_summariser_is_left_when_the_run_is_cancelled() -> None:
    cancelled: list[bool] = []

    async def slow(_: SummaryRequest) -> str:
        cancelled.append(True)
        await asyncio.sleep(30)
        return "too late"

    window = ContextWindow(talked(20), limits=LIMITS, summarise=slow)
    begun = time.monotonic()
    with pytest.raises(SummaryRequired):
        asyncio.run(window.acontext(RunBudget(seconds=20, cancelled=lambda: bool(cancelled))))
    assert time.monotonic() - begun < 10
    assert window.summary() is None


def test_an_answer_after_the_deadline_does_not_count() -> None:
    budget = RunBudget(seconds=0.01)

    def late(_: SummaryRequest) -> str:
        while not budget.over:
            time.sleep(0.001)
        return "too late"  # within the step in which the thread is waited for

    conversation = talked(20)
    with pytest.raises(SummaryRequired):
        ContextWindow(conversation, limits=LIMITS, summarise=late).context(budget)
    assert conversation.state.summary is None


@pytest.mark.parametrize("name", ["messages", "tokens", "recent", "backlog", "batch", "batch_tokens"])
@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), 7.0, True, None, "7"])
def test_a_limit_is_a_whole_number(name: str, wrong: Any) -> None:
    with pytest.raises(Refused):
        WindowLimits(**{name: wrong})


@pytest.mark.parametrize("tokens", [float("nan"), -1, None, 1.5, "3"])
def test_a_count_that_is_none_shows_nothing(tokens: Any) -> None:
    window = ContextWindow(talked(20), limits=LIMITS, summarise=lambda _: "x", count=lambda _: tokens)
    with pytest.raises(Refused, match="count="):
        window.context()


def test_t12_labels_are_those_of_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the plan and the request the list is replaced by one that looks the same and is covered by less."""
    conversation = talked(20, "untrusted:web")
    window = ContextWindow(conversation, limits=LIMITS, summarise=lambda _: "x")
    begin = window._begun  # type: ignore[attr-defined]

    def meanwhile(*parts: Any) -> Any:
        now = conversation.transcript
        conversation.follow(type(now)(now.messages, ((),) * len(now.messages)))
        return begin(*parts)

    monkeypatch.setattr(window, "_begun", meanwhile)
    try:
        window.context(RunBudget(passes=1))
    except SummaryRequired:
        pass
    known = conversation.state.summary
    assert known is None or known.labels == ("untrusted:web",)


def test_after_a_failure_the_list_is_shown_as_it_is_by_now() -> None:
    conversation = talked(9)

    def rewriting(_: SummaryRequest) -> str:
        conversation.rewrite([Message.user(f"other {number}") for number in range(9)])
        return "of the old list"

    window = ContextWindow(conversation, limits=LIMITS, summarise=rewriting)
    shown = window.context(RunBudget(passes=1))
    assert shown == conversation.messages
    assert isinstance(window.failure, Refused)
