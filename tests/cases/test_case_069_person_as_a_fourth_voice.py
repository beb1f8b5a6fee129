"""Case 69: a person's yes and the switches disagree, and which of them wins changes with the release.

The person is the fourth voice beside the operator's setting, the project's and the operator's own control, and the
strictest of them is the answer: a yes lifts a question and nothing else, and a no stands against every permission that
was asked. All eight combinations of two rules and a person are here. The honest twin is the one where all agree.
"""

from __future__ import annotations

from itertools import product

import pytest

from tests.approvals.desk import EVE, NO, YES, Person, Sent, locked, reader

ORDER = ("ask", "deny")


@pytest.mark.parametrize(("trifecta", "leak", "yes"), list(product(ORDER, ORDER, (True, False))))
def test_every_combination(trifecta: str, leak: str, yes: bool) -> None:
    person, sent = Person(YES if yes else NO), Sent()
    guard = reader(locked(person, settings={"trifecta": trifecta, "leak_guard": leak}))
    guard.admit("a page", labels=["untrusted:web"], source="https://news.example/")
    outcome = guard.call("send", EVE, run=sent)
    asked = trifecta == leak == "ask"
    assert len(person.asked) == asked  # nobody is asked what a rule denies
    assert outcome.executed == (asked and yes)
    assert outcome.verdict.value == ("allow" if asked and yes else "deny")
    assert outcome.decision.who.value == ("person" if asked else "rule")
