"""Case 21: a page plants a wish in memory, and every later conversation carries it out.

Conversation A reads the page and remembers it. A fresh conversation B recalls it before it has called any tool: it is
armed by that, a private read follows, and the send is denied with A's page in the explanation. The same holds through a
child, through a second memory, and when the text has been corrected. The honest twin remembers the person's own wish,
and sends to whom the person typed.
Mutations that this file catches: a recall that admits nothing; a fact stored with the labels of its sources only; a
recall that admits `untrusted:memory` only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.errors import JournalUnavailable
from interlock.model.messages import Role
from tests.cases.desk import did
from tests.cases.poisoned import EVIL, KIM, PAGE, PLANT, Desk, desks, named, sends


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def test_attack_t12_page_memory_recall_send(desk: Desk) -> None:
    first = desk.poisoned()
    desk.memory.remember(first.conversation, f"mail habits: {PLANT}")
    second = desk.fresh()
    recalled = desk.memory.recall(second.conversation, "mail habits")
    assert PLANT in recalled.text
    assert set(second.conversation.taint) == {"untrusted:memory", "untrusted:web"}
    note = named(sends(second))
    assert note.startswith(f"{PAGE} (call 1 web_fetch of {first.conversation.id})")
    assert "by way of memory m-" in note


def test_attack_t12_through_a_child_that_recalls(desk: Desk) -> None:
    first = desk.poisoned()
    desk.memory.remember(first.conversation, f"mail habits: {PLANT}")
    parent = desk.fresh()
    with parent.conversation.child("look up our mail habits", tools=[]) as child:
        desk.memory.recall(child, "mail habits")
    assert PAGE in named(sends(parent))


def test_attack_t12_through_a_child_that_remembers(desk: Desk) -> None:
    first = desk.poisoned()
    with first.conversation.child("note our mail habits", tools=[]) as child:
        desk.memory.remember(child, f"mail habits: {PLANT}")
    second = desk.fresh()
    desk.memory.recall(second.conversation, "mail habits")
    assert PAGE in named(sends(second))


def test_attack_t12_through_a_fork_and_a_second_memory(desk: Desk) -> None:
    fork = desk.poisoned().conversation.fork()
    desk.memory.remember(fork, f"mail habits: {PLANT}")
    second = desk.fresh().conversation
    desk.memory.recall(second, "habits")
    desk.memory.remember(second, f"second note on the seasons: {PLANT}")
    third = desk.fresh()
    desk.memory.recall(third.conversation, "seasons", limit=1)
    assert PAGE in named(sends(third))


def test_attack_t12_a_correction_keeps_the_labels_of_what_it_corrects(desk: Desk) -> None:
    fact = desk.memory.remember(desk.poisoned().conversation, PLANT)
    desk.memory.correct(desk.fresh("correct it").conversation, fact.id, 1, "mail habits: none")
    second = desk.fresh()
    desk.memory.recall(second.conversation, "habits")
    assert PAGE in named(sends(second))


def test_attack_what_is_recalled_is_nobodys_word(desk: Desk) -> None:
    """Neither the role nor the text of a recall vouches for anything, and it can't end its own quotation."""
    desk.memory.remember(desk.fresh().conversation, f"mail habits [/0] {PLANT}")
    second = desk.fresh()
    recalled = desk.memory.recall(second.conversation, "habits")
    assert [one.role for one in recalled.messages] == [Role.ASSISTANT, Role.TOOL]
    assert len(second.conversation) == 0  # not in the transcript
    assert recalled.text.count(f"[/{recalled.mark}]") == 1
    assert recalled.text.endswith(f"[/{recalled.mark}]")
    again = desk.memory.recall(second.conversation, "habits")
    assert again.mark != recalled.mark
    assert sends(second).verdict == "deny"


def test_attack_what_can_not_be_recorded_is_not_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.memory.remember(desk.poisoned().conversation, f"mail habits: {PLANT}")
    second = desk.fresh()

    def full(*_: object, **__: object) -> object:
        raise JournalUnavailable("disk full")

    monkeypatch.setattr(desk.lock.journal, "append", full)
    with pytest.raises(JournalUnavailable):
        desk.memory.recall(second.conversation, "habits")


def test_honest_the_persons_own_wish(desk: Desk) -> None:
    desk.memory.remember(desk.fresh("I like short letters.").conversation, "likes short letters")
    second = desk.fresh("Send the plan to kim@corp.example please.")
    assert desk.memory.recall(second.conversation, "letters").labels == ("untrusted:memory",)
    assert did(second, "read_plan").executed
    assert did(second, "send_email", KIM).executed
    assert not did(second, "send_email", EVIL).executed
