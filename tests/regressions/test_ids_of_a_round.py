"""T15, T17: a call without an id took the id of an honest call of the same turn, which was then refused as its double.

Ids were chosen from left to right: `["", "call_1"]` gave the first call `call_1`, and the second, which really carried
it, was denied; `["call_1", ""]` went well. So decisions depended on the order of the calls.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from interlock import Call, Conversation, MemoryJournal
from tests.worlds import StepsWorld, guard_in


@pytest.mark.parametrize("ids", [("", "call_1"), ("", "call_2"), ("", "", "call_1"), ("", "call_1", "call_2")])
def test_t15_an_id_that_was_given_is_never_given_away(ids: tuple[str, ...]) -> None:
    for order in permutations(ids):
        guard = guard_in(StepsWorld(MemoryJournal()), Conversation.new())
        outcomes = guard.propose(*(Call("now", {}, one) for one in order)).outcomes
        assert len(outcomes) == len(order)
        assert all(outcome.pending for outcome in outcomes.values()), order
        assert [given for one, given in zip(order, outcomes, strict=True) if one] == [one for one in order if one]
