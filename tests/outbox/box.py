"""What the tests about the outbox share: an agent whose sends are drafted. Proves nothing by itself."""

from __future__ import annotations

from typing import Any

from interlock import Guard, Interlock
from interlock.gate.outbox import Outbox, Shown
from tests.approvals.desk import Sent, ToldClock, locked, reader

STAGED = ["send", "shell", "write"]


def staging(journal: Any = None, clock: ToldClock | None = None, **options: Any) -> Interlock:
    """An Interlock under which sends, commands and writes are drafted, and nobody is asked."""
    given: dict[str, Any] = {"approvals": None, "outbox": STAGED, "outbox_seconds": 600, **options}
    return locked(given.pop("approver", None), journal, clock, **given)


def drafting(lock: Interlock, arguments: dict[str, Any], tool: str = "send", typed: str = "") -> Guard:
    """A guard of a conversation that has read private mail and has drafted one call."""
    guard = reader(lock, typed)
    sent = Sent()
    outcome = guard.call(tool, arguments, run=sent)
    assert outcome.decision.drafted, outcome
    assert not sent.calls
    return guard


def only(box: Outbox) -> Shown:
    """The one draft that is there."""
    (found,) = box.drafts()
    return found


class Runs:
    """The host's tools, which count: ``run(name, arguments)``."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._error = error

    def __call__(self, name: str, arguments: dict[str, Any]) -> str:
        self.calls.append((name, arguments))
        if self._error is not None:
            raise self._error
        return "sent"
