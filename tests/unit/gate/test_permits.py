"""Proves T8 of permits: every pair of state and input is in the table or refused, and a permit serves one entry.

Mutations that this file catches: a transition too many; a permit that can be used again; a digest that is not checked.
"""

from __future__ import annotations

import contextvars
import threading
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from interlock import Bug, Call, NotPermitted
from interlock.gate.permits import TRANSITIONS, Permit, PermitInput, PermitState, enter, executing
from interlock.model.calls import freeze
from interlock.model.decisions import Decision, Verdict
from interlock.model.results import Allowed
from interlock.model.tools import ToolId
from tests.worlds import MANIFEST

# How to come to each state.
WAYS = {
    PermitState.ISSUED: [],
    PermitState.RUNNING: [PermitInput.START],
    PermitState.ENTERED: [PermitInput.START, PermitInput.ENTER],
    PermitState.SPENT: [PermitInput.START, PermitInput.FINISH],
}


def allowed(arguments: dict[str, Any] | None = None) -> Allowed:
    frozen, spec = freeze(Call("send", {"to": "bob@corp.example"} if arguments is None else arguments, "a"), MANIFEST)
    return Allowed(1, frozen, spec, Decision(Verdict.ALLOW))


def permit_in(state: PermitState) -> Permit:
    permit = Permit(allowed())
    for step in WAYS[state]:
        permit.step(step)
    assert permit.state is state
    return permit


@pytest.mark.parametrize(("state", "what"), list(product(PermitState, PermitInput)))
def test_t8_every_pair(state: PermitState, what: PermitInput) -> None:
    permit = permit_in(state)
    if (state, what) in TRANSITIONS:
        permit.step(what)
        assert permit.state is TRANSITIONS[state, what]
    else:
        with pytest.raises(NotPermitted):
            permit.step(what)
        assert permit.state is state


def test_t8_the_table_is_the_one_in_the_picture() -> None:
    assert {(state.value, what.value): end.value for (state, what), end in TRANSITIONS.items()} == {
        ("issued", "start"): "running",
        ("running", "enter"): "entered",
        ("running", "finish"): "spent",
        ("entered", "finish"): "spent",
    }
    ends = {state for state, _ in TRANSITIONS}
    assert PermitState.SPENT not in ends, "a spent permit has no way out"


@pytest.mark.parametrize("what", [PermitInput.START, PermitInput.ENTER, PermitInput.FINISH])
def test_t8_fifty_threads_and_one_transition(what: PermitInput) -> None:
    before = {PermitInput.START: PermitState.ISSUED}.get(what, PermitState.RUNNING)
    for _ in range(20):
        permit = permit_in(before)
        won, lost = run_in_threads(50, lambda permit=permit: permit.step(what))
        assert (won, lost) == (1, 49)
        assert permit.state is TRANSITIONS[before, what]


def test_t8_fifty_threads_and_one_entry() -> None:
    """All under one permit, as a tool that hands its context to a pool would be."""
    with executing(Permit(allowed())) as arguments:
        contexts = [contextvars.copy_context() for _ in range(50)]
        won, lost = run_in_threads(
            50, lambda: contexts.pop().run(lambda: enter(ToolId("", "send"), arguments) or refuse())
        )
    assert (won, lost) == (1, 49)


def refuse() -> None:
    raise NotPermitted("no permit")


def run_in_threads(count: int, work: Any) -> tuple[int, int]:
    """How many threads did it, and how many were refused."""
    start = threading.Barrier(count)
    won: list[None] = []
    lost: list[None] = []

    def once() -> None:
        start.wait()
        try:
            work()
        except NotPermitted:
            lost.append(None)
        else:
            won.append(None)

    threads = [threading.Thread(target=once) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won), len(lost)


def test_t8_a_permit_is_for_one_execution() -> None:
    permit = Permit(allowed())
    with executing(permit):
        assert permit.state is PermitState.RUNNING
        with pytest.raises(NotPermitted), executing(permit):
            raise AssertionError("entered twice")
    assert permit.state is PermitState.SPENT
    with pytest.raises(NotPermitted), executing(permit):
        raise AssertionError("entered again")


def test_t8_the_arguments_are_a_fresh_copy_each_time() -> None:
    one = allowed({"to": "bob@corp.example", "body": "x"})
    with executing(Permit(one)) as arguments:
        arguments["to"] = "eve@evil.example"
        arguments.clear()
    with executing(Permit(one)) as arguments:
        assert arguments == {"to": "bob@corp.example", "body": "x"}


def test_t8_arguments_that_are_not_those_that_were_decided_are_a_bug() -> None:
    one = allowed()
    forged = replace(one, call=replace(one.call, arguments=b'{"to":"eve@evil.example"}'))
    permit = Permit(forged)
    with pytest.raises(Bug), executing(permit):
        raise AssertionError("entered")
    assert permit.state is PermitState.ISSUED
    renamed = replace(one, call=replace(one.call, tool=ToolId("", "share")))
    with pytest.raises(Bug), executing(Permit(renamed)):
        raise AssertionError("entered")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (ToolId("", "send"), {"to": "eve@evil.example"}),
        (ToolId("", "send"), {}),
        (ToolId("", "send"), {"to": "bob@corp.example", "cc": "eve@evil.example"}),
        (ToolId("", "send"), {"to": ["bob@corp.example"]}),
        (ToolId("", "send"), {"to": "bob@corp.example\0"}),
        (ToolId("", "send"), {"to": b"bob@corp.example"}),
        (ToolId("", "send"), {"to": {"bob@corp.example"}}),
        (ToolId("", "send"), {1: "bob@corp.example"}),
        (ToolId("", "share"), {"to": "bob@corp.example"}),
        (ToolId("srv", "send"), {"to": "bob@corp.example"}),
        (ToolId("send", ""), {"to": "bob@corp.example"}),
    ],
    ids=ascii,
)
def test_t8_a_permit_opens_for_nothing_else(tool: ToolId, arguments: Any) -> None:
    permit = Permit(allowed())
    with executing(permit):
        assert not enter(tool, arguments)
        assert permit.state is PermitState.RUNNING
        assert enter(ToolId("", "send"), {"to": "bob@corp.example"})
        with pytest.raises(NotPermitted):
            enter(ToolId("", "send"), {"to": "bob@corp.example"})


def test_t8_without_a_permit_there_is_no_way_in() -> None:
    assert not enter(ToolId("", "send"), {"to": "bob@corp.example"})
    with executing(Permit(allowed())) as arguments:
        pass
    assert not enter(ToolId("", "send"), arguments)


def test_t8_another_thread_does_not_inherit_a_permit() -> None:
    seen = []
    with executing(Permit(allowed())) as arguments:
        thread = threading.Thread(target=lambda: seen.append(enter(ToolId("", "send"), arguments)))
        thread.start()
        thread.join()
    assert seen == [False]


def test_t8_a_tool_that_raises_has_spent_its_permit() -> None:
    permit = Permit(allowed())
    with pytest.raises(RuntimeError), executing(permit):
        raise RuntimeError
    assert permit.state is PermitState.SPENT
