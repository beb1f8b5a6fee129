"""Permits: a tool runs only with one, once, for exactly the call that was decided (T8).

       issue            start            enter            finish
    ──────────▶ ISSUED ───────▶ RUNNING ───────▶ ENTERED ─────────▶ SPENT
                                   │                                  ▲
                                   └──────────────────────────────────┘ finish

What is not in the table is refused, and SPENT has no way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Final

from interlock.errors import Bug, NotPermitted
from interlock.gate.steps import same
from interlock.model.calls import FrozenCall, same_call
from interlock.model.results import Allowed
from interlock.model.tools import ToolId


class PermitState(StrEnum):
    ISSUED = "issued"
    RUNNING = "running"
    ENTERED = "entered"
    SPENT = "spent"


class PermitInput(StrEnum):
    START = "start"
    ENTER = "enter"
    FINISH = "finish"


TRANSITIONS: Final[dict[tuple[PermitState, PermitInput], PermitState]] = {
    (PermitState.ISSUED, PermitInput.START): PermitState.RUNNING,
    (PermitState.RUNNING, PermitInput.ENTER): PermitState.ENTERED,
    (PermitState.RUNNING, PermitInput.FINISH): PermitState.SPENT,
    (PermitState.ENTERED, PermitInput.FINISH): PermitState.SPENT,
}


class Permit:
    """Leave to run one allowed call once. Single-use across threads: each transition is one atomic dictionary step."""

    __slots__ = ("_left", "allowed")

    def __init__(self, allowed: Allowed) -> None:
        self.allowed = allowed
        # The state is a dictionary with one key, since `pop` of a key is atomic: of two threads that race for a
        # transition one pops the state and the other finds it gone.
        self._left: dict[PermitState, None] = {PermitState.ISSUED: None}

    @property
    def state(self) -> PermitState:
        return next(iter(self._left), PermitState.SPENT)

    def step(self, what: PermitInput) -> None:
        """Make one transition.

        Raises:
            NotPermitted: it is not in the table; the permit is unchanged.
        """
        for before, given in TRANSITIONS:
            if given is what and self._left.pop(before, _GONE) is not _GONE:
                self._left[TRANSITIONS[before, given]] = None
                return
        raise NotPermitted(
            f"a permit for {str(self.allowed.call.tool)!r} can't {what.value} when it is {self.state.value}"
        )


_GONE: Final = object()
_CURRENT: ContextVar[Permit | None] = ContextVar("interlock_permit", default=None)


@contextmanager
def executing(permit: Permit) -> Iterator[dict[str, Any]]:
    """Run the body under a permit; gives a fresh copy of the arguments that were decided.

    Raises:
        NotPermitted: the permit was used already.
        Bug: the frozen arguments no longer have the digest that was decided.
    """
    if not same(permit.allowed.call):
        raise Bug("the arguments of an allowed call do not have the digest that was decided")
    permit.step(PermitInput.START)
    token = _CURRENT.set(permit)
    try:
        yield permit.allowed.call.thawed()
    finally:
        _CURRENT.reset(token)
        permit.step(PermitInput.FINISH)


def enter(tool: ToolId, arguments: Mapping[str, Any]) -> bool:
    """At the door of a wrapped tool: is there a permit for exactly this call? Uses it up if so.

    Raises:
        NotPermitted: there is one and it is spent: a second entry, or a call that was cancelled meanwhile. It must not
            become a new call of its own.
    """
    permit = _CURRENT.get()
    if permit is None or permit.allowed.call.tool != tool or not same_call(permit.allowed.call, tool, arguments):
        return False
    permit.step(PermitInput.ENTER)
    return True


def permitted() -> FrozenCall | None:
    """The call that runs around this code, as it was decided; None where no call runs."""
    permit = _CURRENT.get()
    return None if permit is None else permit.allowed.call
