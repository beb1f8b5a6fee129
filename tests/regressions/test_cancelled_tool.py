"""A tool whose call had been cancelled ran all the same, as a new call of its own.

A synchronous tool runs in a worker thread. The awaiting task was cancelled and its permit was spent; but the thread
was still on its way to the ``@tool`` function, found no permit that it could use, found ``with guard:`` in its
context, and went through the guard as a fresh call: it ran after its cancellation, in doubt and allowed at once. Now a
permit that is spent for exactly this call is a refusal, never a reason to ask again.
Mutation that this file catches: ``enter`` giving False in place of raising when the permit can't be entered.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal, NotPermitted, tool
from interlock.model.entries import Decided, Failed
from tests.regressions.stage import entries

RAN: list[str] = []


@tool(returns=["private:notes"], egress="none", content=["text"])
def act(text: str) -> str:
    RAN.append(text)
    return "done"


@pytest.mark.parametrize("around", [True, False], ids=["with guard", "without"])
def test_a_cancelled_tool_does_not_start_again(around: bool) -> None:
    RAN.clear()
    started, go_on, finished = (threading.Event() for _ in range(3))
    guard = Interlock(tools=[act], journal=MemoryJournal()).guard(Conversation.new())
    refused: list[BaseException] = []

    def run(name: str, arguments: dict[str, Any]) -> Any:
        started.set()
        go_on.wait(5)
        try:
            return act(**arguments)
        except NotPermitted as error:
            refused.append(error)
            raise
        finally:
            finished.set()

    async def story() -> None:
        task = asyncio.create_task(guard.abatch([Call("act", {"text": "x"})], run=run))
        await asyncio.to_thread(started.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.to_thread(finished.wait, 5)

    async def inside() -> None:
        if around:
            with guard:
                await story()
        else:
            await story()

    asyncio.run(inside())
    assert not RAN
    assert len(refused) == 1
    decisions = [entry for entry in entries(guard) if isinstance(entry, Decided)]
    doubts = [entry for entry in entries(guard) if isinstance(entry, Failed)]
    assert len(decisions) == 1
    assert [entry.doubt for entry in doubts] == [True]
    assert "private:notes" in guard.conversation.taint


def test_a_second_entry_under_one_permit_is_refused() -> None:
    RAN.clear()
    guard = Interlock(tools=[act], journal=MemoryJournal()).guard(Conversation.new())

    def twice(text: str) -> str:
        act(text=text)
        return str(act(text=text))

    with guard:
        outcome = guard.call("act", {"text": "x"}, run=twice)
    assert isinstance(outcome.error, NotPermitted)
    assert RAN == ["x"]


def test_honest_another_call_from_inside_a_tool_goes_through_the_guard() -> None:
    RAN.clear()
    guard = Interlock(tools=[act], journal=MemoryJournal()).guard(Conversation.new())

    def outer(text: str) -> str:
        act(text=text)
        return str(act(text="inner"))

    with guard:
        outcome = guard.call("act", {"text": "x"}, run=outer)
    assert outcome.result == "done"
    assert RAN == ["x", "inner"]
    assert sum(isinstance(entry, Decided) for entry in entries(guard)) == 2


def test_honest_a_call_that_was_not_cancelled_runs_once() -> None:
    RAN.clear()
    guard = Interlock(tools=[act], journal=MemoryJournal()).guard(Conversation.new())
    outcome = asyncio.run(guard.acall("act", {"text": "x"}, run=act))
    assert outcome.result == "done"
    assert RAN == ["x"]
