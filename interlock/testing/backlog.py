"""What a store must do while nobody makes summaries, as a function that anybody can run against theirs.

    check_backlog(partial(MyStore, "where"), MySummaries)

The window, its summaries and the store are separate; only together can they lose a message or a label.
"""

from __future__ import annotations

from collections.abc import Callable

from interlock.conversations import Conversations, StoredConversation
from interlock.errors import SummaryRequired
from interlock.gate.conversation import Conversation
from interlock.model.messages import Message
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.ports import Store, Summaries
from interlock.testing.stores import Factory, check_chain, fresh
from interlock.windows import ContextWindow, RunBudget

LIMITS = WindowLimits(messages=6, recent=2, batch=4, backlog=4)


def check_backlog(factory: Factory, summaries: Callable[[Store], Summaries]) -> None:
    """An outage of the summariser stops no turn before a summary is required, then every one, in each process; when it
    is back whoever loads the conversation recovers the backlog, with every message and every label (T2, T12).

    Args:
        factory: see :mod:`interlock.testing.stores`.
        summaries: those that belong to an open store.
    """
    store = factory()
    place = Conversations(store, fresh())
    first = place.keep(Conversation(namespace=place.namespace.name, labels=["untrusted:web"]))
    for turn in range(5):
        first.conversation.push(Message.user(f"question {turn}"))
        shown = _window(first, summaries(store), _out).context()
        assert shown == first.conversation.messages, "something else was shown than what was said"
        first.conversation.push(Message.assistant(f"answer {turn}"))
        first.record_turn()
    for turn in range(5, 9):
        first.conversation.push(Message.user(f"question {turn}"))
        first.conversation.push(Message.assistant(f"answer {turn}"))
        first.record_turn()
    other = factory()
    again = Conversations(other, place.namespace.name).load(first.id)
    for stored, at in ((first, store), (again, other)):
        _required(_window(stored, summaries(at), _out))
    asked: list[SummaryRequest] = []

    def back(request: SummaryRequest) -> str:
        asked.append(request)
        return f"summary {len(asked)}"

    window = _window(again, summaries(other), back)
    shown = window.context(RunBudget(passes=20))
    told = "\n".join(one.record for one in asked)
    kept = [one.text for one in again.conversation.messages]
    assert len(kept) == 18, "a message was lost in the outage"
    assert all(text in told or text in [one.text for one in shown] for text in kept), "a message is in no summary"
    summary = window.summary()
    assert summary is not None
    assert summary.labels == ("untrusted:web",), "a summary is less tainted than what it summarises"
    again.record_turn()
    third = factory()
    last = Conversations(third, place.namespace.name).load(first.id)
    assert _window(last, summaries(third), _out).summary() == summary, "another process sees another summary"
    assert _window(last, summaries(third), _out).context()[3:] == shown[3:]
    assert "untrusted:web" in last.conversation.taint
    check_chain(third.within(place.namespace.name), first.id)
    for one in (third, other, store):
        one.close()


def _window(
    stored: StoredConversation, summaries: Summaries, summarise: Callable[[SummaryRequest], str]
) -> ContextWindow:
    return ContextWindow(stored.conversation, limits=LIMITS, summarise=summarise, summaries=summaries)


def _out(_: SummaryRequest) -> str:
    raise ConnectionError("nobody makes summaries now")


def _required(window: ContextWindow) -> None:
    try:
        window.context()
    except SummaryRequired:
        return
    raise AssertionError("a model would have been called without the summary that is required")
