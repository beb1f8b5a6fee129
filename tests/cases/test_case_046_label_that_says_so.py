"""Case 46: one page marks a memory as a stranger's for ever, a feature stops working, and nobody says why.

A recall says of every label that came with it where it is from and what a person can do, and so does the record of a
file; the explanation of a denial names the same place. What heals is deleting the text and writing it anew in a
conversation that has not read the page: the fact under that name keeps its labels, a new one has none. The honest twin
recalls what brings nothing, without a notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from interlock.model.facts import Selection
from tests.cases.desk import did
from tests.cases.poisoned import EVIL, KIM, PAGE, PLANT, Desk, desks, named, sends


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def test_attack_a_recall_says_what_it_brings(desk: Desk) -> None:
    fact = desk.memory.remember(desk.poisoned().conversation, f"habits: {PLANT}")
    second = desk.fresh()
    (notice,) = desk.memory.recall(second.conversation, "habits").notices
    assert f"memory {fact.id} brings untrusted:web: {PAGE}" in notice
    assert "write it anew" in notice
    assert fact.id in named(sends(second))


def test_attack_a_file_says_what_it_brings(desk: Desk) -> None:
    assert did(desk.poisoned(), "save", {"path": "MEMORY.md", "text": PLANT}).executed
    second = desk.fresh()
    (notice,) = second.carried_by("path", "MEMORY.md").notices("MEMORY.md")
    assert f"MEMORY.md brings untrusted:web: {PAGE}" in notice
    assert second.admit_artifact(PLANT, "path", "MEMORY.md") == PLANT
    assert "MEMORY.md" in named(sends(second))


def test_attack_forgetting_takes_no_label_away(desk: Desk) -> None:
    fact = desk.memory.remember(desk.poisoned().conversation, f"habits: {PLANT}")
    assert desk.memory.forget("default", Selection(ids=(fact.id,))) == 1
    gone = desk.memory.fact("default", fact.id)
    assert gone is not None
    assert gone.text is None
    assert gone.carried == fact.carried
    assert not desk.memory.recall(desk.fresh().conversation, "habits").facts
    again = desk.memory.correct(desk.fresh("short letters").conversation, fact.id, 1, "habits: short letters")
    assert "untrusted:web" in again.carried.labels


def test_attack_forgotten_by_source_and_by_age(desk: Desk) -> None:
    first = desk.poisoned()
    second = desk.fresh()
    desk.memory.remember(first.conversation, "habits one")
    second.conversation.open_parcel(first.conversation.parcel(PLANT))
    desk.memory.remember(second.conversation, "habits two")
    desk.memory.remember(desk.fresh().conversation, "habits three")
    assert desk.memory.forget("default", Selection()) == 0  # nothing named selects nothing
    assert desk.memory.forget("elsewhere", Selection(everything=True)) == 0
    assert desk.memory.forget("default", Selection(conversation=first.conversation.id)) == 2
    assert [one.text for one in desk.memory.recall(second.conversation, "habits").facts] == ["habits three"]
    assert desk.memory.expire("default", timedelta(days=1)) == 0
    assert desk.memory.expire("default", timedelta(days=-1)) == 1


def test_honest_written_anew_in_a_clean_conversation(desk: Desk) -> None:
    old = desk.memory.remember(desk.poisoned().conversation, f"habits: {PLANT}")
    desk.memory.forget("default", Selection(ids=(old.id,)))
    desk.memory.remember(desk.fresh("I like short letters.").conversation, "habits: short letters")
    guard = desk.fresh("Send the plan to kim@corp.example please.")
    recalled = desk.memory.recall(guard.conversation, "habits")
    assert recalled.notices == ()
    assert recalled.labels == ("untrusted:memory",)
    assert did(guard, "read_plan").executed
    assert did(guard, "send_email", KIM).executed
    assert not did(guard, "send_email", EVIL).executed
