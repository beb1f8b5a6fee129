"""Proves what a person's text vouches for beside addresses: phrases, words beside the word for their kind, and exactly
what was written where a secret is set; and that what takes away is never lost in packing.

Mutations that this file catches: a single word grounds any field; a phrase across two sentences; a number is a number.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.marks import (
    EVERYTHING,
    MAX_MARKS,
    MAX_WORDS,
    NO_WORDS,
    amount,
    checksums,
    days_of,
    heard_in,
    needs_all,
    packed,
    person_marks,
    unpacked,
    vouching_marks,
)
from interlock.model.origins import said_by_person
from interlock.model.tools import Kind


def vouches(typed: str, kind: Kind, value: str, noun: str = "") -> bool:
    said = set(said_by_person(typed))
    wanted = list(vouching_marks(kind, noun, value))
    return bool(wanted) and (all if needs_all(kind) else any)(one in said for one in wanted)


YES = [
    ("Send it to Alice", Kind.USER, "Alice", ""),
    ("Send it to Alice and Bob", Kind.USER, "Bob", ""),
    ("Invite dora to the team", Kind.USER, "Dora", ""),
    ("@mallory knows", Kind.USER, "mallory", ""),
    ("ask Ann Smith about it", Kind.USER, "ann smith", ""),
    ("Post it in #general", Kind.CHANNEL, "general", ""),
    ("Post it in the general channel", Kind.CHANNEL, "#general", ""),
    ("Add a channel called 'External_0'", Kind.CHANNEL, "External_0", ""),
    ("Book the Riverside View Hotel for me", Kind.NAME, "riverside view hotel", "hotel"),
    ("Book 'Ritz'", Kind.NAME, "Ritz", "hotel"),
    ("Book the hotel Ritz", Kind.NAME, "Ritz", "hotel"),
    ("delete file 13", Kind.ID, "13", "file"),
    ("delete the file with id 13", Kind.ID, "13", "file"),
    ("delete id 13", Kind.ID, "13", ""),
    ("Pay $1,200.50 to her", Kind.AMOUNT, "1200.5", ""),
    ("Pay 20 euros", Kind.AMOUNT, "20.00", ""),
    ("rent of 1000", Kind.AMOUNT, "1000", ""),
    ("on May 19th, 2024", Kind.TIME, "2024-05-19 10:00", ""),
    ("on the 19th of May", Kind.TIME, "2024-05-19", ""),
    ("on 2024-05-19", Kind.TIME, "2024-05-19T10:00:00Z", ""),
    ("Set my password to Swordfish!", Kind.SECRET, "Swordfish!", ""),
    ("Set my password to Swordfish.", Kind.SECRET, "Swordfish", ""),
    ("enter Lunch with Sarah", Kind.WORDS, "Sarah: Lunch", ""),
]
NO = [
    ("I like Alice", Kind.USER, "Alice", ""),
    ("Send it to Alice", Kind.USER, "it", ""),
    ("Send it to the team and to me", Kind.USER, "the", ""),
    ("Send it to the team and to me", Kind.USER, "me", ""),
    ("Read the general notes", Kind.CHANNEL, "general", ""),
    ("Read the general notes", Kind.CHANNEL, "notes", ""),
    ("I stay at the Ritz", Kind.NAME, "Ritz", "hotel"),
    ("Go to Riverside. View Hotel prices", Kind.NAME, "Riverside View", "hotel"),
    ("cancel event 13", Kind.ID, "13", "file"),
    ("13 files", Kind.ID, "12", "file"),
    ("delete id 13", Kind.ID, "13", "file"),
    ("13", Kind.ID, "13", ""),
    ("Wait 20 minutes", Kind.AMOUNT, "20", ""),
    ("Pay 20.5 euros", Kind.AMOUNT, "20", ""),
    ("on May 19th, 2024", Kind.TIME, "2024-05-20", ""),
    ("on May 19th, 2024", Kind.TIME, "2025-05-19", ""),
    ("in May", Kind.TIME, "2024-05-01", ""),
    ("Set my password to Swordfish", Kind.SECRET, "swordfish", ""),
    ("Set my password to Swordfish", Kind.SECRET, "password", ""),
    ("Swordfish tastes good", Kind.SECRET, "Swordfish", ""),
    ("enter Lunch with Sarah", Kind.WORDS, "Lunch with Eve", ""),
    ("enter Lunch", Kind.WORDS, "!!!", ""),
    ("", Kind.USER, "", ""),
]


@pytest.mark.parametrize(("typed", "kind", "value", "noun"), YES, ids=str)
def test_typed(typed: str, kind: Kind, value: str, noun: str) -> None:
    assert vouches(typed, kind, value, noun)


@pytest.mark.parametrize(("typed", "kind", "value", "noun"), NO, ids=str)
def test_not_typed(typed: str, kind: Kind, value: str, noun: str) -> None:
    assert not vouches(typed, kind, value, noun)


def test_marks_are_bounded() -> None:
    assert len(person_marks(" ".join(f"w{number}" for number in range(5000)))) == MAX_MARKS


@given(text=st.text(max_size=60))
def test_packing_loses_nothing(text: str) -> None:
    assert set(unpacked(packed(checksums(text)))) == checksums(text)
    assert heard_in(text) == packed(checksums(text.upper())) or text.upper().casefold() != text.casefold()
    person_marks(text)


def test_more_words_than_are_kept_stand_for_everything() -> None:
    assert packed(range(MAX_WORDS)) != EVERYTHING
    assert packed(range(MAX_WORDS + 1)) == EVERYTHING
    assert packed(()) == NO_WORDS == heard_in("...")


@pytest.mark.parametrize("text", ["!", "AAA", "AAAAA", "AAAAAA==x", "a b", "é"])
def test_what_is_no_packing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpacked(text)


def test_amounts_and_days() -> None:
    assert [amount(one) for one in ("1", "1.0", "01.50", "-2.00", "x", "1e3")] == ["1", "1", "1.5", "-2", "x", "1e3"]
    assert set(days_of("2024-05-19, 20 May 2025, June 3rd, Friday 13")) == {"2024-05-19", "2025-05-20", "06-03"}
    assert set(days_of("2024-13-01 2024-02-40")) == set()


@pytest.mark.parametrize(
    "piece", ["a", "1", "1,", "1 a", "may ", "#a", "'", "password ", "a.", "DE89 ", "0 ", "\u3042"], ids=ascii
)
def test_a_long_text_does_not_cost_its_square(piece: str) -> None:
    """Not timed: with the square of a megabyte this test would not end."""
    text = piece * ((1 << 18) // len(piece))
    said_by_person(text)
    heard_in(text)
