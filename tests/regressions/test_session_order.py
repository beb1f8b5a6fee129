"""What was rolled back before a rewrite came after it in `messages_ever`.

The lists that a run's rewrites replaced, and those that its rollbacks replaced, were kept apart, and written one kind
after the other: a failed turn at the beginning of a run stood behind everything that was said later.
Mutation that this file catches: all rewritten lists before all that were rolled back.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Conversation, Message, Session

SAID = ["q", "failed", "q again", "answer", "summary"]


def run() -> Conversation:
    conversation = Conversation.user("q")
    before = conversation.snapshot()
    conversation.push(Message.assistant("failed"))
    conversation.roll_back_failed_turn(before)
    conversation.say("q again")
    conversation.push(Message.assistant("answer"))
    conversation.rewrite([Message.user("summary")])
    return conversation


def test_a_session_that_begins_late_knows_the_order(tmp_path: Path) -> None:
    with Session.create(tmp_path / "s", run()) as session:
        assert [one.text for one in session.messages_ever()] == SAID


def test_a_run_of_another_conversation_is_recorded_in_order(tmp_path: Path) -> None:
    with Session.create(tmp_path / "s", Conversation.new()) as session:
        other = run()
        fake = Conversation.new().snapshot()
        before = type(fake)(other.id, (Message.user("q"),), ((),))
        for _ in range(2):
            session.record_run(before, other)
            assert [one.text for one in session.messages_ever()] == SAID
    with Session.load(tmp_path / "s") as session:
        assert [one.text for one in session.messages_ever()] == SAID


def test_honest_rewritten_holds_what_rewrites_replaced_only() -> None:
    conversation = run()
    assert [[one.text for one in state] for state in conversation.rewritten] == [["q again", "answer"]]
