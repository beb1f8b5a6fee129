"""T17: a synchronous tool that raised `StopIteration` under `acall` was never answered: the call hung for ever.

`asyncio.to_thread` can't carry a `StopIteration` back into the loop on every version of Python: the future is never
resolved. `next()` on an empty iterator is enough, and a tool's error must be an outcome.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal
from tests.worlds import MANIFEST


class Sub(StopIteration):
    pass


@pytest.mark.parametrize("error", [StopIteration, Sub, StopAsyncIteration], ids=lambda error: error.__name__)
@pytest.mark.parametrize("way", ["call", "acall", "acall async", "abatch"])
def test_t17_a_tool_that_raises_stop_iteration_is_answered(error: type[Exception], way: str) -> None:
    conversation = Conversation.new()
    guard = Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation)

    def tool(*_: Any) -> Any:
        raise error("x")

    async def async_tool(*_: Any) -> Any:
        raise error("x")

    async def asynchronously() -> Any:
        # Complaints of the loop about the lost future would hide the point; the time-out makes it.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with asyncio.timeout(2):
            if way == "abatch":
                return (await guard.abatch([Call("read_mail", {}, "a")], run=tool))[0]
            return await guard.acall("read_mail", {}, run=tool if way == "acall" else async_tool)

    outcome = guard.call("read_mail", {}, run=tool) if way == "call" else asyncio.run(asynchronously())
    assert outcome.executed
    assert outcome.is_error
    assert "private:mail" in conversation.taint
