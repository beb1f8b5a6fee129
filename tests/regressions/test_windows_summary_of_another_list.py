"""T12: a summary stood for messages that it was not made from, and hid them.

A summary is on record with a number of messages, and was shown in place of the first so many, whichever they were.
A rollback to a snapshot from before a rewrite brought back an older list under the summary of the newer one; messages
in the system role were counted on the one side and not on the other; a turn that lost, or a process that died before
its turn was stored, left a summary of messages that nobody else has; and a process that had not heard of a rewrite
showed its own list under the summary of another. Each time the model saw a summary of something else, and what it hid
was in no summary. Now the record says by digest which messages came last in it, and a rollback says how many are the
same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import Conversation, Message
from interlock.conversations import Conversations
from interlock.errors import Refused, TurnConflict
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sqlite import SqliteStore
from interlock.windows import ContextWindow, RunBudget

LIMITS = WindowLimits(messages=6, recent=2, batch=4, backlog=4)
LABELS = ("untrusted:web",)


def talk(conversation: Conversation, what: str, times: int) -> None:
    for number in range(times):
        conversation.push(Message.user(f"{what} {number}"))
        conversation.push(Message.assistant(f"on {what} {number}"))


def told(request: SummaryRequest) -> str:
    """A summary that holds what it was made from."""
    return " ".join([request.previous, *(one.text for one in request.messages)])


def whole(conversation: Conversation, window: ContextWindow) -> None:
    """Whatever the conversation holds is shown, or is in the summary that is."""
    shown = "\n".join(one.text for one in window.context(RunBudget(passes=9)))
    missing = [one.text for one in conversation.messages if one.text not in shown]
    assert not missing


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    SqliteStore.migrate(tmp_path / "store.db")
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    yield opened
    opened.close()


def test_t12_a_rollback_to_before_a_rewrite() -> None:
    conversation = Conversation(labels=LABELS)
    talk(conversation, "apples", 8)
    before = conversation.snapshot()
    conversation.rewrite([Message.user(f"pears {number}") for number in range(16)])
    window = ContextWindow(conversation, limits=LIMITS, summarise=told)
    window.context(RunBudget(passes=9))
    assert window.summary() is not None
    conversation.roll_back_failed_turn(before)
    assert conversation.state.summary is None
    assert window.summary() is None
    whole(conversation, window)
    assert "pears" not in window.summary().text  # type: ignore[union-attr]


def test_t12_a_rollback_that_changes_an_early_message_only() -> None:
    """The last messages that the summary covers are the same; the rollback itself says that the first one is not."""
    conversation = Conversation(labels=LABELS)
    conversation.push(Message.user("a long story"))
    talk(conversation, "apples", 8)
    before = conversation.snapshot()
    conversation.rewrite([Message.user("a story"), *conversation.messages[1:]])
    window = ContextWindow(conversation, limits=LIMITS, summarise=told)
    window.context(RunBudget(passes=9))
    conversation.roll_back_failed_turn(before)
    assert window.summary() is None


def test_t12_a_rollback_of_a_turn_keeps_the_summary_of_what_was_before() -> None:
    conversation = Conversation(labels=LABELS)
    conversation.push(Message.system("be careful"))
    talk(conversation, "apples", 8)
    window = ContextWindow(conversation, limits=LIMITS, summarise=told)
    window.context(RunBudget(passes=9))
    summary, before = window.summary(), conversation.snapshot()
    talk(conversation, "pears", 2)
    conversation.roll_back_failed_turn(before)
    assert summary is not None
    assert window.summary() == summary


def test_t12_messages_in_the_system_role_are_in_no_count() -> None:
    conversation = Conversation(labels=LABELS)
    for number in range(9):
        conversation.push(Message.system(f"rule {number}"))
    talk(conversation, "apples", 1)
    before = conversation.snapshot()
    talk(conversation, "pears", 7)
    window = ContextWindow(conversation, limits=LIMITS, summarise=told)
    window.context(RunBudget(passes=9))
    conversation.roll_back_failed_turn(before)
    talk(conversation, "plums", 9)
    whole(conversation, window)


def test_t12_a_turn_that_was_never_stored(store: SqliteStore) -> None:
    """A process summarises what it has not stored, and dies. Somebody else goes on from what is stored."""
    summaries, place = SqlFacts(store), Conversations(store, "default")
    stored = place.keep(Conversation(labels=LABELS))
    lost = place.load(stored.id)
    talk(lost.conversation, "lost", 8)
    window = ContextWindow(lost.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    window.context(RunBudget(passes=9))
    again = place.load(stored.id)
    talk(again.conversation, "found", 8)
    window = ContextWindow(again.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    assert window.summary() is None
    whole(again.conversation, window)
    assert "lost" not in window.summary().text  # type: ignore[union-attr]


def test_t12_the_turn_that_lost(store: SqliteStore) -> None:
    summaries, place = SqlFacts(store), Conversations(store, "default")
    first = place.keep(Conversation(labels=LABELS))
    second = place.load(first.id)
    talk(first.conversation, "won", 8)
    talk(second.conversation, "lost", 8)
    first.record_turn()
    window = ContextWindow(second.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    window.context(RunBudget(passes=9))
    whole(second.conversation, window)
    with pytest.raises(TurnConflict):
        second.record_turn()
    for conversation in (first.conversation, place.load(first.id).conversation):
        window = ContextWindow(conversation, limits=LIMITS, summarise=told, summaries=summaries)
        assert window.summary() is None or "lost" not in window.summary().text  # type: ignore[union-attr]
        whole(conversation, window)


def test_a_summary_of_a_turn_stays_when_the_turn_is_stored(store: SqliteStore) -> None:
    """It was dropped by the end of the very turn in which it was made, and made again in the next one."""
    summaries, place = SqlFacts(store), Conversations(store, "default")
    stored = place.keep(Conversation(labels=LABELS))
    talk(stored.conversation, "apples", 8)
    window = ContextWindow(stored.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    window.context(RunBudget(passes=9))
    summary = window.summary()
    stored.record_turn()
    assert summary is not None
    assert window.summary() == summary
    again = place.load(stored.id)
    window = ContextWindow(again.conversation, limits=LIMITS, summaries=summaries)
    assert window.summary() == summary
    whole(again.conversation, window)


def test_t12_the_same_places_in_another_turn(store: SqliteStore) -> None:
    """Somebody else's turn is as long as the one that was summarised, and ends otherwise: its last message differs."""
    summaries, place = SqlFacts(store), Conversations(store, "default")
    first = place.keep(Conversation(labels=LABELS))
    second = place.load(first.id)
    for stored, last in ((first, "won"), (second, "lost")):
        talk(stored.conversation, "apples", 6)
        for number in range(9):
            stored.conversation.push(Message.user(f"{last} {number}"))
    window = ContextWindow(second.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    window.context(RunBudget(passes=9))
    first.record_turn()
    assert first.conversation.state.summary is None


def test_t12_a_process_that_has_not_heard_of_a_rewrite(store: SqliteStore) -> None:
    summaries, place = SqlFacts(store), Conversations(store, "default")
    begun = Conversation(labels=LABELS)
    talk(begun, "apples", 8)
    first = place.keep(begun)
    second = place.load(first.id)
    first.conversation.rewrite([Message.user(f"pears {number}") for number in range(16)])
    ContextWindow(first.conversation, limits=LIMITS, summarise=told, summaries=summaries).context(RunBudget(passes=9))
    window = ContextWindow(second.conversation, limits=LIMITS, summarise=told, summaries=summaries)
    assert window.summary() is None
    whole(second.conversation, window)
    assert "pears" not in window.summary().text  # type: ignore[union-attr]


def test_t12_a_rollback_where_the_first_messages_were_not_loaded(store: SqliteStore) -> None:
    """It counts from the first loaded message, and the summary from the first of all: it was dropped, and the window
    refused to go on."""
    summaries, place = SqlFacts(store), Conversations(store, "default")
    begun = Conversation(labels=LABELS)
    talk(begun, "apples", 8)
    stored = place.keep(begun)
    window = ContextWindow(begun, limits=LIMITS, summarise=told, summaries=summaries)
    window.context(RunBudget(passes=9))
    again = place.load(stored.id, newest=6)
    window = ContextWindow(again.conversation, limits=LIMITS, summaries=summaries, earlier=again.earlier)
    summary, before = window.summary(), again.conversation.snapshot()
    talk(again.conversation, "pears", 1)
    again.conversation.roll_back_failed_turn(before)
    assert summary is not None
    assert window.summary() == summary
    window.context()
    none = place.load(stored.id, newest=1)
    with pytest.raises(Refused, match="were not loaded"):
        ContextWindow(none.conversation, limits=LIMITS, summaries=summaries, earlier=none.earlier).context()
