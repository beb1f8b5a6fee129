"""What was to be erased left with an event, and something else was erased in its place.

Pointers were followed one after the other. The first element of a list taken out, the second was the first, and
``/result/codes/1`` took the third. A mask behind it met the wrong element too, and ``/result/codes/00`` was one more
name for the first.
Mutations that this file catches: elements erased in the order of the pointers; masks after erasures; the order of
numbers by their digits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interlock.model.decision_log import events
from tests.unit.test_decision_log import DECIDED

CODES = tuple(f"c{number}" for number in range(12))


def event(**changes: Any) -> dict[str, Any]:
    (found,) = events([("sha256:e", replace(DECIDED, codes=CODES))], "ana", "c-1", **changes)
    return found


@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (2, 10), (10, 2), (0, 0), (11, 3, 4)])
def test_exactly_what_was_named_is_erased(numbers: tuple[int, ...]) -> None:
    found = event(erase=[f"/result/codes/{one}" for one in numbers])
    assert found["result"]["codes"] == [code for place, code in enumerate(CODES) if place not in numbers]
    assert found["erased"] == list(dict.fromkeys(f"/result/codes/{one}" for one in numbers))


def test_a_mask_meets_what_it_names() -> None:
    found = event(erase=["/result/codes/0"], mask={"/result/codes/1": "***"})
    assert found["result"]["codes"] == ["***", *CODES[2:]]


def test_an_element_has_one_name() -> None:
    assert event(erase=["/result/codes/00"])["result"]["codes"] == list(CODES)
