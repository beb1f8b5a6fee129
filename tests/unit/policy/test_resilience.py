"""Proves when a server is asked again and when it is left alone: the breaker's table, the budget, the pauses.

Mutation that it is shown to catch: a breaker that lets two probes through, or that counts what was asked before it
opened; a pause without a bound.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.policy.resilience import (
    MAX_PAUSE,
    TRANSITIONS,
    Admitted,
    Breaker,
    BreakerState,
    RetryBudget,
    pause,
)


def opened(failures: int = 3, seconds: float = 1.0) -> Breaker:
    breaker = Breaker(failures, seconds)
    for _ in range(failures):
        admitted = breaker.admit(0.0)
        assert admitted
        breaker.failed(admitted, 0.0)
    assert breaker.state is BreakerState.OPEN
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(3, 1.0)
    for _ in range(10):
        for _ in range(2):
            assert not breaker.failed(breaker.admit(0.0), 0.0)  # type: ignore[arg-type]
        breaker.answered(breaker.admit(0.0))  # type: ignore[arg-type]
    assert [breaker.failed(breaker.admit(0.0), 0.0) for _ in range(3)] == [False, False, True]  # type: ignore[arg-type]
    assert breaker.admit(0.5) is None


def test_one_probe_decides_for_all() -> None:
    breaker = opened()
    probe = breaker.admit(2.0)
    assert probe
    assert probe.probe
    assert [breaker.admit(2.0) for _ in range(3)] == [None, None, None]
    breaker.answered(probe)
    assert breaker.state is BreakerState.CLOSED
    assert breaker.admit(2.0) == Admitted(probe.period + 1, probe=False)


def test_a_probe_that_fails_or_is_given_up() -> None:
    breaker = opened()
    probe = breaker.admit(2.0)
    assert probe
    assert breaker.failed(probe, 2.0)
    assert breaker.admit(3.9) is None  # twice as long this time
    probe = breaker.admit(4.6)
    assert probe
    breaker.abandoned(probe, 4.6)
    assert breaker.admit(4.6)  # nobody knows, so the next one may try


def test_what_was_asked_before_it_opened_says_nothing() -> None:
    breaker = Breaker(1, 1.0)
    old, other = breaker.admit(0.0), breaker.admit(0.0)
    assert old
    assert other
    breaker.failed(other, 0.0)
    breaker.answered(old)
    assert breaker.state is BreakerState.OPEN
    breaker.admit(9.0)
    breaker.answered(old)
    assert not breaker.failed(old, 9.0)
    breaker.abandoned(old, 9.0)
    assert breaker.state is BreakerState.HALF_OPEN


@given(st.lists(st.tuples(st.sampled_from(["answered", "failed", "abandoned", "ask"]), st.integers(0, 5)), max_size=60))
def test_it_never_stays_shut(steps: list[tuple[str, int]]) -> None:
    """Whatever happened: at most one probe is out, every move is in the table, after the longest rest one may ask."""
    breaker = Breaker(2, 1.0)
    now, out = 0.0, []
    for step, wait in steps:
        now += wait
        if step == "ask":
            found = breaker.admit(now)
            out += [found] if found else []
        elif out:
            one = out.pop(0)
            if step == "answered":
                breaker.answered(one)
            else:
                (breaker.failed if step == "failed" else breaker.abandoned)(one, now)
        assert sum(one.probe and one.period == breaker._period for one in out) <= 1
        assert (breaker.state is BreakerState.HALF_OPEN) == any(
            one.probe and one.period == breaker._period for one in out
        )
    for one in out:
        breaker.abandoned(one, now)
    assert breaker.admit(now + 21) is not None


def test_every_state_can_be_left() -> None:
    assert {state for state, _ in TRANSITIONS} == set(BreakerState) == set(TRANSITIONS.values())


def test_the_budget_ends_and_comes_back() -> None:
    budget = RetryBudget()
    assert [budget.failed() for _ in range(6)] == [True, True, True, True, False, False]
    for _ in range(30):
        budget.answered()
    assert budget.failed()
    for _ in range(1000):
        budget.answered()
    assert [budget.failed() for _ in range(5)] == [True] * 4 + [False]  # no more than it held at first


@given(st.integers(0, 2000), st.floats(0, 1))
def test_pauses_are_bounded(attempt: int, chance: float) -> None:
    assert 0 <= pause(min(attempt, 500), chance) <= MAX_PAUSE
    assert 0 <= pause(3) <= 0.16
