"""Proves what a standing approval is: another object, weaker in all but number.

Mutations that this file catches: one that answers the trifecta; one for a receiver that nobody vouches for; one that
outlives an untrusted observation whose label was there before; one for another tool, receiver, policy or conversation.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Call, Guard, Question
from interlock.errors import Refused
from tests.approvals.desk import EVE, KIM, Sent, ToldClock, entries, locked, reader

TYPED = "Send kim@corp.example and bob@corp.example what they need."


def approved(guard: Guard, arguments: dict[str, Any] = KIM) -> Question:
    question = guard.propose(Call("send", arguments, "a")).questions["a"]
    guard.answer(question.id, "approve")
    assert guard.propose(Call("send", arguments, "b")).allowed
    return question


def standing(**options: Any) -> tuple[Any, Guard, ToldClock]:
    clock = ToldClock()
    lock = locked(clock=clock, manifest=_plain(), **options)
    guard = reader(lock, TYPED)
    guard.stand(approved(guard), seconds=300, by="kim")
    return lock, guard, clock


def _plain() -> Any:
    from interlock import Manifest
    from tests.approvals.desk import TOOLS

    send = {name: value for name, value in TOOLS["send"].items() if name != "defaults"}
    return Manifest.parse({"version": 1, "tools": {**TOOLS, "send": send}})


def goes(guard: Guard, arguments: dict[str, Any], name: str = "send") -> bool:
    return bool(guard.propose(Call(name, arguments, "x")).allowed)


def test_it_lets_the_tool_send_there_again_and_nowhere_else() -> None:
    lock, guard, _ = standing()
    for body in ("one", "two", "three"):
        assert goes(guard, {**KIM, "body": body})
    assert not goes(guard, {**KIM, "to": "bob@corp.example"})
    assert not goes(guard, {**KIM, "bcc": "bob@corp.example"})
    assert not goes(guard, {**KIM, "x": "unclassified"})
    assert not goes(guard, {"url": "https://corp.example/"}, "fetch")
    consumed = [one for one in entries(lock, guard) if one.kind == "consumed"]
    assert [one.question[:2] for one in consumed] == ["q-", "s-", "s-", "s-"]


@pytest.mark.parametrize(
    "way", ["observed", "repeated", "admitted", "failed", "expiry", "rewind", "policy", "voided", "fork"]
)
def test_its_end(way: str) -> None:
    if way == "repeated":
        clock = ToldClock()
        lock = locked(clock=clock, manifest=_plain(), settings={"leak_guard": "ask"})
        guard = reader(lock, TYPED)
        guard.call("read_page", {}, run=Sent())  # the label is there before the question
        guard.stand(approved(guard), seconds=300)
        assert goes(guard, {**KIM, "body": "one"})
        guard.call("read_page", {}, run=Sent())
    else:
        lock, guard, clock = standing()
    if way == "observed":
        guard.call("read_page", {}, run=Sent())
    elif way == "admitted":
        guard.admit("x", labels=["untrusted:web"], source="x")
    elif way == "failed":

        def fails() -> None:
            raise OSError("words of a stranger")

        guard.call("read_page", {}, run=fails)
    elif way == "expiry":
        clock.jump(seconds=301)
    elif way == "rewind":
        guard.conversation.rewrite([])
    elif way == "policy":
        guard = locked(journal=lock.journal, clock=clock, manifest=_plain(), settings={"leak_guard": "ask"}).guard(
            guard.conversation
        )
    elif way == "voided":
        from interlock.model.entries import Voided

        (name,) = guard.conversation.state.standing
        guard.conversation.record(Voided(clock.now().isoformat(), name, "by the operator"))
    elif way == "fork":
        guard = lock.guard(guard.conversation.fork())
    assert not goes(guard, {**KIM, "body": "again"})


def test_what_it_is_not_given_for() -> None:
    lock = locked(manifest=_plain(), settings={"leak_guard": "ask", "trifecta": "ask"})
    guard = reader(lock, TYPED)
    with pytest.raises(Refused, match="vouches"):
        guard.stand(approved(guard, EVE), seconds=60)
    waiting = guard.propose(Call("send", KIM, "a")).questions["a"]
    with pytest.raises(Refused, match="not approved"):
        guard.stand(waiting, seconds=60)
    guard.answer(waiting.id, "refuse")
    with pytest.raises(Refused, match="not approved"):
        guard.stand(waiting, seconds=60)
    for seconds in (0, -1, 86_401, float("nan")):
        with pytest.raises(Refused, match="24 hours"):
            guard.stand(waiting, seconds=seconds)


def test_it_never_answers_the_trifecta() -> None:
    """The receiver was typed, so the trifecta is silent; once it would speak, the approval is void anyway, and a
    standing approval that names it can't be written."""
    from interlock.model.entries import Stood
    from interlock.model.standing import NEVER, NONE_STANDING, applied

    lock, guard, _ = standing()
    (stood,) = [one for one in entries(lock, guard) if isinstance(one, Stood)]
    assert "trifecta" not in stood.codes
    assert applied(NONE_STANDING, stood, guard.conversation.id)
    for code in NEVER:
        from dataclasses import replace

        assert not applied(NONE_STANDING, replace(stood, codes=(code,)), guard.conversation.id)
    guard.admit("x", labels=["untrusted:web"], source="https://evil.test/")
    outcome = guard.propose(Call("send", {**EVE}, "y")).outcomes["y"]
    assert outcome.verdict.value == "ask"
