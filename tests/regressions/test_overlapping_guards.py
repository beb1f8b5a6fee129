"""``with guard:`` in two tasks at once left one of them under no guard, or raised.

The guards around some code were kept in a list on the guard: a task that entered while another was inside, and left
first, took the other's place away, or found it gone. Now they are an immutable value in a context variable, so each
task and each thread has its own, and leaving in another order than entering is a bug that shows.
Mutation that this file catches: a list in a variable of the module in place of the context variable.
"""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock import Bug, Conversation, Guard, Interlock, MemoryJournal, NotPermitted, tool
from interlock.gate.guard import active
from tests.regressions.stage import guarded


@tool(returns=["private:notes"], egress="none")
def notes() -> str:
    return "notes"


def _guard() -> Guard:
    return Interlock(tools=[notes], journal=MemoryJournal()).guard(Conversation.new())


def test_each_task_has_the_guards_that_it_entered() -> None:
    shared, other = _guard(), _guard()

    async def inside(guard: Guard, began: asyncio.Event, may_leave: asyncio.Event) -> None:
        assert active() is None
        with guard:
            began.set()
            await may_leave.wait()
            assert active() is guard
            assert notes() == "notes"
        assert active() is None

    async def story() -> None:
        for second in (shared, other):
            one_began, one_may_leave, two_began, two_may_leave = (asyncio.Event() for _ in range(4))
            one = asyncio.create_task(inside(shared, one_began, one_may_leave))
            await one_began.wait()
            two = asyncio.create_task(inside(second, two_began, two_may_leave))
            await two_began.wait()
            assert active() is None
            one_may_leave.set()  # the first leaves while the second is inside
            await one
            two_may_leave.set()
            await two

    asyncio.run(asyncio.wait_for(story(), 10))  # a task that fails early would be waited for
    assert "private:notes" in other.conversation.taint


def test_a_thread_does_not_inherit_a_guard() -> None:
    found: list[object] = []

    def elsewhere() -> None:
        found.append(active())
        try:
            notes()
        except NotPermitted as error:
            found.append(error)

    with _guard():
        worker = threading.Thread(target=elsewhere)
        worker.start()
        worker.join()
    assert found[0] is None
    assert isinstance(found[1], NotPermitted)


def test_guards_that_are_left_in_another_order_are_a_bug() -> None:
    outer, inner = guarded(), guarded()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(Bug):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    with pytest.raises(Bug):
        outer.__exit__(None, None, None)
    assert active() is None


def test_honest_guards_nest() -> None:
    outer, inner = _guard(), _guard()
    with outer:
        with inner:
            assert active() is inner
            with inner:
                assert notes() == "notes"
            assert active() is inner
        assert active() is outer
    assert active() is None
    assert "private:notes" not in outer.conversation.taint
    assert "private:notes" in inner.conversation.taint
