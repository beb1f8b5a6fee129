"""What counts as alike (T13): whole answers, remedies too; an error only an error; and never silence for consent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from interlock.errors import EngineUnavailable
from interlock.model.canonical import pack
from interlock.policy.samples import SAMPLES
from interlock.testing.agreement import Disagreement, as_scenario, compare
from tests.strategies import embedded

RAW = pack(SAMPLES["every leg"])


class Says:
    """An engine that says one thing, or raises it."""

    name, looks_at, revision = "says", None, "sha256:0"

    def __init__(self, said: Any) -> None:
        self._said, self.controls = said, embedded().controls

    def evaluate(self, document: bytes) -> bytes:
        if isinstance(self._said, Exception):
            raise self._said
        return orjson.dumps(self._said)


def whole() -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(embedded().evaluate(RAW))
    return answer


def test_t13_the_same_is_alike() -> None:
    compare(embedded(), Says(whole()), RAW)
    compare(embedded(), Says(dict(reversed(whole().items()))), RAW)


def test_t13_two_errors_are_alike() -> None:
    compare(Says(EngineUnavailable("one")), Says(EngineUnavailable("another")), RAW)
    compare(Says({}), Says(EngineUnavailable("silence is an error")), RAW)


ANSWERS = {
    "one verdict": {"trifecta": {"verdict": "allow"}},
    "no remedies": {"trifecta": {"verdict": "deny"}},
    "another order of remedies": {
        "trifecta": {"verdict": "deny", "remedies": ["new_conversation", "name_destination"]}
    },
    "remedies of one that allows": {"leak_guard": {"verdict": "allow", "remedies": ["new_conversation"]}},
    "an unknown key": {"trifecta": {"verdict": "deny", "more": 1}},
    "a control more": {"another": {"verdict": "deny"}},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_t13_anything_else_is_not(name: str) -> None:
    with pytest.raises(Disagreement):
        compare(embedded(), Says({**whole(), **ANSWERS[name]}), RAW)


@pytest.mark.parametrize("said", [EngineUnavailable("out"), {}, [], None, "allow"])
def test_t13_an_error_is_alike_to_no_answer(said: Any) -> None:
    for first, second in ((embedded(), Says(said)), (Says(said), embedded())):
        with pytest.raises(Disagreement, match="errs"):
            compare(first, second, RAW)


def test_the_scenario_of_an_error_expects_one() -> None:
    with pytest.raises(Disagreement) as found:
        compare(Says(EngineUnavailable("out")), embedded(), RAW)
    (step,) = orjson.loads(as_scenario(found.value))["stories"]["disagreement"]["steps"]
    assert (step["expect"], step["code"]) == ("deny", "engine_error")
    assert "answers" not in step
