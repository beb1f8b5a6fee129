"""Proves what the drivers do at their edges: a port's reply is checked, and a mistake of ours is never an outcome.

That both see the same effects is in tests/laws/test_drivers.py. Mutations that this file catches: a `Bug` of a tool
that becomes an outcome; steps that execute nothing and are made to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from interlock import Bug, Call, Conversation, Interlock, MemoryJournal, Verdict, tool
from interlock.errors import EngineUnavailable, JournalUnavailable
from interlock.gate import steps
from interlock.gate.drivers import World, aexecute, drive, execute
from interlock.gate.effects import Append, Evaluate, Execute, LoadState, ReadClock, ResolvePaths
from interlock.model.calls import freeze
from interlock.model.decisions import Decision
from interlock.model.results import Allowed
from tests.strategies import embedded, reference
from tests.worlds import MANIFEST, FixedClock, NoFiles, SaysEngine, StepsWorld, guard_in, rules


def world(**ports: Any) -> World:
    honest = {"engine": embedded(), "journal": MemoryJournal(), "clock": FixedClock(), "files": NoFiles()}
    return World(**{**honest, **ports})


def allowed() -> Allowed:
    frozen, spec = freeze(Call("now", {}, "a"), MANIFEST)
    return Allowed(1, frozen, spec, Decision(Verdict.ALLOW))


def test_no_port_executes() -> None:
    with pytest.raises(Bug):
        world().answer(Execute(allowed()))


def test_steps_that_execute_nothing_can_not_be_made_to() -> None:
    with pytest.raises(Bug):
        execute(allowed(), None)
    with pytest.raises(Bug):
        asyncio.run(aexecute(allowed(), None))


def test_a_bug_of_a_tool_is_no_outcome() -> None:
    def run(*_: Any) -> Any:
        raise Bug("injected")

    async def arun(*_: Any) -> Any:
        raise Bug("injected")

    with pytest.raises(Bug):
        execute(allowed(), run)
    for one in (run, arun):
        with pytest.raises(Bug):
            asyncio.run(aexecute(allowed(), one))


class Buggy(Mapping[str, Any]):
    """Arguments that find a mistake of ours."""

    def __getitem__(self, key: str) -> Any:
        raise Bug("injected")

    def __iter__(self) -> Any:
        return iter(["x"])

    def __len__(self) -> int:
        return 1


def test_a_bug_in_reading_a_call_comes_out() -> None:
    guard = guard_in(StepsWorld(MemoryJournal()), Conversation.new())
    with pytest.raises(Bug):
        guard.propose(Call("now", Buggy(), "a"))


EFFECTS = {
    "Evaluate": Evaluate(b"{}"),
    "LoadState": LoadState("c-1"),
    "Append": Append("c-1", (), None),
    "ReadClock": ReadClock(),
    "ResolvePaths": ResolvePaths(("a",)),
}


class Raises:
    """Any port, and every method of it raises."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        def method(*_: Any, **__: Any) -> Any:
            raise self._error

        return method


@pytest.mark.parametrize("name", EFFECTS)
@pytest.mark.parametrize("error", [OSError("secret-value"), TimeoutError(), KeyError("x"), Exception()], ids=repr)
def test_foreign_errors_are_translated_at_the_border(name: str, error: Exception) -> None:
    broken = Raises(error)
    with pytest.raises((EngineUnavailable, JournalUnavailable)) as caught:
        World(broken, broken, broken, broken).answer(EFFECTS[name])  # type: ignore[arg-type]
    assert isinstance(caught.value, EngineUnavailable) == (name == "Evaluate")
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is error


class Panic(BaseException):
    pass


@pytest.mark.parametrize("name", EFFECTS)
def test_a_panic_of_a_port_is_an_error_of_that_port(name: str) -> None:
    broken = Raises(Panic())
    with pytest.raises((EngineUnavailable, JournalUnavailable)):
        World(broken, broken, broken, broken).answer(EFFECTS[name])  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Bug], ids=lambda error: error.__name__)
def test_exits_and_bugs_pass_as_they_are(error: type[BaseException]) -> None:
    raised = error("x")
    broken = Raises(raised)
    for effect in EFFECTS.values():
        with pytest.raises(error) as caught:
            World(broken, broken, broken, broken).answer(effect)  # type: ignore[arg-type]
        assert caught.value is raised


class Gives:
    """Any port, and every method of it gives the same."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self._value


@pytest.mark.parametrize("port", ["journal", "clock", "files"])
@pytest.mark.parametrize("value", [None, True, "allow", {}, []], ids=repr)
def test_t4_a_reply_of_the_wrong_kind_refuses_the_round(port: str, value: Any) -> None:
    conversation = Conversation.new()
    honest = MemoryJournal()
    conversation.bind(honest)
    odd = World(
        **{"engine": reference(), "journal": honest, "clock": FixedClock(), "files": NoFiles(), port: Gives(value)}
    )
    calls = [Call("write", {"path": "a", "text": "x"}, "a")]
    ticket = drive(steps.propose(conversation.id, calls, rules()), odd)
    assert ticket.outcomes["a"].verdict is Verdict.DENY
    assert not ticket.allowed


def test_a_journal_that_gives_no_state_has_written_nothing() -> None:
    conversation = Conversation.new()
    with pytest.raises(JournalUnavailable):
        conversation.bind(Gives(None))  # type: ignore[arg-type]
    conversation.bind(MemoryJournal())
    conversation._journal = Gives(7)  # type: ignore[assignment]
    with pytest.raises(JournalUnavailable):
        conversation.say("text")
    assert conversation.messages == ()


def test_what_was_understood_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_UNDERSTOOD", 4)
    engine = SaysEngine(reference().controls, lambda _: b"")
    known = rules(engine)
    good = reference().evaluate(b"{}")
    for number in range(20):
        verdict, _ = known.understood(good + b" " * number)
        assert verdict is Verdict.DENY
        assert len(known._understood) <= 4


def test_an_error_of_a_wrapped_tool_is_raised_as_it_is() -> None:
    error = ValueError("x")

    @tool(returns=["private:notes"], egress="none")
    def look() -> str:
        raise error

    conversation = Conversation.new()
    with (
        Interlock(tools=[look], journal=MemoryJournal()).guard(conversation),
        pytest.raises(ValueError, match="x") as caught,
    ):
        look()
    assert caught.value is error
    assert "private:notes" in conversation.taint


class TwoDoors:
    """An engine that waits for a server: one door for those who may block, one for those who must not."""

    name, revision, looks_at = "doors", "r", None

    def __init__(self, error: Exception | None = None) -> None:
        self.controls = reference().controls
        self.used: list[str] = []
        self.error = error

    def evaluate(self, document: bytes) -> str:
        self.used.append("sync")
        return self._answer(document)

    async def aevaluate(self, document: bytes) -> str:
        self.used.append("async")
        return self._answer(document)

    def _answer(self, document: bytes) -> str:
        if self.error is not None:
            raise self.error
        return str(reference().evaluate(document))


@pytest.mark.parametrize("error", [None, ValueError("secret")], ids=["answers", "raises"])
def test_an_asynchronous_door_is_used_by_those_who_await(error: Exception | None) -> None:
    """T14: the same outcome by both; and a foreign exception is translated at both."""
    engine = TwoDoors(error)

    @tool(returns=[], egress="none")
    def look() -> str:
        return "x"

    lock = Interlock(tools=[look], engine=engine, journal=MemoryJournal())
    calls = [Call("look", {}, "a")]
    verdicts = [lock.guard(Conversation.new()).propose(*calls).outcomes["a"].decision]
    verdicts.append(asyncio.run(lock.guard(Conversation.new()).apropose(*calls)).outcomes["a"].decision)
    assert engine.used == ["sync", "async"]
    assert verdicts[0].codes == verdicts[1].codes
    assert error is None or all("ValueError" in one.reasons[0].for_person for one in verdicts)
    assert all("secret" not in str(one) for one in verdicts)
