"""The journal held the digest of another text than the model was shown.

A tool returned an object whose ``__str__`` says something else each time: the text was made once for the digest and
once more for the model. And a generator as a result had no text yet: the journal recorded ``<generator object …>``,
while the host that iterated over ``outcome.result`` gave the model text that nobody had labelled or recorded. Now the
text is made once, and generators, asynchronous generators and awaitables are refused as results.
Mutations that this file catches: the text made anew after the entry; ``_whole`` letting generators pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from interlock import ToolResult
from interlock.model.digests import content_digest
from interlock.model.entries import Failed, Observed
from tests.ids import stable
from tests.regressions.stage import entries, guarded, last

FETCH = {"url": "https://page.example/"}


class Changes:
    """Says something else each time that it is asked."""

    times = 0

    def __str__(self) -> str:
        self.times += 1
        return f"version {self.times}"


@pytest.mark.parametrize(
    "content",
    [Changes(), ToolResult(Changes()), [1, "a"], {"b": 1, "a": 2}, "text", "lone \ud800 surrogate", None, 7, b"bytes"],
    ids=stable,
)
def test_what_is_shown_is_what_was_journalled(content: Any) -> None:
    guard = guarded()
    shown = guard.call("fetch", FETCH, run=lambda url: content).for_model
    entry: Observed = last(guard, Observed)
    assert entry.content == content_digest(shown)
    assert entry.length == len(shown)


def _numbers(ran: list[str]) -> Iterator[str]:
    ran.append("ran")
    yield "a stranger's text"


async def _later(ran: list[str]) -> str:
    ran.append("ran")
    return "a stranger's text"


async def _stream(ran: list[str]) -> AsyncIterator[str]:
    ran.append("ran")
    yield "a stranger's text"


@pytest.mark.parametrize("made", [_numbers, _later, _stream])
def test_a_result_that_is_yet_to_come_is_refused(made: Any) -> None:
    ran: list[str] = []
    guard = guarded()
    outcome = guard.call("fetch", FETCH, run=lambda url: made(ran))
    assert outcome.result is None
    assert outcome.error is not None
    assert isinstance(entries(guard)[-1], Failed)
    assert not ran


@pytest.mark.parametrize("made", [_numbers, _stream])
def test_the_same_in_a_running_event_loop(made: Any) -> None:
    ran: list[str] = []

    async def run(url: str) -> Any:
        return made(ran)

    outcome = asyncio.run(guarded().acall("fetch", FETCH, run=run))
    assert outcome.result is None
    assert outcome.error is not None
    assert not ran


def test_honest_a_list_of_what_a_generator_gives_is_a_result() -> None:
    ran: list[str] = []
    outcome = guarded().call("fetch", FETCH, run=lambda url: list(_numbers(ran)))
    assert outcome.for_model == '["a stranger\'s text"]'


def test_honest_an_awaitable_is_awaited_where_one_can_wait() -> None:
    ran: list[str] = []
    outcome = asyncio.run(guarded().acall("fetch", FETCH, run=lambda url: _later(ran)))
    assert outcome.result == "a stranger's text"
