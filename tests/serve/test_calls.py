"""Proves that asking again is harmless: a call has one decision and one result, in any number of processes (T2, T9).

Mutations that it is shown to catch: the check for a decision under the same id left out; `run` that does not look at
the outcome; a second result that is taken for the first.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from interlock.errors import Tampered
from interlock.model.entries import Decided, Entry, decode
from interlock.model.state import State
from interlock.serve import shapes
from interlock.serve.callers import Caller
from interlock.serve.calls import Calls
from interlock.serve.desk import Desk
from interlock.serve.problems import Problem
from interlock.stores.memory_store import MemoryNamespace, MemoryStore
from tests.ids import stable
from tests.serve.stage import FETCH, LEAK, LOOK, READ, desk_over

ANA = Caller(principal="a", namespace="ana", rights=["decide", "speak"], token="sha256:" + "0" * 64)


def call(given: dict[str, Any], **changes: Any) -> shapes.ProposedCall:
    return shapes.ProposedCall.model_validate({**given, **changes})


def propose(desk: Desk, name: str, *calls: shapes.ProposedCall) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = desk.propose(ANA, name, calls)["calls"]
    return found


def observe(desk: Desk, name: str, one: shapes.ProposedCall, content: Any = "text", **more: Any) -> dict[str, Any]:
    result = shapes.Result(content=content, **more)
    return desk.observe(ANA, name, shapes.Observe(call=one, result=result))


def decisions(store: MemoryStore, name: str) -> list[Decided]:
    found = (decode(one.body, one.sequence) for one in store.within("ana").entries(name))
    return [one for one in found if isinstance(one, Decided)]


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[int, str, int, int, int]]:
    """(process, what, id of the call, which arguments, which result) one after the other."""
    what = st.sampled_from(["propose", "propose", "observe", "observe", "fail", "forget", "alone"])
    steps = st.tuples(st.integers(0, 1), what, st.integers(0, 3), st.sampled_from([0, 0, 1]), st.integers(0, 1))
    return draw(st.lists(steps, max_size=14))


PLACES = ("/a", "/b")


@settings(max_examples=max(20, settings.default.max_examples // 3))
@drawn(stories())
def test_a_call_is_decided_once_and_has_one_result(story: list[tuple[int, str, int, int, int]]) -> None:
    """Two processes above one store against a model that knows what was first."""
    store = MemoryStore()
    desks = [desk_over(store), desk_over(store.again())]
    name = desks[0].begin(ANA, shapes.Begin())["conversation"]
    first: dict[int, int] = {}  # id → arguments of the first proposal
    result: dict[int, int | str] = {}  # id → what came of it first
    held: set[str] = set()
    for process, what, number, variant, given in story:
        desk = desks[process]
        one = call(LOOK, id=f"c{number}", arguments={"at": PLACES[variant]})
        mine = first.get(number) == variant
        if what == "propose":
            (told,) = propose(desk, name, one)
            if number not in first:
                first[number] = variant
                assert (told["verdict"], told["run"], told["repeated"]) == ("allow", True, False)
            elif mine:
                assert (told["verdict"], told["repeated"]) == ("allow", True)
                assert told["run"] is (number not in result), "it would run twice"
            else:
                assert (told["verdict"], told["code"], told["run"]) == ("deny", "invalid_call", False)
        elif what in ("observe", "fail"):
            report: int | str = given if what == "observe" else "failed"
            if not mine:
                with pytest.raises(Problem):
                    observe(desk, name, one)
                continue
            if what == "fail":
                told = desk.observe(ANA, name, shapes.Observe(call=one, failed=True))
            else:
                told = observe(desk, name, one, f"text {given}")
            if number not in result:
                result[number] = report
                assert (told["withheld"], told["repeated"]) == (False, False)
            elif result[number] == report:
                assert (told["withheld"], told["repeated"]) == (False, True)
            else:
                assert told["withheld"] is True
                assert f"text {given}" not in told["for_model"]
        elif what == "forget":
            desks[process] = desk_over(store.again())  # another process takes its place
        else:
            desk.resume(ANA, name, shapes.Resume(alone=True))
            for one_id in first:
                result.setdefault(one_id, "in doubt")
        labels = {one["label"] for one in desks[process].inspect(ANA, name)["taint"]}
        assert held <= labels  # T2
        held = labels
        assert held >= ({"untrusted:web"} if result else set())
    assert sorted(one.call_id for one in decisions(store, name)) == sorted(f"c{number}" for number in first)


class Interleaved(MemoryNamespace):
    """Lets somebody else go first between reading the state and writing."""

    def __init__(self, store: MemoryStore, name: str, before: Any) -> None:
        super().__init__(store, name)
        self.before = before

    def append(self, conversation: str, entries: Sequence[Entry], *, expected: int | None = None) -> State:
        before, self.before = self.before, lambda: None
        before()
        return super().append(conversation, entries, expected=expected)


@pytest.mark.parametrize("known", [False, True], ids=stable)
def test_two_processes_asked_the_same_at_once(known: bool) -> None:
    """Whoever loses the race gives the winner's answer, whether or not it knew the conversation before."""
    store = MemoryStore()
    winner = desk_over(store.again())
    name = winner.begin(ANA, shapes.Begin())["conversation"]
    won: list[Any] = []

    class Racing(MemoryStore):
        def within(self, namespace: str) -> MemoryNamespace:
            return Interleaved(self, namespace, lambda: won.append(propose(winner, name, call(FETCH))))

    racing = Racing()
    racing.records = store.records
    loser = desk_over(store.again())
    if known:
        propose(loser, name, call(READ))
    loser._store = racing
    (told,) = propose(loser, name, call(FETCH))
    assert won
    assert (told["number"], told["repeated"], told["verdict"]) == (won[0][0]["number"], True, "allow")
    assert [one.call_id for one in decisions(store, name)].count("f1") == 1
    assert loser.meters.conflicts._value.get() == 1


def test_many_threads_ask_the_same() -> None:
    store = MemoryStore()
    desks = [desk_over(store.again()) for _ in range(2)]
    name = desks[0].begin(ANA, shapes.Begin())["conversation"]
    told: list[dict[str, Any]] = []
    gate = threading.Barrier(8)

    def ask(desk: Desk) -> None:
        gate.wait()
        told.extend(propose(desk, name, call(FETCH)))

    threads = [threading.Thread(target=ask, args=(desks[one % 2],)) for one in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(told) == 8
    assert {one["number"] for one in told} == {1}
    assert sum(not one["repeated"] for one in told) == 1
    assert len(decisions(store, name)) == 1


def test_a_turn_is_repeated_whole_or_not_at_all() -> None:
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin())["conversation"]
    propose(desk, name, call(FETCH), call(READ))
    again = propose(desk, name, call(FETCH), call(READ))
    assert [one["repeated"] for one in again] == [True, True]
    with pytest.raises(Problem) as told:
        propose(desk, name, call(FETCH), call(LEAK))
    assert told.value.status == 409
    assert len(decisions(store, name)) == 2


def test_a_denial_is_remembered_with_its_reasons() -> None:
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin(labels=["untrusted:web", "private:files"]))["conversation"]
    (told,) = propose(desk, name, call(LEAK))
    (again,) = propose(desk_over(store.again()), name, call(LEAK))
    assert told["verdict"] == again["verdict"] == "deny"
    assert told["codes"] == again["codes"]
    assert again["for_model"].startswith("Not done: this call was denied by the security policy. [trifecta]")
    assert [one["for_model"] for one in again["reasons"]] == [one["for_model"] for one in told["reasons"]]


def test_a_result_by_another_manifest_is_not_read_by_its_fields() -> None:
    """The labels of the decision stay, and nothing of a changed manifest takes any away."""
    from interlock import Interlock, Manifest
    from interlock.serve.meters import Meters

    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin())["conversation"]
    propose(desk, name, call(FETCH))
    propose(desk, name, call(LOOK))
    harmless = Manifest.loads(
        'version = 1\n[tools.fetch]\nreturns = []\negress = "none"\n'
        '[tools.look]\nreturns = ["untrusted:web"]\negress = "none"\nfields = { "**" = "trusted" }\n'
    )
    other = Desk(Interlock(manifest=harmless, journal=store.again()), Meters())
    observe(other, name, call(LOOK), {"title": "by a stranger"})
    assert [one["label"] for one in other.inspect(ANA, name)["taint"]] == ["untrusted:web"]
    observe(other, name, call(FETCH))
    assert other.explain(ANA, name, "f1")["outcome_labels"] == ["untrusted:web"]


def test_the_calls_are_read_from_a_chain_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that was changed between two looks is no decision that is handed on (T10)."""
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin(labels=["untrusted:web", "private:files"]))["conversation"]
    propose(desk, name, call(LEAK))
    record = store.records["ana", name]
    place = len(record.entries) - 1
    sealed = record.entries[place]
    body = sealed.body.replace(b'"verdict":"deny"', b'"verdict":"allow"')
    assert body != sealed.body
    record.entries[place] = type(sealed)(sealed.sequence, sealed.previous, body, sealed.digest)
    view = store.within("ana")
    with pytest.raises(Tampered):
        Calls().catch_up(view, name, view.state(name))
    with pytest.raises(Tampered):
        propose(desk_over(store.again()), name, call(LEAK))


def test_a_fork_has_everything_and_waits_for_outcomes() -> None:
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin(text="ask https://news.example/"))["conversation"]
    propose(desk, name, call(FETCH))
    with pytest.raises(Problem) as told:
        desk.fork(ANA, name)
    assert told.value.status == 409
    observe(desk, name, call(FETCH))
    fork = desk.fork(ANA, name)["conversation"]
    assert desk.inspect(ANA, fork)["exposure"] == ["untrusted:web"]
    assert desk.inspect(ANA, fork)["parent"] == name


def test_a_journal_that_begins_behind_its_base() -> None:
    """What was dropped is not known any more; what stands behind it is, and is verified from there."""
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin())["conversation"]
    propose(desk, name, call(LOOK))
    propose(desk, name, call(READ))
    whole = store.within("ana")
    state = whole.state(name)

    class Base:
        sequence = 2
        digest = whole.entries(name)[1].digest

    class Shortened(MemoryNamespace):
        def entries(self, conversation: str, *, after: int = 0, limit: int | None = None) -> Any:
            return super().entries(conversation, after=max(after, 2), limit=limit)

        def base(self, conversation: str) -> Base:
            return Base()

    calls = Calls()
    calls.catch_up(Shortened(store, "ana"), name, state)
    assert list(calls.decided) == ["r1"]
    Base.digest = whole.entries(name)[0].digest
    with pytest.raises(Tampered):
        Calls().catch_up(Shortened(store, "ana"), name, state)


def test_a_second_result_is_not_the_first() -> None:
    """What is reported again must be what is on record, in each of its parts."""
    store = MemoryStore()
    desk = desk_over(store)
    name = desk.begin(ANA, shapes.Begin())["conversation"]
    propose(desk, name, call(LOOK))
    assert observe(desk, name, call(LOOK), "first")["withheld"] is False
    assert observe(desk, name, call(LOOK), "first")["repeated"] is True
    for content, more in (("other", {}), ("first", {"external": False}), ("first", {"labels": ["private:new"]})):
        told = observe(desk, name, call(LOOK), content, **more)
        assert (told["withheld"], told["repeated"]) == (True, False)
    assert "private:new" in [one["label"] for one in desk.inspect(ANA, name)["taint"]]  # its labels count all the same
