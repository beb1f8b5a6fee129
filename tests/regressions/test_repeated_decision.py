"""T2: an entry that gives a number again took the labels of the first call with it.

`in_flight` was a dictionary by number, and a second `Decided` under one number replaced the first: its labels left the
exposure and never entered the taint. A journal written by two versions, restored badly or merged can hold such entries,
and the fold must only ever add.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.model.digests import digest
from interlock.model.entries import Decided, Failed, Observed
from interlock.model.labels import Label
from interlock.model.state import State, apply

AT = "2026-11-29T12:00:00.000000Z"


def decided(call: bytes, **labels: Any) -> Decided:
    return Decided(AT, 1, "a", "", "x", digest("call", call), "allow", (), 0, **labels)


@pytest.mark.parametrize("leg", ["private", "untrusted", "opens"])
@pytest.mark.parametrize("call", [b"same", b"another"])
def test_t2_a_second_decision_under_one_number_forgets_nothing(leg: str, call: bytes) -> None:
    label = Label({"private": "private:mail", "untrusted": "untrusted:web", "opens": "egress:share"}[leg])
    state = apply(apply(State(), decided(b"same", **{leg: (label,)})), decided(call))
    assert label in state.exposure


@pytest.mark.parametrize("failed", [True, False])
def test_t2_nor_does_it_when_the_outcome_comes(failed: bool) -> None:
    state = apply(State(), decided(b"one", private=(Label("private:mail"),)))
    state = apply(state, decided(b"two", opens=(Label("egress:share"),)))
    end = Failed(AT, 1, False, "ValueError") if failed else Observed(AT, 1, False, digest("content", b""), 0)
    state = apply(state, end)
    assert {"private:mail", "egress:share"} <= state.exposure.labels
