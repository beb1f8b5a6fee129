"""Case 51: the guardrail and the tool run side by side "for latency", and the tool has run when the refusal comes.

The policy is slow and the tool is quick. Counted is what the tool did, not what was raised: it is not entered before
the decision is there and on record, in a batch, with workers, and in an event loop. The honest twin runs after it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal
from interlock.model.entries import Decided
from tests.cases.desk import EVIL, MANIFEST, Engine, did, entries, shared

SLOW = 0.02


class Watched:
    """A slow engine, and tools that note how many decisions were on record when they were entered."""

    def __init__(self) -> None:
        self.thinking = threading.Event()
        self.entered: list[tuple[str, bool, int]] = []
        self.journal = MemoryJournal()
        lock = Interlock(manifest=MANIFEST, journal=self.journal, engine=Engine(self._say))
        self.guard: Guard = lock.guard(Conversation.new())

    def _say(self, document: bytes) -> object:
        self.thinking.set()
        time.sleep(SLOW)
        self.thinking.clear()
        return shared().engine.evaluate(document)

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        allowed = [
            one for one in entries(self.guard, self.journal) if isinstance(one, Decided) and one.verdict == "allow"
        ]
        self.entered.append((name, self.thinking.is_set(), len(allowed)))
        return "ok"


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_attack_a_refused_tool_is_never_entered(watched: Watched) -> None:
    watched.guard.batch([Call("read_mail", {"query": "today"})], run=watched.run)
    watched.entered.clear()
    for workers in (1, 4):
        outcomes = watched.guard.batch(
            [Call("send_email", EVIL), Call("calc", {"expression": "1"}), Call("slack_post", {"channel": "#x"})],
            run=watched.run,
            workers=workers,
        )
        assert [outcome.executed for outcome in outcomes] == [False, True, False]
    assert [name for name, _, _ in watched.entered] == ["calc", "calc"]


def test_attack_no_tool_is_entered_while_the_policy_thinks(watched: Watched) -> None:
    calls = [Call("calc", {"expression": str(number)}) for number in range(4)]
    watched.guard.batch(calls, run=watched.run, workers=4)
    assert [thinking for _, thinking, _ in watched.entered] == [False] * 4
    # All four were decided, and on record, before the first of them was entered.
    assert [decided for _, _, decided in watched.entered] == [4] * 4


def test_attack_in_an_event_loop(watched: Watched) -> None:
    async def run(name: str, arguments: dict[str, Any]) -> str:
        return watched.run(name, arguments)

    async def story() -> list[bool]:
        await watched.guard.abatch([Call("read_mail", {"query": "today"})], run=run)
        outcomes = await watched.guard.abatch([Call("send_email", EVIL), Call("calc")], run=run, workers=4)
        return [outcome.executed for outcome in outcomes]

    assert asyncio.run(story()) == [False, True]
    assert [name for name, _, _ in watched.entered] == ["read_mail", "calc"]


def test_honest_the_tool_runs_after_the_decision(watched: Watched) -> None:
    assert did(watched.guard, "calc", {"expression": "1"}, "1").for_model == "1"
