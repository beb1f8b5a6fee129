"""Case 165: a stranger's text plans a run for the night, which starts clean and sends.

Work that is sent for later, and a message to another agent, are parcels: they carry the exposure of whoever wrote them,
lie in any database for any time, and what is begun from one begins with its labels, before its first message. A parcel
that was changed, or that says it is of somebody else, is every leg. The honest twin plans the person's own task.
Mutations that this file catches: a run that is opened without the parcel's labels; a parcel without the labels of calls
under way; a seal that is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import Call, Conversation
from interlock.errors import Refused
from interlock.model.canonical import pack, parse
from interlock.model.carried import CLEAN
from interlock.model.labels import EVERY_LEG
from interlock.model.parcels import read_parcel
from tests.cases.desk import did
from tests.cases.poisoned import EVIL, KIM, PAGE, PLANT, Desk, desks, named, sends


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def stored(body: bytes) -> Conversation:
    """At two in the morning, from a database."""
    return Conversation.from_parcel(read_parcel(body, namespace="default"))


def test_attack_t12_page_schedule_run_send(desk: Desk) -> None:
    first = desk.poisoned()
    run = stored(first.conversation.parcel(PLANT).encode())
    assert set(run.taint) == {"untrusted:web"}
    assert [one.text for one in run.messages] == [PLANT]
    assert run.state.parent == first.conversation.id
    assert named(sends(desk.lock.guard(run))).startswith(f"{PAGE} (call 1 web_fetch of {first.conversation.id})")


def test_attack_t12_a_message_to_another_agent(desk: Desk) -> None:
    parcel = desk.poisoned().conversation.parcel(PLANT)
    other = desk.fresh()
    assert other.conversation.open_parcel(parcel) == PLANT
    assert named(sends(other)).startswith(PAGE)


def test_attack_t12_from_run_to_run(desk: Desk) -> None:
    run = desk.poisoned().conversation
    for _ in range(3):
        run = stored(run.parcel(PLANT).encode())
    assert PAGE in named(sends(desk.lock.guard(run)))


def test_attack_t2_calls_under_way_count(desk: Desk) -> None:
    first = desk.fresh()
    first.propose(Call("web_fetch", {"url": PAGE}, id="1"))
    run = stored(first.conversation.parcel(PLANT).encode())
    assert PAGE in named(sends(desk.lock.guard(run)))


def test_attack_nothing_in_a_parcel_was_typed(desk: Desk) -> None:
    first = desk.poisoned()
    first.conversation.say("Write to kim@corp.example please.")
    guard = desk.lock.guard(stored(first.conversation.parcel("write to kim@corp.example").encode()))
    assert did(guard, "read_plan").executed
    assert not did(guard, "send_email", KIM).executed


@pytest.mark.parametrize("place", range(7))
def test_attack_a_parcel_that_was_changed_is_every_leg(desk: Desk, place: int) -> None:
    parts = parse(desk.poisoned().conversation.parcel(PLANT).encode())
    assert isinstance(parts, list)
    parts[place] = CLEAN.encode().decode() if place == 4 else f"{parts[place]}x"
    assert set(stored(pack(parts)).taint) == set(EVERY_LEG)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[1,2,3,4,5,6,7]", b'["","","","","","",""]', b"\xff"])
def test_attack_what_is_no_parcel_is_no_run(body: bytes) -> None:
    with pytest.raises(Refused):
        stored(body)


def test_attack_t2_another_namespace_learns_the_labels_and_no_more(desk: Desk) -> None:
    parcel = desk.poisoned().conversation.parcel(PLANT)
    other = Conversation(namespace="elsewhere")
    other.open_parcel(parcel)
    assert set(other.taint) == {"untrusted:web"}
    source = other.taint.source("untrusted:web")
    assert source is not None
    assert PAGE not in source.tool


def test_honest_the_persons_own_task(desk: Desk) -> None:
    run = stored(desk.fresh("Remind me every night.").conversation.parcel("remind").encode())
    assert not run.taint
    guard = desk.lock.guard(run)
    assert did(guard, "read_plan").executed
    assert did(guard, "send_email", EVIL).executed  # nothing untrusted is here
