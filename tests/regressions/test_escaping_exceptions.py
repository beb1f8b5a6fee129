"""Hostile objects threw exceptions out of ``propose`` and ``batch``, past the rest of the round.

A mapping that raises when it is read, a name that is a subclass of ``str`` with a ``__repr__`` of its own, ``None`` or
a dictionary in place of a call, a result whose ``__str__`` raises, and an engine that raises a ``BaseException``: each
came out of the agent loop as a foreign exception, so that honest calls of the same turn had no result at all (T17),
and some after the tool had run. Now whatever can't be read is one refused call, a result that can't be shown is
withheld with its labels still in flight, and an engine can raise what it likes and denies.
Mutations that this file catches: ``except Exception`` of ``_frozen`` or of ``observe`` left out; ``type(name) is str``
made ``isinstance``; ``BaseException`` at the border made ``Exception``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal, Outcome, ToolResult, Verdict
from tests.regressions.stage import MANIFEST, guarded, interlock


class Refuses(Mapping[str, Any]):
    """A mapping that has a key, and raises when it is asked for it."""

    def __getitem__(self, key: str) -> Any:
        raise ValueError("SECRET")

    def __iter__(self) -> Iterator[str]:
        yield "a"

    def __len__(self) -> int:
        return 1


class Text(str):
    """Text that fights back."""

    def __repr__(self) -> str:
        raise RuntimeError("SECRET")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("SECRET")

    def __hash__(self) -> int:
        raise RuntimeError("SECRET")


class Liar(str):
    """Text that says it is ``calc``, whatever it reads like."""

    def __eq__(self, other: object) -> bool:
        return other == "calc"

    def __hash__(self) -> int:
        return hash("calc")


class Fights:
    """An object whose every attribute raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("SECRET")


class Number(int):
    def __repr__(self) -> str:
        raise RuntimeError("SECRET")


def _loop() -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    arguments["a"] = arguments
    return arguments


HOSTILE: dict[str, Any] = {
    "arguments that raise": Call("calc", Refuses()),
    "arguments with text that raises": Call("calc", {"a": Text("x")}),
    "a key that raises": Call("calc", {"a": {1: 2}}),
    "a number that raises": Call("calc", {"a": Number(5)}),
    "arguments in a circle": Call("calc", _loop()),
    "an object": Call("calc", {"a": Fights()}),
    "a name that raises": Call(Text("calc"), {}),
    "a name that lies": Call(Liar("send_email"), {}),
    "a server that raises": Call("calc", {}, server=Text("")),
    "an id that raises": Call("calc", {}, id=Text("x")),
    "a name that is none": Call(None, {}),  # type: ignore[arg-type]
    "a list of arguments": Call("calc", [1]),  # type: ignore[arg-type]
    "nothing": None,
    "a dictionary": {"name": "calc", "arguments": {}},
    "a text": "calc",
    "a class": Call,
}


def _answered(outcomes: list[Outcome], ran: list[str]) -> None:
    first, middle, last = outcomes
    assert first.for_model == last.for_model == "done"
    assert len(ran) == 2
    assert middle.verdict is Verdict.DENY
    assert middle.decision.code == "invalid_call"
    assert "SECRET" not in middle.for_model + str(middle.decision)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "an id that raises"])
def test_one_hostile_call_is_refused_and_the_others_run(name: str) -> None:
    calls = [Call("calc", {}), HOSTILE[name], Call("calc", {})]
    ran: list[str] = []

    def run(tool: str, arguments: dict[str, Any]) -> str:
        ran.append(tool)
        return "done"

    _answered(guarded().batch(calls, run=run), ran)
    ran.clear()
    _answered(asyncio.run(guarded().abatch(calls, run=run)), ran)
    assert guarded().preview(HOSTILE[name]).verdict is Verdict.DENY


def test_an_id_that_raises_is_not_used() -> None:
    ticket = guarded().propose(HOSTILE["an id that raises"], Call("calc", {}))
    assert len(ticket.outcomes) == 2
    assert list(map(type, ticket.outcomes)) == [str, str]


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("SECRET")


CONTENTS: dict[str, Callable[[], Any]] = {
    "silent": Silent,
    "in a list": lambda: [Silent()],
    "in a dictionary": lambda: {"a": Silent()},
    "fights": Fights,
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("wrap", [lambda content: content, ToolResult], ids=["bare", "ToolResult"])
def test_a_result_that_cant_be_shown_is_withheld_and_its_labels_stay(name: str, wrap: Callable[..., Any]) -> None:
    guard = guarded()
    fetch = {"url": "https://page.example/"}
    outcome = guard.call("fetch", fetch, run=lambda url: wrap(CONTENTS[name]()))
    assert outcome.executed
    assert "SECRET" not in outcome.for_model
    assert "untrusted:web" in guard.conversation.exposure


def test_what_is_reported_instead_of_a_result_is_withheld() -> None:
    for nonsense in (None, 5, object(), ToolResult("x", labels=["no label"]), ToolResult("x", labels=[None])):  # type: ignore[list-item]
        guard = guarded()
        ticket = guard.propose(Call("fetch", {"url": "https://page.example/"}, id="a"))
        outcome = guard.observe(ticket, "a", nonsense)  # type: ignore[arg-type]
        assert outcome.is_error, nonsense
        assert outcome.result is None
        assert "untrusted:web" in guard.conversation.exposure


class Panic(BaseException):
    """What the embedded engine raises from another thread is no ``Exception`` either."""


@pytest.mark.parametrize("error", [Panic, RuntimeError, MemoryError, RecursionError, StopIteration, Panic("x")])
def test_an_engine_may_raise_anything_and_denies(error: Any) -> None:
    class Engine:
        name, revision, looks_at = "raises", "raises", None
        controls = interlock().engine.controls

        def evaluate(self, document: bytes) -> str:
            raise error

    guard = Interlock(manifest=MANIFEST, engine=Engine(), journal=MemoryJournal()).guard(Conversation.new())
    outcome = guard.call("calc", {}, run=lambda: "ran")
    assert not outcome.executed
    assert outcome.decision.code == "engine_error"
    later = asyncio.run(guard.acall("calc", {}, run=lambda: "ran"))
    assert later.decision.code == "engine_error"


def test_honest_what_ends_a_process_still_ends_it() -> None:
    class Engine:
        name, revision, looks_at = "ends", "ends", None
        controls = interlock().engine.controls

        def evaluate(self, document: bytes) -> str:
            raise KeyboardInterrupt

    guard = Interlock(manifest=MANIFEST, engine=Engine(), journal=MemoryJournal()).guard(Conversation.new())
    with pytest.raises(KeyboardInterrupt):
        guard.call("calc", {}, run=lambda: "ran")


def test_honest_a_mapping_that_is_no_dictionary_is_read_once() -> None:
    class Quiet(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return {"a": 1}[key]

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    outcome = guarded().call("calc", Quiet(), run=lambda a: a + 1)
    assert outcome.result == 2
