"""T2, T12: what was copied while its source was poisoned came out clean.

A call that reads one artifact and writes another puts on its target what its source carries when it is decided. If
somebody writes a stranger's words into the source between the decision and the copying, the copy holds them. The result
brought their labels to the conversation that copied, but nobody put them on the target, and whoever read it later was
clean: a laundry for any page that gets two agents to work at once. Nor did the target get labels that only the result
named (`ToolResult.labels`). Both are put on what was written before the outcome is on record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Guard, ToolResult
from interlock.errors import MemoryUnavailable
from tests.cases.desk import did
from tests.cases.poisoned import PAGE, PLANT, Desk, desks, named, sends

COPY = Call("copy", {"source": "a.txt", "target": "b.txt"}, id="1")


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def poison(desk: Desk) -> None:
    assert did(desk.poisoned(), "save", {"path": "a.txt", "text": PLANT}).executed


def reads(desk: Desk) -> Guard:
    guard = desk.fresh()
    assert did(guard, "load", {"path": "b.txt"}, PLANT).executed
    return guard


@pytest.mark.parametrize("result", ["copied", ToolResult("copied", external=False), OSError("half way")], ids=repr)
def test_t12_a_source_that_is_poisoned_after_the_decision(desk: Desk, result: Any) -> None:
    guard = desk.fresh()
    ticket = guard.propose(COPY)
    poison(desk)
    guard.observe(ticket, "1", result)
    assert PAGE in named(sends(reads(desk)))


def test_t12_a_source_that_is_poisoned_while_it_is_copied(desk: Desk) -> None:
    assert desk.fresh().call("copy", COPY.arguments, run=lambda **_: poison(desk)).executed
    assert PAGE in named(sends(reads(desk)))


def test_t12_a_copy_that_is_cancelled(desk: Desk) -> None:
    def run(**_: Any) -> None:
        poison(desk)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.fresh().call("copy", COPY.arguments, run=run)
    assert PAGE in named(sends(reads(desk)))


def test_t12_labels_that_only_the_result_names(desk: Desk) -> None:
    writer = desk.fresh()
    outcome = writer.call(
        "save", {"path": "b.txt", "text": "x"}, run=lambda **_: ToolResult("saved", labels=("untrusted:web",))
    )
    assert outcome.executed
    guard = reads(desk)
    assert "untrusted:web" in guard.conversation.taint
    assert named(sends(guard)).startswith(f"save of {writer.conversation.id}")
    assert guard.conversation.state.deafening  # nobody said whose words they are


def test_a_copy_that_can_not_be_labelled_shows_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = desk.fresh()
    ticket = guard.propose(COPY)
    poison(desk)

    def full(*_: Any, **__: Any) -> None:
        raise MemoryUnavailable("disk full")

    monkeypatch.setattr(desk.artifacts, "label", full)
    assert PLANT not in guard.observe(ticket, "1", PLANT).for_model
    assert guard.conversation.state.in_flight  # and what it may have brought still counts


def test_honest_nothing_new_writes_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second record for each write would be one more wait for a disk; and what the conversation learnt meanwhile is
    not in what it had written before."""
    guard = desk.fresh()
    ticket = guard.propose(COPY)
    guard.admit("a page", labels=["untrusted:web"], source=PAGE)
    written: list[Any] = []
    label = desk.artifacts.label
    monkeypatch.setattr(desk.artifacts, "label", lambda *a, **k: written.append(a) or label(*a, **k))
    guard.observe(ticket, "1", "copied")
    assert not written
    assert not reads(desk).conversation.taint
