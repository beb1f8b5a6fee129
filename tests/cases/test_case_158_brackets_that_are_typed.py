"""Case 158: the cost of a typed text grows with the square of its brackets.

`Conversation.say` looks for addresses in what the person typed. If it counts the brackets of a word anew for each one
that it takes off the end, 100,000 of them take seconds while the loop waits. Measured is the time of this process,
so that a busy machine is no failure. The honest twin is as much ordinary text.
"""

from __future__ import annotations

import time

import pytest

from interlock import Conversation

TYPED = {
    "closing": ")" * 100_000,
    "more closing than opening": "(" * 50_000 + ")" * 100_000,
    "closing ones of all kinds": ")]}" * 33_000,
}


def seconds(text: str) -> float:
    begun = time.process_time()
    Conversation.user(text)
    return time.process_time() - begun


@pytest.mark.parametrize("text", TYPED.values(), ids=TYPED)
def test_attack_brackets_cost_no_more_than_letters(text: str) -> None:
    assert seconds(text) < 0.5


def test_honest_a_long_letter() -> None:
    assert seconds("kim@corp.example (see https://corp.example/a(b)) and so on. " * 2000) < 2
