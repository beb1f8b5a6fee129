"""Proves T8, T9 and T14 of the outbox: whatever effect of a drafting or a delivery fails, and however, nothing runs
that was not released and taken on record before, and nothing runs twice.

Mutations that this file catches: a delivery that runs although its `taken` was not written; a failed drafting that the
model is told was one; a delivery that is tried again after its outcome could not be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Call
from interlock.errors import InterlockError, OutboxUnavailable
from interlock.gate import outbox_steps, steps
from interlock.gate.drivers import adrive, drive
from interlock.gate.effects import Execute
from interlock.model.drafts import Status
from interlock.model.entries import Decided, Drafted, Taken
from tests.approvals.desk import entries, reader
from tests.faults.test_approvals import Failing
from tests.machines.test_grant_machine import asking_engine
from tests.outbox.box import Runs, only, staging

SHELL = {"command": "sh deploy.sh"}
ERRORS: list[Callable[[], BaseException]] = [
    lambda: OutboxUnavailable("gone"),
    lambda: OSError(28, "full"),
]


def drafting(at: int, error: Callable[[], BaseException], after: bool) -> tuple[list[str], Any, list[Any]]:
    lock = staging(engine=asking_engine(), settings=None)
    guard = reader(lock)
    now = guard._current()
    world = Failing(now.world, at, error, after)
    ticket = drive(steps.propose(guard.conversation.id, [Call("shell", SHELL, "a")], now.rules), world)  # type: ignore[arg-type]
    assert not ticket.allowed
    return world.names, ticket.outcomes["a"], entries(lock, guard)


DRAFTING = drafting(0, ERRORS[0], False)[0]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", range(len(ERRORS)))
@pytest.mark.parametrize("at", range(1, len(DRAFTING) + 1), ids=lambda at: f"{at:02d}-{DRAFTING[at - 1]}")
def test_drafting(at: int, error: int, after: bool) -> None:
    _, outcome, written = drafting(at, ERRORS[error], after)
    on_record = any(isinstance(one, Drafted) for one in written)
    if outcome.decision.drafted:
        assert on_record
    else:
        assert outcome.is_error
        assert "was not made" in outcome.for_model or "Nothing was sent" in outcome.for_model


def delivering(at: int, error: Callable[[], BaseException], after: bool) -> tuple[list[str], Runs, Any, list[Any]]:
    lock = staging(engine=asking_engine(), settings=None)
    guard = reader(lock)
    guard.call("shell", SHELL, run=lambda **_: "no")
    box = lock.outbox()
    box.release(only(box), "kim")
    name = only(box).draft.id
    now = guard._current()
    world, runs = Failing(now.world, at, error, after), Runs()
    for world_now in (world, now.world, now.world):  # and again, as a host does
        try:
            drive(outbox_steps.deliver(guard.conversation.id, name, now.rules), world_now, runs)  # type: ignore[arg-type]
        except (InterlockError, OSError):
            pass
    return world.names, runs, guard.conversation.state.drafts[name], entries(lock, guard)


DELIVERING = delivering(0, ERRORS[0], False)[0]


def test_the_whole_delivery_runs_once() -> None:
    names, runs, kept, _ = delivering(0, ERRORS[0], False)
    assert (len(runs.calls), kept.status) == (1, Status.SENT)
    assert {"ReadDraft", "ReadOperands", "Append", "DropDraft"} <= set(names)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", range(len(ERRORS)))
@pytest.mark.parametrize("at", range(1, len(DELIVERING) + 1), ids=lambda at: f"{at:02d}-{DELIVERING[at - 1]}")
def test_delivering(at: int, error: int, after: bool) -> None:
    _, runs, kept, written = delivering(at, ERRORS[error], after)
    taken = [one for one in written if isinstance(one, Taken)]
    decided = [one for one in written if isinstance(one, Decided) and one.tool == "shell"]
    allowed = [one.number for one in decided if one.verdict == "allow"]
    assert len(runs.calls) <= 1, "it was sent twice"
    assert [one.number for one in taken] == allowed
    assert len(runs.calls) <= len(taken) <= 1
    if not runs.calls:
        assert kept.status is not Status.SENT


def test_both_drivers_see_the_same_effects() -> None:
    seen = []
    for asynchronous in (False, True):
        lock = staging(engine=asking_engine(), settings=None)
        guard = reader(lock)
        guard.call("shell", SHELL, run=lambda **_: "no")
        box = lock.outbox()
        box.release(only(box), "kim")
        now = guard._current()
        world = Failing(now.world, 0, ERRORS[0], False)
        steps_to_take = outbox_steps.deliver(guard.conversation.id, only(box).draft.id, now.rules)
        if asynchronous:
            outcome = asyncio.run(adrive(steps_to_take, world, lambda *_: "sent"))  # type: ignore[arg-type]
        else:
            outcome = drive(steps_to_take, world, lambda *_: "sent")  # type: ignore[arg-type]
        assert outcome is not None
        assert outcome.executed
        seen.append(world.names)
    assert seen[0] == seen[1]
    assert Execute.__name__ not in seen[0]  # the drivers' own
