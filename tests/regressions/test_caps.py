"""What one turn, one result or one conversation may bring had no bounds.

A model that proposed thousands of calls at once, a server that put thousands of labels on a result, and a command line
of a hundred thousand words each kept the gate busy for minutes, while every other conversation waited. Now there are
bounds, and each falls to the strict side: more calls are refused, more labels withhold the result, further categories
count as the unknown of their leg, and a command line with more pieces is treated as one that names a protected file.
Mutations that this file catches: each of ``MAX_ROUND``, ``MAX_RESULT_LABELS``, ``MAX_LABELS`` and ``MAX_PIECES`` made
endless.
"""

from __future__ import annotations

import time

import pytest

from interlock import Call, ToolResult, Verdict
from interlock.gate.steps import MAX_RESULT_LABELS, MAX_ROUND
from interlock.model.control_plane import MAX_PIECES
from interlock.model.state import MAX_LABELS
from tests.regressions.stage import call, decided, guarded


def test_the_bounds_are_what_the_documentation_says() -> None:
    assert (MAX_ROUND, MAX_RESULT_LABELS, MAX_LABELS, MAX_PIECES) == (128, 64, 256, 512)


@pytest.mark.parametrize("more", [0, 1, 400])
def test_128_calls_of_a_round_are_decided_and_the_rest_refused(more: int) -> None:
    ran: list[str] = []
    outcomes = guarded().batch([Call("calc", {})] * (128 + more), run=lambda name, arguments: ran.append(name))
    assert [outcome.executed for outcome in outcomes] == [True] * 128 + [False] * more
    assert len(ran) == 128
    assert {outcome.decision.code for outcome in outcomes[128:]} <= {"invalid_call"}
    assert len({outcome.call_id for outcome in outcomes}) == 128 + more


@pytest.mark.parametrize(("many", "shown"), [(64, True), (65, False), (5000, False)])
def test_a_result_carries_64_labels(many: int, shown: bool) -> None:
    guard = guarded()
    labels = [f"untrusted:page.{number}" for number in range(many)]
    outcome = call(guard, "get", ToolResult("a stranger's text", labels=labels), url="https://page.example/")
    assert (outcome.for_model == "a stranger's text") is shown
    if shown:
        assert set(labels) <= guard.conversation.taint.labels
    else:
        assert outcome.result is None
        assert outcome.is_error
        assert guard.conversation.state.in_flight


def test_past_256_labels_a_category_counts_as_the_unknown_of_its_leg() -> None:
    guard = guarded(labels=["private:first"])
    for number in range(5):
        guard.admit("text", labels=[f"untrusted:page{number}.{one}" for one in range(100)], source="test")
    taint = guard.conversation.taint
    assert len(taint) <= 256
    assert "private:first" in taint
    assert "untrusted:unknown" in taint.labels
    assert "untrusted:page4.99" in taint  # under the unknown of its leg, every category is there
    guard.admit("text", labels=["private:credentials"], source="test")
    assert "private:credentials" in guard.conversation.taint


def test_a_full_taint_still_takes_what_it_knows() -> None:
    guard = guarded(labels=[f"untrusted:page.{one}" for one in range(255)])
    guard.admit("text", labels=["untrusted:page.7"], source="test")
    assert "untrusted:unknown" not in guard.conversation.taint.labels


def test_a_command_line_of_too_many_pieces_is_treated_as_one_that_names_a_protected_file() -> None:
    few = " ".join(f"a{number}" for number in range(100))
    many = " ".join(f"a{number}" for number in range(100_000))
    assert "control_plane" not in decided("bash", {"command": few}).codes
    began = time.perf_counter()
    assert "control_plane" in decided("bash", {"command": many}).codes
    assert "control_plane" in decided("bash", {"command": f"{few} .bashrc"}).codes
    assert time.perf_counter() - began < 10


def test_a_protected_file_among_too_many_is_not_asked_but_denied() -> None:
    paths = ["interlock.toml", *(f"zz{number}" for number in range(600))]
    assert decided("bash", {"files": paths}).verdict is Verdict.DENY
