"""Case 106: the policy fails, and failing means yes.

The engine raises, is silent, answers nothing, half of it, somebody else's answer, a status page or a coroutine. Every
one is a denial whose code says that it was a failure and not a rule, in the decision and in the journal, and no tool
runs. The honest twin answers as it should.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Call, Interlock, MemoryJournal
from interlock.errors import EngineUnavailable
from interlock.model.canonical import pack
from interlock.model.entries import Decided
from tests.cases.desk import EVIL, MANIFEST, Engine, all_allow, armed, did, entries, fresh, got, shared


class PanicException(BaseException):
    """What the engine's library throws where Python code does not expect it."""


PanicException.__module__ = "pyo3_runtime"


async def later() -> bytes:
    return all_allow()


ALL = {code: {"verdict": "allow"} for code in shared().engine.controls}
FAILURES: dict[str, Any] = {
    "an exception": RuntimeError("x"),
    "an error of ours": EngineUnavailable("x"),
    "a time-out": TimeoutError(),
    "a panic": PanicException("x"),
    "running out of memory": MemoryError(),
    "running out of stack": RecursionError(),
    "nothing": None,
    "an empty text": "",
    "an empty object": "{}",
    "true": "true",
    "null": "null",
    "an object that is no text": ALL,
    "a status page": "<html>503</html>",
    "half of it": all_allow()[:-10],
    "undefined": "<undefined>",
    "undefined as a server says it": pack({}),
    "a result in a wrapping": pack({"result": ALL}),
    "all but one": pack({code: one for code, one in ALL.items() if code != "trifecta"}),
    "one too many": pack({**ALL, "nobody": {"verdict": "allow"}}),
    "one twice": all_allow()[:-1] + b',"trifecta":{"verdict":"allow"}}',
    "a word that is no verdict": pack({**ALL, "trifecta": {"verdict": "Allow"}}),
    "no verdict": pack({**ALL, "trifecta": {}}),
    "a key too many": pack({**ALL, "trifecta": {"verdict": "allow", "reason": "x"}}),
    "a list": pack(list(ALL)),
    "more than a document": all_allow() + all_allow(),
    "bytes that are no text": b"\xff" + all_allow(),
    "a number that is none": all_allow().replace(b'"allow"', b"NaN", 1),
}


@pytest.fixture(scope="module")
def failing() -> tuple[Interlock, list[Any]]:
    """An Interlock whose engine says what stands in the list."""
    said: list[Any] = [None]
    return Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: said[0])), said


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_attack_a_failure_is_a_denial_and_says_so(failing: tuple[Interlock, list[Any]], failure: Any) -> None:
    lock, said = failing
    said[0] = failure
    guard = fresh(lock)
    ran: list[str] = []
    outcome = guard.call("calc", {"expression": "1"}, run=lambda expression: ran.append(expression))
    assert got(outcome) == ("deny", "engine_error")
    assert not outcome.decision.approvable
    assert ran == []
    decided = [one for one in entries(guard, lock.journal) if isinstance(one, Decided)]
    assert [(one.verdict, one.codes) for one in decided] == [("deny", ("engine_error",))]
    assert guard.preview(Call("calc")).code == "engine_error"


def test_attack_an_answer_that_would_have_to_be_awaited() -> None:
    guard = fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: later())))
    assert got(did(guard, "calc", {"expression": "1"})) == ("deny", "engine_error")


def test_attack_a_denial_by_rule_looks_different() -> None:
    assert got(did(armed(), "send_email", EVIL)) == ("deny", "trifecta")


def test_honest_the_same_engine_answers() -> None:
    for say in (lambda _: all_allow(), lambda _: all_allow().decode()):
        guard = fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(say)))
        assert did(guard, "calc", {"expression": "1"}).executed
    guard = fresh(Interlock(manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: later())))
    outcome = asyncio.run(guard.acall("calc", {"expression": "1"}, run=lambda expression: expression))
    assert outcome.executed
