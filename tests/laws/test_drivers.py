"""Proves T14: the sync and the async driver see the same effects in the same order, failures included.

Mutations that this file catches: a step that only one driver takes; an error that only one of them throws back.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from interlock import Bug, Call, Conversation, MemoryJournal, ToolResult
from interlock.errors import Conflict, EngineUnavailable, JournalUnavailable
from interlock.gate.drivers import adrive, drive
from tests.strategies import batches, fewer, label_tuples, manifests
from tests.worlds import (
    AsyncTools,
    AsyncWorld,
    Fault,
    FixedClock,
    StepsWorld,
    Tools,
    carry_out,
    entries,
    guard_in,
    rules,
)

ERRORS = {
    "journal": lambda: JournalUnavailable("x"),
    "engine": lambda: EngineUnavailable("x"),
    "conflict": lambda: Conflict("x"),
    "value": lambda: ValueError("x"),
    "bug": lambda: Bug("x"),
    "cancelled": asyncio.CancelledError,
    "keyboard": KeyboardInterrupt,
}


def faults() -> st.SearchStrategy[dict[str, Any] | None]:
    return st.none() | st.fixed_dictionaries(
        {
            "at": st.integers(1, 25),
            "error": st.sampled_from(sorted(ERRORS)),
            "persistent": st.booleans(),
            "after": st.booleans(),
        }
    )


def fault_of(values: dict[str, Any] | None) -> Fault | None:
    return values and Fault(values["at"], ERRORS[values["error"]], values["persistent"], values["after"])


def told(world: Any, conversation: str, end: Any) -> Any:
    """Everything that can be seen from outside, with the random name of the conversation left out."""
    journal = [
        {**{name: getattr(entry, name) for name in entry.__slots__}, "conversation": "", "document": ""}
        for entry in entries(world, conversation)
    ]
    return world.tape.effects, [one for one, _ in world.tape.runs], journal, end


def ended(run: Any) -> Any:
    try:
        outcomes = run()
    except BaseException as error:
        return type(error).__name__
    return [(one.call_id, one.verdict, one.decision.codes, one.executed, one.for_model) for one in outcomes]


def awaited(coroutine: Any) -> Any:
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


@fewer(2)
@given(data=st.data(), labels=label_tuples(), values=faults(), external=st.booleans())
def test_t14_the_same_effects_in_the_same_order(data: st.DataObject, labels: Any, values: Any, external: bool) -> None:
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    outside = {call.name: external for call in calls}
    seen = []
    for world_type, tools_type in ((StepsWorld, Tools), (StepsWorld, AsyncTools), (AsyncWorld, AsyncTools)):
        world = world_type(MemoryJournal(), fault_of(values))
        conversation = Conversation(labels=labels, clock=FixedClock())
        guard_in(world, conversation, rules(world.engine, manifest))
        tools = tools_type(world, conversation.id, outside)
        flow = carry_out(conversation.id, calls, rules(world.engine, manifest))
        if tools_type is Tools:
            end = ended(lambda flow=flow, world=world, tools=tools: drive(flow, world, tools))
        else:
            end = ended(lambda flow=flow, world=world, tools=tools: awaited(adrive(flow, world, tools)))
        seen.append(told(world, conversation.id, end))
    assert seen[0] == seen[1] == seen[2]


@fewer(2)
@given(data=st.data(), labels=label_tuples(), values=faults())
def test_t14_through_the_guard_too(data: st.DataObject, labels: Any, values: Any) -> None:
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    seen = []
    for synchronous in (True, False):
        world = (StepsWorld if synchronous else AsyncWorld)(MemoryJournal(), fault_of(values))
        conversation = Conversation(labels=labels, clock=FixedClock())
        guard = guard_in(world, conversation, rules(world.engine, manifest))
        if synchronous:
            end = ended(lambda guard=guard, world=world: guard.batch(calls, run=Tools(world, guard.conversation.id)))
        else:
            end = ended(
                lambda guard=guard, world=world: awaited(
                    guard.abatch(calls, run=AsyncTools(world, guard.conversation.id))
                )
            )
        seen.append(told(world, conversation.id, end))
    assert seen[0] == seen[1]


def test_t14_propose_observe_and_preview_have_twins() -> None:
    seen = []
    for synchronous in (True, False):
        world = (StepsWorld if synchronous else AsyncWorld)(MemoryJournal())
        conversation = Conversation(clock=FixedClock())
        guard = guard_in(world, conversation)
        call = Call("read_mail", {"folder": "inbox"}, "a")
        if synchronous:
            ticket = guard.propose(call)
            outcome = guard.observe(ticket, "a", ToolResult("text"))
        else:
            ticket = awaited(guard.apropose(call))
            outcome = awaited(guard.aobserve(ticket, "a", ToolResult("text")))
        assert outcome.for_model == "text"
        seen.append(told(world, conversation.id, None))
    assert seen[0] == seen[1]
