"""Proves of pressure: a prediction only adds reasons to compact, and what a provider reported is never forgotten.

Mutations that this file is shown to catch: a prediction that overrules what was reported; a rewrite that drops the
readings, or leaves them fresh; a rate without bounds, or out of a step that is too small; a peak that shrinks; a series
that goes on under another fingerprint; payloads of images that are counted; names of tools that run into each other.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.errors import Refused
from interlock.model.messages import Image, Message, Role, Text, ToolAnswer, ToolUse
from interlock.model.pressure import (
    HIGHEST,
    LOWEST,
    SMALLEST_STEP,
    USUAL,
    Pressure,
    Reading,
    fingerprint,
    size_of,
)
from tests.integrations.provider_checks import transcripts

amounts = st.integers(0, 10**6) | st.integers(0, 5 * SMALLEST_STEP) | st.just(10**30)
prints = st.sampled_from(["", "a", "b"])
steps: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("read"), amounts, amounts),
    st.tuples(st.just("rewritten")),
    st.tuples(st.just("carry_into"), prints),
)


def after(pressure: Pressure, *done: tuple[Any, ...]) -> Pressure:
    for name, *given_ in done:
        pressure = getattr(pressure, name)(*given_)
    return pressure


pressures = st.lists(steps, max_size=5).map(lambda done: after(Pressure(), *done))


# --- reasons ----------------------------------------------------------------------------------------------------------


@given(pressure=pressures, size=amounts, limit=amounts)
def test_a_reported_size_at_the_limit_is_a_reason_whatever_the_prediction_says(
    pressure: Pressure, size: int, limit: int
) -> None:
    if pressure.last is not None and not pressure.stale and pressure.last.tokens >= limit:
        assert pressure.should_compact(size, limit)


@given(pressure=pressures, size=amounts, limit=amounts)
def test_a_reason_is_a_reported_size_or_a_predicted_one_and_nothing_else(
    pressure: Pressure, size: int, limit: int
) -> None:
    reported = pressure.last.tokens if pressure.last is not None and not pressure.stale else -1
    predicted = pressure.predict(size)
    assert pressure.should_compact(size, limit) == (max(reported, -1 if predicted is None else predicted) >= limit)


@given(pressure=pressures, size=amounts, more=amounts, limit=amounts, less=amounts)
def test_more_bytes_and_a_smaller_limit_take_no_reason_away(
    pressure: Pressure, size: int, more: int, limit: int, less: int
) -> None:
    if pressure.should_compact(size, limit):
        assert pressure.should_compact(size + more, limit)
        assert pressure.should_compact(size, min(limit, less))


@given(pressure=pressures, size=amounts, limit=amounts)
def test_without_a_reading_there_is_no_prediction_and_no_reason(pressure: Pressure, size: int, limit: int) -> None:
    assert (pressure.predict(size) is None) == (pressure.last is None)
    if pressure.last is None:
        assert not pressure.should_compact(size, limit)


# --- predictions ------------------------------------------------------------------------------------------------------


@given(pressure=pressures, size=amounts, more=amounts)
def test_a_prediction_is_monotone_within_the_bounds_and_never_negative(
    pressure: Pressure, size: int, more: int
) -> None:
    small, large = pressure.predict(size), pressure.predict(size + more)
    if small is None or large is None or pressure.last is None:
        return
    assert 0 <= small <= large
    step = size - pressure.last.size
    low, high = sorted((LOWEST * step, HIGHEST * step))
    assert max(0, pressure.last.tokens + math.ceil(low)) <= small <= max(0, pressure.last.tokens + math.ceil(high))


@given(pressure=pressures, tokens=amounts, size=amounts)
def test_at_the_size_of_the_last_reading_the_prediction_is_what_was_reported(
    pressure: Pressure, tokens: int, size: int
) -> None:
    assert pressure.read(tokens, size).predict(size) == tokens
    assert pressure.read(tokens, size).rewritten().predict(size) == tokens


@given(
    size=st.integers(0, 10**6),
    step=st.integers(SMALLEST_STEP, 10**5),
    eighths=st.integers(1, 8),
    more=st.integers(-(10**6), 10**6),
    base=st.integers(0, 10**5),
)
def test_the_rate_is_that_of_the_last_two_readings(size: int, step: int, eighths: int, more: int, base: int) -> None:
    """In both directions: after a rewrite the second of them is the smaller one."""
    far = base + -(-eighths * step // 8)
    for pressure in (
        Pressure().read(base, size).read(far, size + step),
        Pressure().read(far, size + step).rewritten().read(base, size),
    ):
        anchor = pressure.last
        assert anchor is not None
        predicted = pressure.predict(anchor.size + more)
        exact = anchor.tokens + more * (far - base) / step
        assert predicted is not None
        assert abs(predicted - max(0, exact)) < 1.001 + abs(more) / step  # the last: `far` was rounded


@pytest.mark.parametrize(
    ("grew", "rate"),
    [
        (-9000, LOWEST),
        (0, LOWEST),
        (999, LOWEST),
        (1000, LOWEST),
        (3000, Fraction(3, 8)),
        (8000, HIGHEST),
        (8001, HIGHEST),
    ],
)
def test_a_rate_that_can_not_be_is_the_nearest_that_can(grew: int, rate: Fraction) -> None:
    """An image, for example, has tokens and no bytes."""
    one = Pressure().read(10_000, 40_000).read(10_000 + grew, 48_000)
    for more in (-800, 0, 800, 10**9):
        assert one.predict(48_000 + more) == 10_000 + grew + rate * more


@given(tokens=amounts, other=amounts, size=amounts, step=st.integers(0, SMALLEST_STEP - 1), more=amounts)
def test_two_readings_that_are_too_near_say_nothing_of_a_rate(
    tokens: int, other: int, size: int, step: int, more: int
) -> None:
    one = Pressure().read(tokens, size).read(other, size + step)
    assert one.predict(size + step + more) == other + math.ceil(USUAL * more)
    assert Pressure().read(tokens, size).predict(size + more) == tokens + math.ceil(USUAL * more)


# --- the series -------------------------------------------------------------------------------------------------------


@given(pressure=pressures, done=st.lists(steps.filter(lambda one: one[0] != "carry_into"), max_size=4))
def test_the_peak_never_shrinks_within_a_series(pressure: Pressure, done: list[tuple[Any, ...]]) -> None:
    reported = [tokens for name, *rest in done if name == "read" for tokens in rest[:1]]
    assert after(pressure, *done).peak == max([pressure.peak, *reported])


@given(pressure=pressures, tokens=amounts, size=amounts)
def test_a_reading_is_remembered_and_fresh(pressure: Pressure, tokens: int, size: int) -> None:
    read = pressure.rewritten().read(tokens, size)
    assert (read.last, read.previous, read.stale) == (Reading(tokens, size), pressure.last, False)
    assert read.fingerprint == pressure.fingerprint


@given(pressure=pressures)
def test_a_rewrite_makes_stale_and_keeps_the_anchors(pressure: Pressure) -> None:
    assert pressure.rewritten() == dataclasses.replace(pressure, stale=True)
    assert pressure.rewritten().rewritten() == pressure.rewritten()


@given(pressure=pressures, name=prints)
def test_a_series_goes_on_under_its_fingerprint_only(pressure: Pressure, name: str) -> None:
    carried = pressure.carry_into(name)
    assert carried == (pressure if name == pressure.fingerprint else Pressure(fingerprint=name))
    assert carried.carry_into(name) == carried


@pytest.mark.parametrize("wrong", [-1, True, 1.0, "1", None])
def test_readings_that_are_none(wrong: Any) -> None:
    with pytest.raises(Refused, match="tokens must be an integer of at least 0"):
        Pressure().read(wrong, 1)
    with pytest.raises(Refused, match="size must be an integer of at least 0"):
        Pressure().read(1, wrong)


def test_the_story_of_one_context() -> None:
    """Ten thousand tokens in thirty thousand bytes, then a large result, then a rewrite."""
    pressure = Pressure().carry_into("f").read(10_000, 30_000).read(15_000, 50_000)
    assert pressure.predict(90_000) == 25_000
    assert not pressure.should_compact(80_000, 25_000)
    assert pressure.should_compact(90_000, 25_000)
    assert pressure.should_compact(0, 15_000)  # it was reported
    assert not pressure.rewritten().should_compact(10_000, 15_000)  # that was before the rewrite
    assert pressure.rewritten().should_compact(90_000, 25_000)
    assert pressure.rewritten().read(6_000, 14_000).peak == 15_000


# --- fingerprints and sizes -------------------------------------------------------------------------------------------

tool_lists = st.lists(st.text('ab,"[]\ud83d\ude00', max_size=3), max_size=3)
requests = st.tuples(st.text('ab"', max_size=2), st.text('ab"', max_size=2), tool_lists)


@given(one=requests, other=requests)
def test_fingerprints_are_equal_for_equal_parts_only(
    one: tuple[str, str, list[str]], other: tuple[str, str, list[str]]
) -> None:
    same = (*one[:2], sorted(one[2])) == (*other[:2], sorted(other[2]))
    assert (fingerprint(*one) == fingerprint(*other)) == same


@given(tools=tool_lists, data=st.data())
def test_the_order_of_tools_does_not_matter(tools: list[str], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(tools))
    assert fingerprint("m", "s", iter(shuffled)) == fingerprint("m", "s", tools)


def test_fingerprints_keep_their_parts_apart() -> None:
    ways = [
        ("ab", "", ()),
        ("a", "b", ()),
        ("a", "", ("b",)),
        ("", "a", ("b",)),
        ("a", "b", ("",)),
        ("a", "", ("b", "")),
    ]
    assert len({fingerprint(*one) for one in ways}) == len(ways)
    assert fingerprint("", "", ("\ud83d\ude00",)) != fingerprint("", "", ("😀",))


@given(messages=transcripts(), payload=st.binary(max_size=99), place=st.integers(0, 9))
def test_payloads_of_images_are_not_counted(messages: list[Message], payload: bytes, place: int) -> None:
    message = messages[place % len(messages)]
    image = Image("image/png", payload)
    more = dataclasses.replace(message, blocks=(*message.blocks, image))
    assert size_of([more]) == size_of([message])


@given(first=transcripts(), second=transcripts())
def test_sizes_add_up(first: list[Message], second: list[Message]) -> None:
    assert size_of(iter([*first, *second])) == size_of(first) + size_of(second)
    assert size_of(first) >= sum(len(block.text) for one in first for block in one.blocks if isinstance(block, Text))


def test_what_is_counted() -> None:
    assert size_of([]) == 0
    assert size_of([Message.system("é"), Message.user("ab")]) == 4
    assert size_of([Message(Role.TOOL, (ToolAnswer("long id", "漢"),))]) == 3
    assert size_of([Message.assistant("", ToolUse("long id", "now", {"a": "é"}, "srv"))]) == 3 + 3 + len('{"a":"  "}')
    assert size_of([Message.assistant("", ToolUse("", "now", "{}"))]) == 5
    assert size_of([Message.user("\ud800")]) == 3
