"""Proves T17 and T12 of windows: a window never parts a call from its result, loses no message, and a summary is never
less tainted than what it covers, whatever the transcript and the limits are.

The model is a list and a set: what is shown and what is in summaries are together the whole transcript, and the labels
of a summary are the union of the covers below its end.
Mutations that this file catches: a cut inside a round; the labels of the summary before left out; a batch that begins
after what was covered; a required summary that is not raised; the backlog's bound moved by one.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import Refused, SummaryRequired
from interlock.model.digests import content_digest
from interlock.model.entries import Opened, Rewritten, RolledBack, Summarised, Transcribed
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Message, Role, ToolAnswer, ToolUse
from interlock.model.quoting import enclosed, indented
from interlock.model.state import State, apply
from interlock.model.summaries import (
    MAX_SUMMARY,
    StoredSummary,
    checked_summary,
    in_force,
    labels_of,
    rendered,
    spoken,
)
from interlock.model.transcript import Cover, unpaired
from interlock.model.windows import Plan, WindowLimits, cuts, estimated_tokens, plan
from tests.strategies import label_tuples, texts

AT = "2026-11-29T12:00:00.000000Z"


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """One exchange: text, or a round of calls whose results come in one message or in several."""
    kind = draw(st.sampled_from(["user", "assistant", "round", "round"]))
    if kind == "user":
        return [Message.user(draw(texts(8)))]
    if kind == "assistant":
        return [Message.assistant(draw(texts(8)))]
    ids = [f"{draw(st.integers(0, 3))}-{place}" for place in range(draw(st.integers(1, 3)))]
    use = Message.assistant("", *(ToolUse(one, "fetch", {}) for one in ids))
    if draw(st.booleans()):
        return [use, Message(Role.TOOL, tuple(ToolAnswer(one, "x") for one in ids))]
    return [use, *(Message(Role.TOOL, (ToolAnswer(one, draw(texts(8))),)) for one in ids)]


transcripts = st.lists(rounds(), max_size=12).map(lambda found: [one for part in found for one in part])
limits = st.builds(
    WindowLimits,
    messages=st.integers(4, 12),
    recent=st.integers(1, 4),
    backlog=st.integers(0, 5),
    batch=st.integers(1, 6),
    tokens=st.sampled_from([10, 60, 10_000]),
    batch_tokens=st.sampled_from([10, 60, 10_000]),
)


@given(messages=transcripts)
def test_t17_no_cut_parts_a_call_from_its_result(messages: list[Message]) -> None:
    assert not unpaired(messages)
    for place in cuts(messages):
        assert not unpaired(messages[:place])
        assert not unpaired(messages[place:])
    whole = [place for place in range(len(messages) + 1) if not unpaired(messages[:place]) | unpaired(messages[place:])]
    assert list(cuts(messages)) == whole  # and every place that parts nothing is one


@given(messages=transcripts, limit=limits)
def test_t17_t12_step_by_step_until_nothing_is_due(messages: list[Message], limit: WindowLimits) -> None:
    covered, passes = 0, 0
    while True:
        now = plan(messages, covered, limit)
        shown = messages[now.start :]
        assert now.start == covered  # whatever is in no summary is shown
        assert not unpaired(shown)
        if now.batch is None:
            break
        first, end = now.batch
        assert first == covered < end < len(messages), "a batch goes on where the last one ended, and leaves something"
        assert not unpaired(messages[:end])
        own = cuts(messages, covered)
        if end != own[1]:  # more than one unit: then within the bounds
            assert end - first <= limit.batch
            assert estimated_tokens(messages[first:end]) <= limit.batch_tokens
        covered, passes = end, passes + 1
        assert passes <= len(messages)
    many = len(shown) > limit.messages or estimated_tokens(shown) > limit.tokens
    if many:  # only a round that can't be parted is left
        assert len(cuts(messages, covered)) <= 2
    else:
        assert not now.required


@given(messages=transcripts, limit=limits)
def test_what_is_required_is_raised_and_nothing_else(messages: list[Message], limit: WindowLimits) -> None:
    now = plan(messages, 0, limit)
    tokens = estimated_tokens(messages)
    assert now.required == (len(messages) > limit.messages + limit.backlog or tokens > limit.tokens)
    assert (now.batch is not None or bool(now.why)) == (len(messages) > limit.messages or tokens > limit.tokens)
    if not now.required:
        now.check()
        return
    with pytest.raises(SummaryRequired) as raised:
        now.check()
    assert (raised.value.first, raised.value.end) == (now.batch or (0, 0))


@pytest.mark.parametrize("wrong", [{"messages": 0}, {"recent": 0}, {"backlog": -1}, {"recent": 61}, {"batch": 0}])
def test_limits_are_finite_and_fit(wrong: dict[str, int]) -> None:
    with pytest.raises(Refused):
        WindowLimits(**wrong)


def test_a_plan_of_nothing() -> None:
    assert plan([], 0, WindowLimits()) == Plan(0)
    assert cuts([]) == (0,)


def test_t17_somebody_who_speaks_in_the_middle_of_a_round_does_not_part_it() -> None:
    use, answer = Message.assistant("", ToolUse("1", "fetch", {})), Message(Role.TOOL, (ToolAnswer("1", "x"),))
    assert cuts([use, Message.user("hm"), answer, Message.user("a")]) == (0, 3, 4)


def test_an_open_round_is_never_summarised() -> None:
    messages = [Message.user("a"), Message.assistant("", ToolUse("1", "fetch", {}))]
    assert cuts(messages) == (0, 1)


# --- labels -----------------------------------------------------------------------------------------------------------

covers: st.SearchStrategy[Cover] = st.one_of(label_tuples(max_size=3), label_tuples(max_size=2), st.none())


@given(found=st.lists(covers, max_size=10), ends=st.lists(st.integers(1, 4), max_size=6))
def test_t12_a_summary_of_summaries_has_the_labels_of_all_that_it_covers(found: list[Cover], ends: list[int]) -> None:
    previous: StoredSummary | None = None
    covered = 0
    for step in ends:
        end = min(len(found), covered + step)
        previous = StoredSummary(end, "text", labels_of(previous, found[covered:end]))
        covered = end
        below = {one for cover in found[:covered] for one in (EVERY_LEG if cover is None else cover)}
        assert set(previous.labels) == below
        assert previous.untrusted == any(one.startswith("untrusted:") for one in below)


@given(
    steps=st.lists(st.tuples(st.integers(0, 9), label_tuples(max_size=2), st.booleans()), max_size=8),
    before=label_tuples(max_size=2),
)
def test_t12_t2_the_fold_never_forgets_what_a_summary_carried(
    steps: list[tuple[int, tuple[Label, ...], bool]], before: tuple[Label, ...]
) -> None:
    state = apply(State(), Opened(AT, "c-1", labels=before))
    carried: set[Label] = set()
    for covered, labels, anew in steps:
        former = state.summary
        state = apply(state, Summarised(AT, covered, labels, content_digest(f"{covered}{labels}"), 1, anew))
        assert {*before, *labels, *carried} <= state.taint.labels
        assert state.summary is not None
        if former is None or anew or covered > former.covered:
            carried |= set(labels)
            assert state.summary.covered == covered
            assert carried <= set(state.summary.labels)
        else:
            assert state.summary == former  # overtaken; its labels are in the taint


def test_t12_what_is_no_longer_there_is_in_no_summary() -> None:
    state = apply(State(), Opened(AT, "c-1"))
    summed = apply(state, Summarised(AT, 4, (Label("untrusted:web"),), content_digest("x"), 1))
    for gone in (Rewritten(AT, 6, 6), RolledBack(AT, 6, 3, 3), RolledBack(AT, 6, 9, 3), Transcribed(AT, 1, 3, ())):
        after = apply(summed, gone)
        assert after.summary is None
        assert "untrusted:web" in after.taint
    for kept in (RolledBack(AT, 6, 4, 4), Transcribed(AT, 1, 4, ())):
        assert apply(summed, kept).summary == summed.summary


def test_t12_only_the_text_that_is_on_record_is_in_force() -> None:
    web = (Label("untrusted:web"),)
    stored = StoredSummary(4, "text", ())
    state = apply(apply(State(), Opened(AT, "c-1")), Summarised(AT, 4, web, stored.content, 4))
    found = in_force(state, stored)
    assert found == StoredSummary(4, "text", web)  # a record of fewer labels does not count
    for other in (None, StoredSummary(4, "other", web), StoredSummary(3, "text", web)):
        assert in_force(state, other) is None
    assert in_force(State(), stored) is None


@pytest.mark.parametrize("wrong", [None, "", "  ", b"text", 3, "x" * (MAX_SUMMARY + 1), ["x"], "a\0"])
def test_what_is_no_summary(wrong: object) -> None:
    with pytest.raises(Refused):
        checked_summary(wrong)


def test_the_system_role_is_in_no_window() -> None:
    messages = [Message.system("be careful"), Message.user("hello")]
    assert spoken(messages, [(), None]) == ((messages[1],), (None,))


@given(messages=transcripts)
def test_a_record_holds_every_text(messages: list[Message]) -> None:
    record = rendered("before", messages)
    assert all(indented(one.text) in record for one in messages if one.role is not Role.TOOL)
    roles = ("(earlier summary) ", "(user", "(assistant", "(tool", "(system")
    lines = record.splitlines()
    assert all(one.startswith((*roles, "  ")) for one in lines)
    # No text begins a line in another role's name: there is one such line for each block, and one for the summary.
    assert sum(one.startswith(roles) for one in lines) == 1 + sum(len(one.blocks) for one in messages)


# --- marks ------------------------------------------------------------------------------------------------------------

MARK = "0123456789abcdef0123456789abcdef"


@given(text=texts(60) | st.sampled_from([MARK, f"[/{MARK}]", MARK.upper(), f"a{MARK}b"]))
def test_t12_a_text_can_not_end_its_own_quotation(text: str) -> None:
    if MARK in text.casefold():
        with pytest.raises(Refused):
            enclosed(text, MARK, what="Notes")
        return
    shown = enclosed(text, MARK, what="Notes")
    assert shown.count(f"[/{MARK}]") == 1
    assert shown.endswith(f"\n{text}\n[/{MARK}]")


@pytest.mark.parametrize("mark", ["", "short", "x" * 31, "]" * 32, "a b" * 11])
def test_a_mark_that_can_be_foreseen_is_refused(mark: str) -> None:
    with pytest.raises(Refused):
        enclosed("text", mark, what="Notes")
