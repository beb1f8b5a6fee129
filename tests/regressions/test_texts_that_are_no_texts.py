"""``admit(5, …)`` and ``say(5)`` failed with whatever error came first, or did not fail.

A number as text or as source went as far as the digest, and a subclass of ``str`` can be two texts at once: one that is
put on record and another one that the model sees. Now both are refused, and nothing is recorded.
Mutations that this file catches: the check left out of ``admit`` for the text or for the source, ``isinstance`` in its
place, or left out of ``say``.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Conversation
from interlock.errors import Refused
from tests.regressions.stage import entries, guarded, interlock


class _Text(str):
    pass


NO_TEXTS: list[Any] = [5, None, b"x", ["x"], object(), True]


@pytest.mark.parametrize("value", [*NO_TEXTS, _Text("x")])
def test_only_text_is_admitted(value: Any) -> None:
    guard = guarded()
    before = entries(guard)
    with pytest.raises(Refused, match="admit takes text"):
        guard.admit(value, labels=["untrusted:web"], source="page")
    with pytest.raises(Refused, match="admit takes text"):
        guard.admit("x", labels=["untrusted:web"], source=value)
    assert entries(guard) == before


@pytest.mark.parametrize("value", NO_TEXTS)
@pytest.mark.parametrize("pasted", [True, False])
def test_only_text_is_said(value: Any, pasted: bool) -> None:
    conversation = Conversation.user("hello")
    guard = interlock().guard(conversation)
    before = entries(guard)
    with pytest.raises(Refused, match="a person says text"):
        conversation.say(value, pasted=pasted)
    assert entries(guard) == before
    assert len(conversation) == 1


def test_honest_texts_are() -> None:
    guard = guarded()
    assert guard.admit("x", labels=["untrusted:web"], source="page") == "x"
    guard.conversation.say("more")
    assert len(entries(guard)) == 4
