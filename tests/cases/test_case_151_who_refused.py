"""Case 151: a hard denial looks like one that a person could lift, and one that timed out says that the user said no.

Each outcome says who decided: a rule, a failure, a person, or nobody who should have answered. It says whether a person
could have approved it, to the model in one line and to people with the reason. The honest twin is a call that ran.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.errors import EngineUnavailable
from tests.approvals.desk import EVE, GONE, NO, YES, Person, Sent, locked, reader


class Broken:
    name = revision = "broken"
    looks_at = None

    def __init__(self, controls: Any) -> None:
        self.controls = controls

    def evaluate(self, document: bytes) -> str:
        raise EngineUnavailable(f"{len(document)} bytes were too many today")


STORIES = [
    ("person", NO, "a person refused this call", "refused by kim"),
    ("nobody", None, "nobody answered", "in time"),
    ("nobody", GONE, "nobody answered", "nobody is there"),
    ("nobody", "yes", "nobody answered", "could be asked"),
]


@pytest.mark.parametrize(("who", "answer", "told", "why"), STORIES, ids=lambda one: str(one)[:20])
def test_attack_who_it_was(who: str, answer: Any, told: str, why: str) -> None:
    outcome = reader(locked(Person(answer))).call("send", EVE, run=Sent())
    assert outcome.decision.who.value == who
    assert outcome.for_model.startswith(f"Not done: {told}")
    assert why in outcome.decision.reasons[0].for_person
    assert outcome.decision.approvable is False
    assert "user" not in outcome.for_model


def test_attack_a_rule_and_a_failure_are_told_apart() -> None:
    lock = locked(Person(YES), settings={"leak_guard": "deny"})
    outcome = reader(lock).call("send", EVE, run=Sent())
    assert (outcome.decision.who.value, outcome.decision.approvable) == ("rule", False)
    assert outcome.for_model.startswith("Not done: this call was denied by the security policy.")
    broken = locked(Person(YES), engine=Broken(lock.engine.controls), settings={})
    failed = broken.guard(reader(lock).conversation.fork()).call("send", EVE, run=Sent())
    assert failed.decision.who.value == "failure"


def test_attack_an_open_question_is_nobodys_answer_yet() -> None:
    from interlock import Call

    outcome = reader(locked()).propose(Call("send", EVE, "a")).outcomes["a"]
    assert (outcome.decision.who.value, outcome.decision.approvable) == ("nobody", True)
    assert "a person is being asked" in outcome.for_model


def test_honest_a_call_that_ran_says_who_let_it() -> None:
    guard = reader(locked(Person(YES)))
    assert guard.call("send", EVE, run=Sent()).decision.who.value == "person"
    assert guard.call("calc", {}, run=Sent()).decision.who.value == "rule"
