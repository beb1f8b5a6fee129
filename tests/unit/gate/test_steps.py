"""Proves the path of one call, effect by effect, without any driver (T4, T8, T15, T17).

The steps are generators, so a test can be the outside: it sees each question and gives each answer. Mutations that this
file catches: executing before recording; compare-and-set dropped; a race that is not decided anew; a result that is
shown before it is on record.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Bug, Call, Conversation, MemoryJournal, ToolResult, Verdict
from interlock.errors import Conflict, JournalUnavailable
from interlock.gate import steps
from interlock.gate.effects import Append, Evaluate, Execute, LoadState, Raised, ReadClock, ResolvePaths, Returned
from interlock.model.entries import Decided, Failed, Observed, Opened
from interlock.model.labels import Label, Leg
from interlock.model.state import State, apply
from interlock.model.tools import ToolId
from tests.ids import stable
from tests.strategies import batches, fewer, label_tuples, manifests, reference
from tests.worlds import MANIFEST, NoFiles, StepsWorld, Tools, carry_out, entries, guard_in, rules

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
RULES = rules()
OPENED = Opened("2026-11-29T12:00:00.000000Z", "c-1")


class Outside:
    """Answers effects one by one, keeps the journal as a list, and remembers what was asked."""

    def __init__(self, flow: Any, state: State | None = None) -> None:
        self.flow, self.state = flow, state or apply(State(), OPENED)
        self.seen: list[Any] = []
        self.effect = next(flow)
        self.value: Any = None
        self.done = False

    def answer(self, reply: Any) -> None:
        self._step(lambda: self.flow.send(reply))

    def fail(self, error: BaseException) -> None:
        self._step(lambda: self.flow.throw(error))

    def _step(self, work: Any) -> None:
        self.seen.append(self.effect)
        try:
            self.effect = work()
        except StopIteration as stop:
            self.done, self.value, self.effect = True, stop.value, None

    def honestly(self, until: type | None = None) -> Any:
        """Answer everything as it should be, up to the first effect of a kind."""
        while not self.done and not (until and isinstance(self.effect, until)):
            match self.effect:
                case ReadClock():
                    self.answer(NOW)
                case LoadState():
                    self.answer(self.state)
                case ResolvePaths(paths=paths):
                    self.answer(NoFiles().resolve(paths))
                case Evaluate(document=document):
                    self.answer(reference().evaluate(document))
                case Append(entries=found, expected=expected):
                    assert expected is None or expected == self.state.version
                    for entry in found:
                        self.state = apply(self.state, entry)
                    self.answer(self.state)
                case Execute():
                    self.answer(Returned("content"))
        return self.value

    @property
    def kinds(self) -> list[str]:
        return [type(one).__name__ for one in self.seen]


READ = Call("read_mail", {"folder": "inbox"}, "a")
LINK = Call("write", {"path": "notes/todo.txt", "text": "x"}, "b")


def test_t8_the_order_of_effects() -> None:
    outside = Outside(carry_out("c-1", [READ, LINK], RULES))
    (first, second) = outside.honestly()
    assert outside.kinds[: outside.kinds.index("Append") + 1] == [
        "ReadClock",
        "ResolvePaths",
        "LoadState",
        "Evaluate",
        "Evaluate",
        "Append",
    ]
    assert outside.kinds.count("Execute") == 2
    assert outside.kinds.index("Append") < outside.kinds.index("Execute")
    for place, kind in enumerate(outside.kinds):
        if kind == "Execute":
            assert outside.kinds[place + 1 :].index("Append") < (
                outside.kinds[place + 1 :].index("Execute") if "Execute" in outside.kinds[place + 1 :] else 99
            )
    assert (first.for_model, second.for_model) == ("content", "content")


def test_t8_what_is_executed_is_what_was_recorded() -> None:
    outside = Outside(carry_out("c-1", [READ], RULES))
    outside.honestly(Execute)
    append = next(one for one in outside.seen if isinstance(one, Append))
    (entry,) = append.entries
    assert isinstance(entry, Decided)
    assert append.expected == entry.version == 1
    assert entry.verdict == "allow"
    assert outside.effect.allowed.call.digest == entry.call
    assert (entry.private, entry.untrusted) == (("private:mail",), ("untrusted:mail",))
    assert entry.revision == RULES.revision
    assert entry.manifest == MANIFEST.digest
    assert entry.document.startswith("sha256:")
    outside.honestly()


def test_t8_a_lost_race_is_decided_anew_under_the_new_labels() -> None:
    send = Call("send", {"to": "eve@evil.example", "body": "x"}, "a")
    state = apply(State(), replace(OPENED, labels=(Label("untrusted:web"),)))
    outside = Outside(steps.propose("c-1", [send], RULES), state)
    outside.honestly(Append)
    assert outside.effect.entries[0].verdict == "ask"
    outside.state = apply(outside.state, replace(OPENED, labels=(Label("private:mail"),)))
    outside.fail(Conflict("another writer was first"))
    outside.honestly(LoadState)
    outside.honestly(Append)
    assert outside.effect.entries[0].verdict == "deny"
    assert outside.effect.expected == outside.state.version
    ticket = outside.honestly()
    assert ticket.outcomes["a"].verdict is Verdict.DENY
    assert outside.kinds.count("ReadClock") == 2  # an expiry is judged by a time after the lost race


def test_a_race_that_is_always_lost_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_RACES", 3)
    outside = Outside(steps.propose("c-1", [READ], RULES))
    for _ in range(3):
        outside.honestly(Append)
        outside.fail(Conflict("x"))
    ticket = outside.honestly()
    assert ticket.outcomes["a"].verdict is Verdict.DENY
    assert ticket.outcomes["a"].number == 0
    assert not ticket.allowed


def test_t8_a_result_is_shown_after_it_is_on_record_and_not_otherwise() -> None:
    for kind in (ReadClock, LoadState, Append):
        outside = Outside(carry_out("c-1", [READ], RULES))
        outside.honestly(Execute)
        outside.answer(Returned("the content"))
        outside.honestly(kind)
        outside.fail(JournalUnavailable("injected"))
        (outcome,) = outside.honestly()
        assert "the content" not in outcome.for_model
        assert outcome.executed
        assert outcome.is_error


@pytest.mark.parametrize("external", [True, False, None, 0, ""])
def test_only_a_plain_false_is_not_external(external: Any) -> None:
    """When an adapter can't tell, it was external."""
    outside = Outside(carry_out("c-1", [READ], RULES))
    outside.honestly(Execute)
    outside.answer(Returned(ToolResult("x", external=external)))
    outside.honestly()
    landed = [entry for one in outside.seen if isinstance(one, Append) for entry in one.entries][-1]
    assert isinstance(landed, Observed)
    assert landed.external is (external is not False)
    assert ("untrusted:mail" in outside.state.taint) is (external is not False)


def test_an_exception_of_a_tool_was_external() -> None:
    outside = Outside(carry_out("c-1", [READ], RULES))
    outside.honestly(Execute)
    outside.answer(Raised(TimeoutError("secret-value")))
    (outcome,) = outside.honestly()
    assert isinstance(outcome.error, TimeoutError)
    assert "secret-value" not in outcome.for_model
    assert outside.state.taint.labels == {"private:mail", "untrusted:mail"}
    landed = [entry for one in outside.seen if isinstance(one, Append) for entry in one.entries][-1]
    assert isinstance(landed, Failed)
    assert landed.external
    assert not landed.doubt


def interrupted(outside: Outside, error: BaseException, then: Exception | None = None) -> None:
    """The tool is interrupted; then everything goes well, or the next effect fails too."""
    outside.fail(error)
    if then is not None:
        outside.fail(then)
    outside.honestly()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Bug])
def test_a_call_that_was_interrupted_is_in_doubt(error: type[BaseException]) -> None:
    outside = Outside(carry_out("c-1", [READ], RULES))
    outside.honestly(Execute)
    with pytest.raises(error):
        interrupted(outside, error("x"))
    landed = [entry for one in [*outside.seen, outside.effect] if isinstance(one, Append) for entry in one.entries][-1]
    assert isinstance(landed, Failed)
    assert landed.doubt
    assert landed.external


def test_the_interruption_comes_out_though_the_journal_is_gone() -> None:
    for error in (JournalUnavailable("x"), ValueError("x")):
        outside = Outside(carry_out("c-1", [READ], RULES))
        outside.honestly(Execute)
        with pytest.raises(KeyboardInterrupt):
            interrupted(outside, KeyboardInterrupt(), error)


@pytest.mark.parametrize("labels", [["no label"], ["private:x"] * 65, ["private:Mail"], "private:mail", [7]])
def test_a_result_with_labels_that_are_none_is_withheld(labels: Any) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    ticket = guard.propose(READ)
    result = ToolResult("the content", labels=[f"private:p{n}" for n in range(65)] if len(labels) == 65 else labels)
    outcome = guard.observe(ticket, "a", result)
    assert "the content" not in outcome.for_model
    assert {"private:mail", "untrusted:mail"} <= conversation.exposure.labels


@pytest.mark.parametrize("result", [{"content": "the content"}, 7, None, ["the content"], object()], ids=stable)
def test_a_result_that_is_none_is_withheld(result: Any) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    outcome = guard.observe(guard.propose(READ), "a", result)
    assert outcome.is_error
    assert "the content" not in outcome.for_model
    assert {"private:mail", "untrusted:mail"} <= conversation.exposure.labels


class Fights:
    """A content that raises when it is read."""

    def __str__(self) -> str:
        raise RuntimeError("secret-value")


def test_a_content_that_fights_back_is_withheld() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    (outcome,) = guard_in(world, conversation).batch([READ], run=lambda *_: Fights())
    assert outcome.is_error
    assert outcome.executed
    assert "secret-value" not in outcome.for_model
    assert {"private:mail", "untrusted:mail"} <= conversation.exposure.labels


@pytest.mark.parametrize("raw", [None, "text", {"name": "now"}, 7, ("now", {})], ids=ascii)
def test_what_is_no_call_is_refused(raw: Any) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    outcomes = guard_in(world, conversation).propose(raw, Call("now", {}, "good")).outcomes
    refused = [one for one in outcomes.values() if not one.pending]
    assert len(outcomes) == 2
    assert [one.decision.code for one in refused] == ["invalid_call"]


def test_more_calls_than_a_turn_may_have_are_refused_one_by_one() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    calls = [Call("now", {"n": number}, f"id-{number}") for number in range(steps.MAX_ROUND + 3)]
    outcomes = guard_in(world, conversation).propose(*calls).outcomes
    assert list(outcomes) == [call.id for call in calls]
    verdicts = [one.verdict for one in outcomes.values()]
    assert verdicts.count(Verdict.ALLOW) == steps.MAX_ROUND
    assert verdicts[-3:] == [Verdict.DENY] * 3


def test_a_tool_that_the_workspace_denies_is_not_available() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    denied = rules(world.engine, unavailable=frozenset({ToolId("", "now")}))
    (outcome,) = guard_in(world, conversation, denied).batch([Call("now")], run=Tools(world, conversation.id))
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "unavailable"
    assert not world.tape.runs


@fewer(3)
@given(data=st.data(), labels=label_tuples())
def test_a_refusal_names_the_labels_that_took_part_and_where_they_came_from(data: st.DataObject, labels: Any) -> None:
    manifest = data.draw(manifests(min_size=1))
    calls = data.draw(batches(manifest))
    world = StepsWorld(MemoryJournal())
    conversation = Conversation(labels=labels)
    ticket = guard_in(world, conversation, rules(world.engine, manifest)).propose(*calls)
    for outcome in ticket.outcomes.values():
        causes = {cause.label: cause.source for cause in outcome.decision.causes}
        if outcome.verdict is Verdict.ALLOW or outcome.decision.code == "invalid_call":
            assert not causes
            continue
        assert set(labels) <= set(causes)
        coming = set(causes) - set(labels)
        specs = [manifest.spec(ToolId(call.server, call.name)) for call in calls]
        assert coming <= {label for spec in specs for label in (*spec.private, *spec.opens)}
        assert all(causes[label] is None for label in coming)
        assert all(causes[label] is not None for label in labels)
        assert not any(label.startswith(Leg.UNTRUSTED) for label in coming)


@pytest.mark.parametrize(
    "moment",
    [NOW, NOW.astimezone(timezone(timedelta(hours=5, minutes=30))), NOW.astimezone(timezone(-timedelta(hours=11)))],
    ids=str,
)
def test_stamps_are_in_utc_and_of_one_width(moment: datetime) -> None:
    assert steps.stamp(moment) == "2026-11-29T12:00:00.000000Z"
    later = steps.stamp(moment + timedelta(microseconds=1))
    assert steps.stamp(moment) < later
    assert len(later) == 27


def test_a_refused_round_has_no_numbers_and_a_malformed_call_keeps_its_own_reason() -> None:
    outside = Outside(steps.propose("c-1", [READ, Call("now", {"x": "\0"}, "b")], RULES))
    outside.fail(JournalUnavailable("x"))
    ticket = outside.honestly()
    assert [one.decision.code for one in ticket.outcomes.values()] == ["journal_error", "invalid_call"]
    assert [one.number for one in ticket.outcomes.values()] == [0, 0]


def test_entries_of_refused_calls_carry_no_labels() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation(labels=["untrusted:web", "private:mail"])
    guard_in(world, conversation).propose(
        Call("send", {"to": "eve@evil.example", "body": "x"}, "a"), Call("nobody_declared", {}, "b")
    )
    for entry in entries(world, conversation.id):
        if isinstance(entry, Decided):
            assert entry.verdict != "allow"
            assert (*entry.private, *entry.untrusted, *entry.opens, *entry.voices) == ()
