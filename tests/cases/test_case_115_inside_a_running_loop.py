"""Case 115: the check calls something that does not work inside a running event loop, and the error means "fine".

The same attack and the same honest call are told from plain code, inside a running loop, from a callback, in a loop
inside a thread of a loop, in a pool of threads, in a thread that ends, and after a fork. Everywhere the same verdicts,
and no failure is taken for one of them; the honest twin is the mail to whom the person named.

Other event loops than asyncio's are not promised.
"""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from interlock import Guard
from tests.cases.desk import EVIL, armed, did, got

WANTED = [("deny", "trifecta"), ("allow", "allowed"), ("deny", "trifecta")]


def story(guard: Guard) -> list[tuple[str, str]]:
    to_kim = {**EVIL, "to": "kim@corp.example"}
    return [got(did(guard, "send_email", one)) for one in (EVIL, to_kim, EVIL)]


async def astory(guard: Guard) -> list[tuple[str, str]]:
    async def run(**_: Any) -> str:
        await asyncio.sleep(0)
        return "sent"

    to_kim = {**EVIL, "to": "kim@corp.example"}
    return [got(await guard.acall("send_email", one, run=run)) for one in (EVIL, to_kim, EVIL)]


def plain(guard: Guard) -> Any:
    return story(guard)


def awaited(guard: Guard) -> Any:
    return asyncio.run(astory(guard))


def sync_in_a_loop(guard: Guard) -> Any:
    async def outer() -> Any:
        return story(guard)

    return asyncio.run(outer())


def callback(guard: Guard) -> Any:
    async def outer() -> Any:
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: told.set_result(story(guard)))
        return await told

    return asyncio.run(outer())


def loop_in_a_thread_of_a_loop(guard: Guard) -> Any:
    async def outer() -> Any:
        return await asyncio.to_thread(lambda: asyncio.run(astory(guard)))

    return asyncio.run(outer())


def pool(guard: Guard) -> Any:
    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(story, guard) for _ in range(4)]
        results = [one.result() for one in told]
    assert results == [results[0]] * 4
    return results[0]


def thread_that_ends(guard: Guard) -> Any:
    told: list[Any] = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: told.append(story(guard)))
        thread.start()
        thread.join(30)
    assert told == [told[0]] * 3
    return told[0]


PLACES: list[Callable[[Guard], Any]] = [
    plain,
    awaited,
    sync_in_a_loop,
    callback,
    loop_in_a_thread_of_a_loop,
    pool,
    thread_that_ends,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_the_same_everywhere(place: Callable[[Guard], Any]) -> None:
    assert place(armed(typed="Write to kim@corp.example please.")) == WANTED


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_attack_after_a_fork() -> None:
    guard = armed(typed="Write to kim@corp.example please.")
    assert story(guard) == WANTED
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads is what is tried here
        child = os.fork()
    if not child:
        try:
            os.write(write, repr(story(guard)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        assert told.read().decode() == repr(WANTED)
    assert os.waitpid(child, 0)[1] == 0


def test_attack_an_asynchronous_tool_in_a_synchronous_call_is_an_error_and_no_result() -> None:
    """The coroutine that nobody awaits would be handed to the model as text, or never run."""

    async def send(**_: Any) -> str:
        return "sent"

    guard = armed(typed="Write to kim@corp.example please.")
    outcome = guard.call("send_email", {**EVIL, "to": "kim@corp.example"}, run=send)
    assert outcome.error is not None
    assert outcome.result is None
