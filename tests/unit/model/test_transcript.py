"""Proves T17 and T2 of transcripts: pairs stay together, covers never become less, everything ever said is found.

Mutations that this file catches: text put between calls and results; the prompt of a barge-in removed with its results;
a prompt that nobody typed removed; a message that moved and stands twice keeps a cover; a folded text covered by less
than both; what a rewrite dropped left out of everything that was said; folded text counted twice.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Message
from interlock.errors import Refused
from interlock.model.labels import Label
from interlock.model.messages import Role, Text, ToolAnswer, ToolUse
from interlock.model.transcript import (
    Cover,
    Everything,
    Transcript,
    answered,
    common,
    covers_after,
    ever,
    grew,
    open_uses,
    unpaired,
)

WEB, MAIL = Label("untrusted:web"), Label("private:mail")


def user(text: str) -> Message:
    return Message.user(text)


def said(text: str) -> Message:
    return Message.assistant(text)


def use(*ids: str) -> Message:
    return Message.assistant("", *(ToolUse(one, "t", {}) for one in ids))


def results(*ids: str) -> Message:
    return Message(Role.TOOL, tuple(ToolAnswer(one, f"result {one}") for one in ids))


def folded(message: Message, text: str) -> Message:
    return Message(message.role, (*message.blocks, Text(text)))


# --- pairs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], set()),
        ([user("x")], set()),
        ([use("a"), results("a")], set()),
        ([use("a", "b"), results("b", "a")], set()),
        ([use("a", "b"), results("a"), results("b")], set()),
        ([use("a"), results("a"), use("a"), results("a")], set()),
        ([use("a"), user("x")], {"a"}),
        ([use("a"), use("b"), results("b")], {"a"}),
        ([use("a", "b"), results("a"), user("x"), results("b")], {"b"}),
        ([results("a")], {"a"}),
        ([use("a"), results("a", "a")], {"a"}),
        ([use("a"), results("a"), results("a")], {"a"}),
        ([use("a", "a"), results("a")], {"a"}),
        ([use("a"), results("b"), user("x")], {"a", "b"}),
    ],
)
def test_t17_unpaired_finds_every_call_without_its_one_result(messages: list[Message], expected: set[str]) -> None:
    assert set(unpaired(messages)) == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([use("a", "b")], ["a", "b"]),
        ([use("a", "b"), results("a")], ["b"]),
        ([use("a"), results("a")], []),
        ([use("a"), user("x")], []),
        ([use("a"), results("a"), said("done")], []),
    ],
)
def test_t17_a_round_that_is_open_is_answered_and_only_then(messages: list[Message], expected: list[str]) -> None:
    assert [one.id for one in open_uses(messages)] == expected
    whole, covers = answered(tuple(messages), ((),) * len(messages), (WEB,))
    assert len(whole) == len(covers) == len(messages) + bool(expected)
    assert not open_uses(whole)
    if expected:
        assert covers[-1] == (WEB,)
        assert all(isinstance(one, ToolAnswer) and one.is_error for one in whole[-1].blocks)


# --- what the person says -------------------------------------------------------------------------------------------


def test_t17_text_is_folded_where_it_may_stand() -> None:
    begun = Transcript().said("one", ())
    assert begun.messages == (user("one"),)
    assert begun.said("two", (WEB,)).messages == (folded(user("one"), "two"),)
    assert begun.said("two", (WEB,)).covers == ((WEB,),)
    round_ = begun.pushed(use("a"), (MAIL,)).pushed(results("a"), (MAIL,))
    barged = round_.said("stop", (WEB,))
    assert barged.messages[-1] == folded(results("a"), "stop")
    assert barged.covers[-1] == (MAIL, WEB)
    assert round_.pushed(said("done"), ()).said("next", ()).messages[-1] == user("next")


@pytest.mark.parametrize("told", [(), ("a",)])
def test_t17_text_stands_neither_before_nor_between_results(told: tuple[str, ...]) -> None:
    now = Transcript().pushed(use("a", "b"), ())
    if told:
        now = now.pushed(results(*told), ())
    with pytest.raises(Refused, match="push their results first"):
        now.said("x", ())


def test_t2_an_unknown_cover_stays_unknown_when_text_is_folded() -> None:
    assert Transcript((user("a"),), (None,)).said("b", (WEB,)).covers == (None,)


# --- covers after a rewrite -----------------------------------------------------------------------------------------

SOME = [user("a"), user("b"), said("a"), use("x"), results("x"), folded(user("a"), "b"), folded(results("x"), "b")]
lists = st.lists(st.sampled_from(SOME), max_size=6)
some_covers = st.none() | st.sampled_from([(), (WEB,), (MAIL,), (MAIL, WEB)])


@given(lists, lists, st.data())
def test_t2_a_rewrite_covers_a_message_by_what_covered_it_or_by_nobody_knows(
    old: list[Message], new: list[Message], data: st.DataObject
) -> None:
    covers: list[Cover] = data.draw(st.lists(some_covers, min_size=len(old), max_size=len(old)))
    after = covers_after(old, covers, new)
    assert len(after) == len(new)
    for place, (message, cover) in enumerate(zip(new, after, strict=True)):
        if cover is not None:
            assert message in old, "a message that is new is covered by something"
            same = [covers[at] for at, other in enumerate(old) if other == message]
            assert cover in same
            assert len(set(same)) == 1 or old[: place + 1] == new[: place + 1], "which of two it was, nobody knows"


def test_t2_a_message_that_moved_keeps_its_cover_only_if_it_stands_once() -> None:
    old, covers = [user("a"), said("page"), user("b")], [(), (WEB,), (MAIL,)]
    assert covers_after(old, covers, [user("b"), said("page")]) == ((MAIL,), (WEB,))
    assert covers_after(old, covers, [user("b"), user("b")]) == (None, None)
    assert covers_after([*old, said("page")], [*covers, ()], [said("page")]) == (None,)


# --- everything ever said -------------------------------------------------------------------------------------------


def count(messages: list[Message] | tuple[Message, ...], one: Message) -> int:
    return sum(other == one for other in messages)


@given(st.lists(lists, max_size=5))
def test_nothing_that_was_ever_said_is_missing(states: list[list[Message]]) -> None:
    found = ever(states)
    for state in states:
        for message in state:
            assert any(message == one or grew(message, one) for one in found), "said, and not found"
    assert all(any(one == other for state in states for other in state) for one in found), "found, and never said"


@given(lists)
def test_a_list_that_only_grows_is_found_as_it_is(final: list[Message]) -> None:
    states = [final[:end] for end in range(len(final) + 1)]
    assert ever(states) == tuple(final)
    assert ever([final, final]) == tuple(final)


@given(lists, lists)
def test_a_rewrite_finds_each_message_as_often_as_it_ever_stood_at_once(old: list[Message], new: list[Message]) -> None:
    if len(old) == common(old, new) + 1 and len(new) > common(old, new) and grew(old[-1], new[common(old, new)]):
        return  # text that was folded into the last message; see below
    found = ever([old, new])
    if len(old) == common(old, new):
        assert found == tuple(new)
        return
    for one in {*map(repr, old), *map(repr, new)}:
        times = [sum(repr(other) == one for other in state) for state in (old, new, found)]
        assert times[2] == max(times[:2])


def test_in_order_without_duplicates() -> None:
    states = [
        [user("q"), said("a")],
        [user("q"), said("a"), user("more")],
        [user("summary"), user("more")],
        [user("summary"), user("more"), said("b")],
        [user("summary of the summary")],
    ]
    assert [one.text for one in ever(states)] == ["q", "a", "more", "summary", "b", "summary of the summary"]


def test_equal_messages_of_one_list_are_two() -> None:
    assert len(ever([[user("ok"), said("x")], [user("ok"), said("x"), user("ok")]])) == 3


def test_folded_text_makes_a_message_longer_and_no_second_one() -> None:
    barged = folded(results("a"), "stop")
    states = [[user("q")], [folded(user("q"), "more")], [folded(user("q"), "more"), use("a"), results("a")]]
    states += [[folded(user("q"), "more"), use("a"), barged]]
    assert ever(states) == (folded(user("q"), "more"), use("a"), barged)


@given(st.lists(lists, min_size=1, max_size=4))
def test_everything_knows_the_same_whether_it_is_told_step_by_step_or_at_once(states: list[list[Message]]) -> None:
    gathered, before = Everything(), list[Message]()
    for state in states:
        keep = common(before, state)
        gathered.advance(keep, state[keep:])
        before = state
    assert tuple(gathered.found) == ever(states)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (user("a"), folded(user("a"), "b"), True),
        (user("a"), user("a"), True),
        (results("x"), folded(results("x"), "b"), True),
        (said("a"), folded(said("a"), "b"), False),
        (user("a"), user("ab"), False),
        (folded(user("a"), "b"), user("a"), False),
        (user("a"), Message(Role.TOOL, (Text("a"),)), False),
    ],
)
def test_what_counts_as_grown(old: Message, new: Message, expected: bool) -> None:
    assert grew(old, new) is expected
