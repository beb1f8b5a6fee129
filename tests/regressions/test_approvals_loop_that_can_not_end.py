"""A person was asked in a worker of the event loop's own pool. Half a dozen questions took all workers, and every other
conversation of the process, which needs one for its journal, stood still until somebody answered. And a loop that was
left while a person was asked, by Ctrl-C or a cancelled task, waited for the answer all the same, for minutes.

Found by review.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import Answer, Question
from interlock.errors import ApproverUnavailable
from tests.approvals.desk import EVE, locked, reader


class Slow:
    """A person who thinks until they are told to answer."""

    def __init__(self, *, error: BaseException | None = None) -> None:
        self.asked, self.go, self.error = threading.Semaphore(0), threading.Event(), error

    def ask(self, question: Question, seconds: float) -> Any:
        self.asked.release()
        self.go.wait(20)
        if self.error is not None:
            raise self.error
        return Answer("approve", "kim")


def test_questions_leave_the_loop_its_workers() -> None:
    slow = Slow()

    async def story() -> list[Any]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        guards = [reader(locked(slow)) for _ in range(4)]
        tasks = [asyncio.create_task(one.acall("send", EVE, run=lambda **_: "sent")) for one in guards]
        for _ in tasks:
            while not slow.asked.acquire(blocking=False):  # noqa: ASYNC110 - told from another thread
                await asyncio.sleep(0.01)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
        slow.go.set()
        return await asyncio.gather(*tasks)

    assert all(one.executed for one in asyncio.run(story()))


def test_a_loop_that_is_left_does_not_wait_for_a_person() -> None:
    slow = Slow()

    async def story() -> None:
        task = asyncio.create_task(reader(locked(slow)).acall("send", EVE, run=lambda **_: "sent"))
        while not slow.asked.acquire(blocking=False):  # noqa: ASYNC110 - told from another thread
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(story())
    assert time.monotonic() - began < 10
    slow.go.set()


@pytest.mark.parametrize(
    "error", [ApproverUnavailable("gone"), StopIteration(), OSError("x")], ids=["ours", "stop", "os"]
)
def test_whatever_is_raised_there_is_nobodys_answer(error: BaseException) -> None:
    slow = Slow(error=error)
    slow.go.set()
    outcome = asyncio.run(reader(locked(slow)).acall("send", EVE, run=lambda **_: "sent"))
    assert (outcome.executed, outcome.decision.code) == (False, "no_answer")
