"""Proves T1 and T2 of the values: taint is a join-semilattice, and nothing on it, or on what holds it, takes away.

Mutations that this file catches: `join` that keeps only its right side; a later source that replaces the first; a
`remove` on the taint; a conversation that can be copied.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Conversation, Message
from interlock.errors import InterlockError
from interlock.model.labels import CLEAN, EVERY_LEG, Label, Leg, Source, Taint, categories, category_of, label, leg_of
from interlock.model.state import State
from tests.strategies import label_tuples, labels, sources, taints


@given(a=taints())
def test_t1_join_is_idempotent(a: Taint) -> None:
    assert a.join(a) == a


@given(a=taints(), b=taints())
def test_t1_join_is_commutative(a: Taint, b: Taint) -> None:
    assert a.join(b) == b.join(a)
    assert a.join(b).items == b.join(a).items


@given(a=taints(), b=taints(), c=taints())
def test_t1_join_is_associative(a: Taint, b: Taint, c: Taint) -> None:
    assert a.join(b).join(c) == a.join(b.join(c))


@given(a=taints())
def test_t1_the_empty_taint_is_neutral(a: Taint) -> None:
    assert a.join(CLEAN) == a == CLEAN.join(a)


@given(a=taints(), b=taints())
def test_t1_both_sides_are_below_their_join_and_nothing_is_invented(a: Taint, b: Taint) -> None:
    joined = a.join(b)
    assert a <= joined
    assert b <= joined
    assert joined.labels == a.labels | b.labels


@given(a=taints(), b=taints())
def test_t1_the_first_source_stays(a: Taint, b: Taint) -> None:
    joined = a.join(b)
    for one in joined:
        known = [source for source in (a.source(one), b.source(one)) if source is not None]
        assert joined.source(one) == min(known)


@given(a=taints(), b=taints())
def test_t1_equal_means_equal_items_and_hash(a: Taint, b: Taint) -> None:
    assert (a == b) == (a.items == b.items)
    if a == b:
        assert hash(a) == hash(b)


@given(items=st.lists(st.tuples(labels(), sources()), max_size=6), seed=st.randoms(use_true_random=False))
def test_t1_the_order_of_arrival_does_not_matter(items: list[Any], seed: Any) -> None:
    shuffled = list(items)
    seed.shuffle(shuffled)
    assert Taint(tuple(items)) == Taint(tuple(shuffled))


@given(a=taints())
def test_t2_copies_of_a_taint_keep_it(a: Taint) -> None:
    for other in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), dataclasses.replace(a)):
        assert other == a
        assert other.labels == a.labels


@given(a=taints(), one=labels())
def test_the_unknown_of_a_leg_answers_for_every_category(a: Taint, one: Label) -> None:
    top = Label(f"{leg_of(one).value}:unknown")
    assert (one in a) == bool({one, top} & a.labels)
    assert one in a.join(Taint.of([top], Source("t", 0, "")))


@given(found=label_tuples(max_size=5))
def test_categories_are_sorted_and_of_one_leg(found: tuple[Label, ...]) -> None:
    for leg in Leg:
        assert categories(found, leg) == sorted(category_of(one) for one in found if leg_of(one) is leg)
        assert Taint.of(found, Source("t", 0, "")).categories(leg) == categories(found, leg)


# --- T2: no way back --------------------------------------------------------------------------------------------------

SHRINKING = (
    "clear clean remove discard pop delete del drop subtract minus difference without except_ reset forget untaint"
    " declassify wipe purge set_taint set_labels sub truediv and xor setitem delitem isub iand ixor"
).split()


@pytest.mark.parametrize("kind", [Taint, State, Conversation])
def test_t2_there_is_no_word_for_less(kind: type) -> None:
    """The whole surface, private names too: no method whose name says that it takes something away."""
    for name, _ in inspect.getmembers(kind):
        bare = name.strip("_").lower()
        if name in ("__delattr__", "__init_subclass__", "__subclasshook__", "__reduce__", "__reduce_ex__"):
            continue
        parts = bare.split("_")
        assert not set(parts) & set(SHRINKING), f"{kind.__name__}.{name}"
        assert bare not in SHRINKING, f"{kind.__name__}.{name}"


@pytest.mark.parametrize("kind", [Taint, State])
def test_t2_values_are_frozen(kind: Callable[[], Any]) -> None:
    value = kind()
    for name in [field.name for field in dataclasses.fields(value)] + ["anything"]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, ())
        with pytest.raises((AttributeError, TypeError)):
            delattr(value, name)


def test_t2_the_calls_in_flight_are_read_only() -> None:
    with pytest.raises(TypeError):
        State().in_flight[1] = None  # type: ignore[index]
    assert not hasattr(State().in_flight, "pop")


@pytest.mark.parametrize("name", ["taint", "exposure", "state", "id", "messages", "namespace"])
def test_t2_a_conversation_has_no_setter(name: str) -> None:
    conversation = Conversation(labels=["private:mail"])
    with pytest.raises(AttributeError):
        setattr(conversation, name, None)
    with pytest.raises(AttributeError):
        delattr(conversation, name)
    assert "private:mail" in conversation.taint


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
        lambda one: copy.deepcopy([one])[0],
        lambda one: copy.copy(one.child("task")),
    ],
    ids=["copy", "deepcopy", "pickle", "inside a list", "copy of a child"],
)
def test_t2_a_copy_of_a_conversation_is_a_fork(copied: Callable[[Any], Any]) -> None:
    conversation = Conversation(labels=["private:mail", "untrusted:web"])
    conversation.say("write to bob@corp.example")
    held = set(conversation.exposure)
    made = copied(conversation)
    assert made.id != conversation.id
    assert made.namespace == conversation.namespace
    assert held <= set(made.taint)
    assert made.state.typed == conversation.state.typed


def test_t2_messages_that_are_dropped_take_no_label_with_them() -> None:
    conversation = Conversation.new()
    conversation.say("look", pasted=True)
    conversation.rewrite([])  # what a host that compacts does
    assert "untrusted:paste" in conversation.taint


def test_t2_a_resumed_conversation_holds_what_it_brings() -> None:
    resumed = Conversation.resumed([Message.user("hello")], EVERY_LEG)
    assert resumed.taint.labels == set(EVERY_LEG)
    assert Conversation.resumed([], resumed.taint).taint.labels == set(EVERY_LEG)
    assert not Conversation.from_messages([Message.user("hello")]).taint


# --- labels are closed strings ----------------------------------------------------------------------------------------

NOT_LABELS: list[Any] = [
    "",
    "private",
    "private:",
    ":mail",
    "Private:mail",
    "private:Mail",
    "private:mail ",
    " private:mail",
    "private:mail\n",
    "private:mail\0",
    "privat\u0435:mail",
    "private:m\u0430il",
    "other:mail",
    "private::mail",
    "private:-mail",
    "private:" + "a" * 121,
    None,
    7,
    b"private:mail",
    ["private:mail"],
    Leg.PRIVATE,
]


@pytest.mark.parametrize("text", NOT_LABELS, ids=ascii)
def test_what_is_no_label_is_refused(text: Any) -> None:
    with pytest.raises(InterlockError):
        label(text)
    with pytest.raises(InterlockError):
        Taint.of([text], Source("t", 0, ""))


@given(one=labels())
def test_a_label_is_its_leg_and_its_category(one: Label) -> None:
    assert label(f"{leg_of(one).value}:{category_of(one)}") == one


def test_membership_asks_about_labels_only() -> None:
    assert 7 not in CLEAN
    with pytest.raises(InterlockError):
        "mail" in CLEAN  # noqa: B015 - a question that can't be answered is an error, not a no
