"""T2: a child that was given up while it still ran could lose a label between two lines of the join.

A join on a time-out is a join of a child that runs on in another thread. The child's labels were read, then the child
learned one more that had been foreseen and needed no telling, then the join took the delegation out of the parent's
exposure. The label was in neither place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from interlock import Conversation, Guard, MemoryJournal
from interlock.model.digests import content_digest
from interlock.model.entries import Admitted
from interlock.model.labels import Label
from interlock.model.state import State
from interlock.model.tools import Egress, ToolId, ToolSpec
from tests.regressions.stage import interlock


class Interrupted(MemoryJournal):
    """A journal under which another thread acts, right after the n-th look at the state."""

    def __init__(self, place: int, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self._place, self._meanwhile = place, meanwhile

    def state(self, conversation: str) -> State:
        found = super().state(conversation)
        self._place -= 1
        if self._place == 0:
            self._meanwhile()
        return found


MAIL = ToolSpec(ToolId("", "read_mail"), returns=(Label("private:mail"),), egress=Egress.NONE)


@pytest.mark.parametrize("place", range(1, 8))
@pytest.mark.parametrize("tools", [None, [MAIL]], ids=["every tool", "a tool that may bring it"])
def test_t2_a_child_that_learns_while_it_is_joined(place: int, tools: list[ToolSpec] | None) -> None:
    parent = Conversation.new()
    child = parent.child("task", tools=tools)
    learned = Admitted("2026-11-29T12:00:00.000000Z", "mail", (Label("private:mail"),), content_digest("x"), 1)
    child.bind(Interrupted(place, lambda: child.record(learned)))
    parent.join(child)
    assert set(child.exposure) <= set(parent.exposure)


def test_t2_a_child_that_runs_on_in_another_thread() -> None:
    parent = Conversation.new()
    for _ in range(40):
        child, start = parent.child("task"), threading.Barrier(2)
        guard = interlock().guard(child)
        label = f"private:of_{child.id.removeprefix('c-')}"

        def learn(guard: Guard = guard, start: threading.Barrier = start, label: str = label) -> None:
            start.wait(30)
            guard.admit("text", labels=[label], source="mail")

        thread = threading.Thread(target=learn)
        thread.start()
        start.wait(30)
        parent.join(child)
        thread.join()
        assert set(child.exposure) <= set(parent.exposure)
