"""Proves T8, T9 and T14 of asking: whatever effect fails, and however, nothing runs without a yes on record, and never
twice; and both drivers see the same effects.

Mutations that this file catches: a failed append that counts as an answer; an approver's error that counts as a yes; a
decision that runs although its consumption was not written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

import pytest

from interlock import Call
from interlock.errors import ApproverUnavailable, JournalUnavailable
from interlock.gate import asking_steps, steps
from interlock.gate.drivers import adrive, drive
from interlock.gate.effects import Append, AskPerson, DropQuestion, Effect, Execute, KeepQuestion
from interlock.model.entries import Consumed, Decided
from tests.approvals.desk import YES, Person, entries, locked, reader


class Failing:
    """A world whose n-th effect fails, before it happens or after; and the names of all of them."""

    def __init__(self, world: Any, at: int, error: Callable[[], BaseException], after: bool) -> None:
        self._world, self._at, self._error, self._after = world, at, error, after
        self.names: list[str] = []

    def answer(self, effect: Effect) -> Any:
        self.names.append(type(effect).__name__)
        struck = len(self.names) == self._at
        if struck and not self._after:
            raise self._error()
        reply = self._world.answer(effect)
        if struck:
            raise self._error()
        return reply

    def begun(self, effect: Effect) -> Any:
        return self.answer(effect)

    def waits(self, effect: Effect) -> bool:
        return False


def story(conversation: str, rules: Any) -> Generator[Effect, Any, Any]:
    ticket = yield from asking_steps.propose_and_ask(
        conversation, [Call("shell", {"command": "sh deploy.sh"}, "a")], rules
    )
    for allowed in ticket.allowed.values():
        return (yield from steps.run_allowed(conversation, allowed))
    return ticket.outcomes["a"]


def told(at: int, error: Callable[[], BaseException], after: bool) -> tuple[list[str], int, list[Any]]:
    lock = locked(Person(YES))
    guard = reader(lock)
    now = guard._current()
    world = Failing(now.world, at, error, after)
    ran: list[str] = []
    outcome = drive(story(guard.conversation.id, now.rules), world, lambda name, _: ran.append(name))  # type: ignore[arg-type]
    assert outcome.call_id == "a"
    return world.names, len(ran), entries(lock, guard)


ERRORS = [lambda: JournalUnavailable("gone"), lambda: ApproverUnavailable("gone"), lambda: OSError(28, "full")]
NAMES = told(0, ERRORS[0], False)[0]


def test_the_whole_story_runs_once() -> None:
    names, ran, written = told(0, ERRORS[0], False)
    assert ran == 1
    assert {"AskPerson", "KeepQuestion", "DropQuestion", "ReadOperands", "Append"} <= set(names)
    assert [one.kind for one in written][-2:] == ["decided", "observed"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", range(len(ERRORS)))
@pytest.mark.parametrize("at", range(1, len(NAMES) + 1), ids=lambda at: f"{at:02d}-{NAMES[at - 1]}")
def test_every_effect_fails(at: int, error: int, after: bool) -> None:
    _, ran, written = told(at, ERRORS[error], after)
    consumed = [one for one in written if isinstance(one, Consumed)]
    allowed = [
        one.number for one in written if isinstance(one, Decided) and one.tool == "shell" and one.verdict == "allow"
    ]
    assert ran <= len(consumed) <= 1
    assert [one.number for one in consumed] == allowed
    if NAMES[at - 1] == AskPerson.__name__ or (NAMES[at - 1] == KeepQuestion.__name__):
        assert ran == 0
    if NAMES[at - 1] == DropQuestion.__name__:
        assert ran == 1  # what is still kept is dropped later; the answer stands


def test_t14_both_drivers_see_the_same_effects() -> None:
    guard = reader(locked(Person(YES)))
    now = guard._current()
    world = Failing(now.world, 0, ERRORS[0], False)

    async def run(_name: str, _arguments: Any) -> str:
        return "sent"

    outcome = asyncio.run(adrive(story(guard.conversation.id, now.rules), world, run))  # type: ignore[arg-type]
    assert outcome.executed
    assert world.names == NAMES
    assert Append.__name__ in NAMES
    assert Execute.__name__ not in NAMES  # drivers answer that one themselves
