"""T8: a `Bug` inside an asynchronous batch with workers came out as an `ExceptionGroup`, unlike everywhere else.

`except Bug` around the agent loop did not see it, and `except Exception`, which the tree of errors makes safe by design
for our own errors, swallowed a group that held a broken invariant. Interpreter exits came out bare already.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Bug, Call, Conversation, Interlock, MemoryJournal
from tests.worlds import MANIFEST

CALLS = [Call("read_mail", {}, "a"), Call("read_note", {}, "b"), Call("now", {}, "c")]


@pytest.mark.parametrize("error", [Bug, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_t8_it_comes_out_as_itself(error: type[BaseException], workers: int, asynchronous: bool) -> None:
    conversation = Conversation.new()
    guard = Interlock(manifest=MANIFEST, journal=MemoryJournal()).guard(conversation)

    def run(name: str, arguments: dict[str, Any]) -> Any:
        if name == "read_note":
            raise error("injected")
        return name

    async def arun(name: str, arguments: dict[str, Any]) -> Any:
        await asyncio.sleep(0)
        return run(name, arguments)

    def all_of_it() -> None:
        if asynchronous:
            asyncio.run(guard.abatch(CALLS, run=arun, workers=workers))
        else:
            guard.batch(CALLS, run=run, workers=workers)

    with pytest.raises(error) as caught:
        all_of_it()
    assert type(caught.value) is error
    assert {"private:mail", "untrusted:mail", "private:notes"} <= conversation.exposure.labels
