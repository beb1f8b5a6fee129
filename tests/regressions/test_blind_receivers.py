"""A tool with an argument that names a receiver could be declared ``blind``.

``blind`` says that no argument can change who receives, and it lifts the trifecta. The manifest refused
``destinations`` beside it, but not a function ``mail(to, body)`` whose ``to`` stood under ``content``: the model chose
the receiver, and nothing asked. Now a declaration as blind is refused when any argument, declared or the function's
own, looks like a receiver.
Mutations that this file catches: the check of ``arguments`` or that of ``content`` in ``_spec`` left out; ``@tool``
not passing the function's arguments on.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Conversation, Interlock, Manifest, MemoryJournal, Verdict, tool
from interlock.errors import ManifestError
from interlock.model.tools import Egress
from tests.regressions.stage import BOTH

BLIND: dict[str, Any] = {"returns": [], "egress": "blind", "audience": "closed"}


def _manifest(**words: Any) -> Manifest:
    return Manifest.parse({"version": 1, "tools": {"log": {**BLIND, **words}}})


@pytest.mark.parametrize(
    "name",
    ["to", "cc", "shareWith", "share_with", "share-with", "recipient", "webhookUrl", "channel", "user_id", "TO", "url"],
)
def test_an_argument_that_names_a_receiver_is_not_blind(name: str) -> None:
    for words in ({"content": [name]}, {"arguments": [name]}, {"content": ["body"], "arguments": ["body", name]}):
        with pytest.raises(ManifestError, match="look like receivers"):
            _manifest(**words)


def test_a_functions_own_arguments_count() -> None:
    def mail(to: str, body: str) -> str:
        return to + body

    for content in ([], ["body"], ["to", "body"]):
        with pytest.raises(ManifestError, match="look like receivers"):
            tool(**BLIND, content=content)(mail)


def test_neither_is_one_with_destinations_or_without_an_audience() -> None:
    for words in ({"destinations": {"x": "email"}}, {"audience": ""}):
        with pytest.raises(ManifestError, match="blind"):
            _manifest(**words)


def test_honest_a_tool_with_a_fixed_receiver_may_be_blind() -> None:
    @tool(**BLIND, content=["line", "level"])
    def log(line: str, level: int = 1) -> str:
        return line * level

    assert log.spec.egress is Egress.BLIND
    guard = Interlock(tools=[log], journal=MemoryJournal()).guard(Conversation.new())
    guard.admit("text", labels=BOTH, source="test")
    assert guard.call("log", {"line": "x"}, run=log).verdict is Verdict.ALLOW


def test_honest_the_same_arguments_may_be_chosen() -> None:
    manifest = Manifest.parse({"version": 1, "tools": {"log": {"returns": [], "egress": "chosen", "content": ["to"]}}})
    assert len(manifest) == 1
