"""An exposure of many labels was written over both heads of a session: the session damaged itself.

Only the taint was bounded; what is in flight, and delegations above all, were not. A head of 80 KB did not fit into its
place, ran into the other one, and the next load found no head at all. After a resume the same labels were a taint of
700, past its bound. Now what is written down of a wide exposure is the unknown of each of its legs, which is stronger.
Mutations that this file catches: the head written with all labels; a resume that joins the exposure without its bound.
"""

from __future__ import annotations

from pathlib import Path

from interlock import Conversation, Session
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, ChildOpened
from interlock.model.labels import Label
from interlock.model.state import MAX_LABELS
from interlock.stores.head_file import SLOT, head_of

AT = "2026-11-29T12:00:00.000000Z"


def wide(leg: str, many: int = 700) -> tuple[Label, ...]:
    return tuple(Label(f"{leg}:{'x' * 100}{number:04}") for number in range(many))


def test_t2_a_wide_exposure_is_kept_and_damages_nothing(tmp_path: Path) -> None:
    session = Session.create(tmp_path / "s", Conversation.user("hello"))
    session.conversation.record(ChildOpened(AT, "c-1", wide("private")))
    session.conversation.record(Admitted(AT, "notes", (Label("untrusted:web"),), NO_DIGEST, 0))
    assert head_of(session.path).stat().st_size <= 2 * SLOT
    session.close()
    after = Session.load(session.path)
    assert not after.damage
    assert all(one in after.conversation.taint for one in (*wide("private"), Label("untrusted:web")))
    assert len(after.conversation.taint) <= MAX_LABELS + 3
    after.close()


def test_t2_again_and_again(tmp_path: Path) -> None:
    Session.create(tmp_path / "s", Conversation.user("hello")).close()
    for number, leg in enumerate(("private", "untrusted", "egress", "private")):
        session = Session.load(tmp_path / "s")
        assert not session.damage
        session.conversation.record(ChildOpened(AT, f"c-{number}", wide(leg, 300)))
        session.close()
    after = Session.load(tmp_path / "s")
    assert not after.damage
    for leg in ("private", "untrusted", "egress"):
        assert all(one in after.conversation.taint for one in wide(leg, 300))
    assert len(after.conversation.taint) <= MAX_LABELS + 3
    after.close()
