"""Case 120: a payment so large that the engine takes it for a small or a negative one.

Engines keep 64 bits, or 53, and a limit of a thousand is kept by two to the sixty-fourth. Whole numbers beyond 2**53,
written as integers or as floats, are no arguments: the refusal says to pass them as text. The honest twins are the
largest number that all agree on, and one within the limit.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import regorus

from interlock import Interlock
from interlock.errors import NotCanonical
from interlock.model.canonical import parse
from tests.cases.desk import did, fresh, got, locked, mine

LIMIT = "is_number(input.call.arguments.amount)\n\tinput.call.arguments.amount <= 1000"
BEYOND = [
    2**63,
    2**64 + 1,
    2**64 + 1000,
    -(2**63) - 1,
    2**53 + 1,
    -(2**53) - 1,
    10**400,
    9007199254740994.0,
    1e300,
    -1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
]


@pytest.fixture
def lock(tmp_path: Path) -> Interlock:
    return locked(policies=[mine(tmp_path, LIMIT)])


@pytest.mark.parametrize("amount", BEYOND, ids=lambda value: repr(value)[:20])
def test_attack_a_number_beyond_is_no_argument(lock: Interlock, amount: float) -> None:
    ran: list[object] = []
    for arguments in ({"amount": amount}, {"amount": [{"x": amount}]}):
        outcome = fresh(lock).call("calc", arguments, run=lambda **given: ran.append(given))
        assert got(outcome) == ("deny", "invalid_call")
    assert ran == []


def test_attack_the_refusal_says_what_to_do(lock: Interlock) -> None:
    outcome = did(fresh(lock), "calc", {"amount": 2**63})
    assert "pass it as a string" in outcome.for_model
    assert str(2**63) not in outcome.for_model
    assert got(did(fresh(lock), "calc", {"amount": str(2**63)})) == ("deny", "mine")


@pytest.mark.parametrize("text", ["9223372036854775808", "1e400", "-1e400", "NaN", "1" * 5000, "1e16"])
def test_attack_nor_in_an_answer_or_a_stored_entry(text: str) -> None:
    with pytest.raises(NotCanonical):
        parse(f'{{"amount":{text}}}')


def test_the_shipped_engine_agrees_up_to_the_bound() -> None:
    engine = regorus.Engine()
    engine.add_policy(
        "t.rego", "package t\n\nmore := input.amount > 1000\n\nsame := input.amount\n\nnext := input.amount + 1\n"
    )
    for amount in (2**53, -(2**53), 2**53 - 1, 1000, 1001, 0):
        engine.set_input_json(json.dumps({"amount": amount}))
        assert json.loads(engine.eval_rule_as_json("data.t.more")) is (amount > 1000)
        assert json.loads(engine.eval_rule_as_json("data.t.same")) == amount
        assert json.loads(engine.eval_rule_as_json("data.t.next")) == amount + 1


def test_honest_within_the_limit(lock: Interlock) -> None:
    for amount in (1000, 999.5, 0, -(2**53)):
        assert did(fresh(lock), "calc", {"amount": amount}).executed
    assert got(did(fresh(lock), "calc", {"amount": 2**53})) == ("deny", "mine")
