"""The property suite against our agent: the adapter that it is driven through, and the three lines."""

from __future__ import annotations

from collections.abc import Sequence

from agent import Assistant

from interlock import Call
from interlock.testing import Kit, check_integration


class Driven:
    """How the suite speaks to an Assistant."""

    def __init__(self, kit: Kit, assistant: Assistant | None = None) -> None:
        self.kit = kit
        self.assistant = assistant or Assistant(kit.interlock(), kit.run, kit.folder / "conversation.json")

    def say(self, text: str) -> None:
        self.assistant.ask(text)

    def act(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        return self.assistant.run_tools(calls)

    def resume(self) -> Driven:
        old = self.assistant
        return Driven(self.kit, Assistant.load(old.lock, old.run, old.store))


def test_nothing_leaks_through_our_agent() -> None:
    check_integration(Driven)
