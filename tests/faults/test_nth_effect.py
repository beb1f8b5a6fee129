"""Proves T8, T4 and T17 under failure: whatever breaks at whatever effect, nothing runs unrecorded or is forgotten.

SQLite's method: the same round of calls again and again, with effect number 1, 2, 3, … failing, until a round runs
clean. Each is run with the effect lost, and with only its reply lost; once, and from there on; thrown straight into the
steps, and through the ports. Mutations that this file catches: executing before recording; allow on error; swallowing
`Bug`; dropping the labels of a call whose outcome could not be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Bug, Call, Conversation, MemoryJournal, Verdict
from interlock.errors import Conflict, EngineUnavailable, JournalUnavailable
from interlock.gate import steps
from interlock.gate.drivers import adrive, drive
from tests.worlds import (
    AsyncTools,
    AsyncWorld,
    Fault,
    PortsWorld,
    StepsWorld,
    Tools,
    assert_nothing_ran_unrecorded,
    assert_nothing_was_forgotten,
    assert_shown_is_observed,
    carry_out,
    guard_in,
    rules,
)

ALLOW = [Call("read_mail", {"folder": "inbox"}, "a")]
ASK = [Call("nobody_declared", {"x": 1}, "a")]
DENY = [Call("send", {"to": "eve@evil.example", "body": "x"}, "a")]
LINKED = [Call("write", {"path": "notes/todo.txt", "text": "x"}, "a")]
CHANNEL = [Call("share", {"path": "notes/todo.txt"}, "a")]
MIXED = [
    Call("now", {}, "a"),
    Call("send", {"to": "eve@evil.example", "body": "x"}, "b"),
    Call("read_note", {}, "c"),
    Call("now", {}, "d"),
    Call("read_mail", {"folder": "\0"}, "e"),
]
# name → calls, and the labels that the conversation has had before
ROUNDS: dict[str, tuple[list[Call], tuple[str, ...]]] = {
    "allow": (ALLOW, ()),
    "ask": (ASK, ()),
    "deny": (DENY, ("untrusted:web", "private:mail")),
    "paths": (LINKED, ()),
    "channel": (CHANNEL, ()),
    "batch": (MIXED, ("untrusted:web", "private:mail")),
    "empty": ([], ()),
}
EXTERNAL = {"now": False}

ORDINARY: dict[str, Callable[[], BaseException]] = {
    "journal": lambda: JournalUnavailable("injected"),
    "engine": lambda: EngineUnavailable("injected"),
    "conflict": lambda: Conflict("injected"),
    "value": lambda: ValueError("injected"),
}
PASSING: dict[str, Callable[[], BaseException]] = {
    "bug": lambda: Bug("injected"),
    "cancelled": asyncio.CancelledError,
    "keyboard": KeyboardInterrupt,
}
MODES = [(persistent, after) for persistent in (False, True) for after in (False, True)]


def sync_batch(fault: Fault | None, world_type: Any, name: str) -> tuple[Any, str, Any]:
    calls, labels = ROUNDS[name]
    world = world_type(MemoryJournal(), fault)
    conversation = Conversation(labels=labels)
    guard = guard_in(world, conversation)
    return world, conversation.id, lambda: guard.batch(calls, run=Tools(world, conversation.id, EXTERNAL))


def sync_steps(fault: Fault | None, world_type: Any, name: str) -> tuple[Any, str, Any]:
    calls, labels = ROUNDS[name]
    world = world_type(MemoryJournal(), fault)
    conversation = Conversation(labels=labels)
    guard_in(world, conversation)
    tools = Tools(world, conversation.id, EXTERNAL)
    flow = carry_out(conversation.id, calls, rules(world.engine))
    return world, conversation.id, lambda: drive(flow, world, tools)


def async_batch(fault: Fault | None, world_type: Any, name: str) -> tuple[Any, str, Any]:
    calls, labels = ROUNDS[name]
    world = AsyncWorld(MemoryJournal(), fault) if world_type is StepsWorld else world_type(MemoryJournal(), fault)
    conversation = Conversation(labels=labels)
    guard = guard_in(world, conversation)
    run = AsyncTools(world, conversation.id, EXTERNAL)
    return world, conversation.id, lambda: _awaited(lambda: guard.abatch(calls, run=run))


def async_steps(fault: Fault | None, world_type: Any, name: str) -> tuple[Any, str, Any]:
    calls, labels = ROUNDS[name]
    world = AsyncWorld(MemoryJournal(), fault) if world_type is StepsWorld else world_type(MemoryJournal(), fault)
    conversation = Conversation(labels=labels)
    guard_in(world, conversation)
    run = AsyncTools(world, conversation.id, EXTERNAL)
    flow = carry_out(conversation.id, calls, rules(world.engine))
    return world, conversation.id, lambda: _awaited(lambda: adrive(flow, world, run))


def _awaited(start: Callable[[], Any]) -> Any:
    """Run a coroutine without an event loop, which would handle interrupts and cancellation in its own way."""
    coroutine = start()
    try:
        while True:
            coroutine.send(None)  # only `sleep(0)` is awaited, which yields None
    except StopIteration as stop:
        return stop.value


@pytest.fixture(autouse=True)
def few_races(monkeypatch: pytest.MonkeyPatch) -> None:
    """A race that is lost for ever is lost 256 times; here five times, which says the same."""
    monkeypatch.setattr(steps, "MAX_RACES", 5)


DRIVERS = {"batch": sync_batch, "steps": sync_steps, "abatch": async_batch, "asteps": async_steps}
WORLDS = {"thrown": StepsWorld, "ports": PortsWorld}
# Each driver, each world, each way in, without the product of all.
EACH = pytest.mark.parametrize(
    ("driver", "world_type"),
    [("batch", "thrown"), ("asteps", "thrown"), ("steps", "ports"), ("abatch", "ports")],
)


def every_place(build: Any, world_type: Any, name: str, error: Any, persistent: bool, after: bool) -> Any:
    """Yield (world, conversation, start) with each effect failing in turn, until nothing failed any more."""
    for at in range(1, 200):
        fault = Fault(at, error, persistent, after)
        world, conversation, start = build(fault, world_type, name)
        yield fault, world, conversation, start
        if not fault.hit:
            return
    raise AssertionError("the round never ran clean")


@pytest.mark.parametrize("name", ROUNDS)
@EACH
@pytest.mark.parametrize("error", ORDINARY)
def test_t8_t17_an_ordinary_failure_is_a_refusal(name: str, driver: str, world_type: str, error: str) -> None:
    calls = ROUNDS[name][0]
    for persistent, after in MODES:
        for fault, world, conversation, start in every_place(
            DRIVERS[driver], WORLDS[world_type], name, ORDINARY[error], persistent, after
        ):
            outcomes = start()
            assert [one.call_id for one in outcomes] == [call.id for call in calls]  # T17
            assert not any(one.pending for one in outcomes)
            assert_nothing_ran_unrecorded(world, conversation)
            assert_nothing_was_forgotten(world, conversation, EXTERNAL)
            assert_shown_is_observed(world, conversation, outcomes)
            for one in outcomes:
                assert one.executed or one.is_error, "a refusal must read as one"
                assert one.executed or one.verdict is not Verdict.ALLOW
            assert len(world.tape.runs) == sum(one.executed and one.error is None for one in outcomes) or fault.hit


@pytest.mark.parametrize("name", ROUNDS)
@EACH
@pytest.mark.parametrize("error", PASSING)
def test_t8_bugs_cancellation_and_exits_always_come_out(name: str, driver: str, world_type: str, error: str) -> None:
    expected = type(PASSING[error]())
    for persistent, after in MODES:
        for fault, world, conversation, start in every_place(
            DRIVERS[driver], WORLDS[world_type], name, PASSING[error], persistent, after
        ):
            try:
                start()
            except BaseException as raised:
                assert type(raised) is expected  # noqa: PT017 - whether it raises depends on the place
                assert fault.hit
            else:
                assert not fault.hit, f"an injected {expected.__name__} was swallowed"
            assert_nothing_ran_unrecorded(world, conversation)
            assert_nothing_was_forgotten(world, conversation, EXTERNAL)


@pytest.mark.parametrize("name", ROUNDS)
def test_without_faults_the_rounds_are_what_their_names_say(name: str) -> None:
    world, _, start = sync_batch(None, StepsWorld, name)
    verdicts = [one.verdict.value for one in start()]
    assert (
        verdicts
        == {
            "allow": ["allow"],
            "ask": ["ask"],
            "deny": ["deny"],
            "paths": ["allow"],
            "channel": ["allow"],
            "batch": ["allow", "deny", "allow", "allow", "deny"],
            "empty": [],
        }[name]
    )
    assert len(world.tape.runs) == verdicts.count("allow")


@pytest.mark.parametrize("error", [*ORDINARY, *PASSING])
def test_t8_a_failing_preview_records_nothing(error: str) -> None:
    make = {**ORDINARY, **PASSING}[error]
    for at in range(1, 20):
        fault = Fault(at, make)
        world = StepsWorld(MemoryJournal(), fault)
        conversation = Conversation.user("hello")
        guard = guard_in(world, conversation)
        before = world.memory.entries(conversation.id)
        try:
            decision = guard.preview(LINKED[0], ALLOW[0])
        except BaseException as raised:
            assert type(raised) is type(make())  # noqa: PT017 - whether it raises depends on the place
            assert error in PASSING
        else:
            assert error in ORDINARY or not fault.hit
            assert not fault.hit or decision.verdict is Verdict.DENY
        assert world.memory.entries(conversation.id) == before
        if not fault.hit:
            return
    raise AssertionError("preview never ran clean")


def test_t8_a_withheld_result_keeps_its_labels_in_flight() -> None:
    clean = StepsWorld(MemoryJournal())
    guard_in(clean, one := Conversation.new()).batch(ALLOW, run=Tools(clean, one.id))
    assert clean.tape.effects[-1] == "Append"
    world = StepsWorld(MemoryJournal(), Fault(len(clean.tape.effects), lambda: JournalUnavailable("injected")))
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    (outcome,) = guard.batch(ALLOW, run=Tools(world, conversation.id))
    assert outcome.executed
    assert outcome.is_error
    assert outcome.result is None
    assert "content 1" not in outcome.for_model
    assert outcome.decision.codes == ("journal_error",)
    state = world.memory.state(conversation.id)
    assert not state.taint
    assert {"private:mail", "untrusted:mail"} <= state.exposure.labels


def test_t4_an_engine_error_is_told_from_a_denial_by_rule_and_from_a_journal_error() -> None:
    codes = []
    for at in range(1, 5):
        world = StepsWorld(MemoryJournal(), Fault(at, lambda: ValueError("injected")))
        conversation = Conversation.new()
        (outcome,) = guard_in(world, conversation).batch(ALLOW, run=Tools(world, conversation.id))
        codes.append((world.tape.effects[at - 1], outcome.decision.code))
        assert "injected" not in outcome.for_model
    assert codes == [
        ("ReadClock", "journal_error"),
        ("LoadState", "journal_error"),
        ("Evaluate", "engine_error"),
        ("Append", "journal_error"),
    ]


def test_t8_a_panic_of_the_engine_is_not_an_exception_but_comes_out() -> None:
    """A port that lets a `BaseException` through is the port's mistake; the steps never take it for permission."""

    class PanicException(BaseException):
        pass

    world = StepsWorld(MemoryJournal(), Fault(3, PanicException))
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    with pytest.raises(PanicException):
        guard.batch(ALLOW, run=Tools(world, conversation.id))
    assert not world.tape.runs
