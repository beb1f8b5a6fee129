"""A small agent that a team might have: it asks a model, runs tools through Interlock, and survives a restart.

It has a leak. `test_agent.py` finds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from interlock import Call, Conversation, Interlock, Message, ToolUse

Run = Callable[[str, dict[str, Any]], str]


class Assistant:
    """One conversation with a person, stored as JSON after each turn of the model."""

    def __init__(self, lock: Interlock, run: Run, store: Path, conversation: Conversation | None = None) -> None:
        self.lock, self.run, self.store = lock, run, store
        self.conversation = conversation or Conversation.new()
        self.guard = lock.guard(self.conversation)

    def ask(self, text: str) -> None:
        self.conversation.say(text)

    def run_tools(self, calls: Sequence[Call]) -> list[tuple[str, str]]:
        """Run the calls that the model asked for; returns id and result of each."""
        self.conversation.push(Message.assistant("", *(ToolUse(one.id, one.name, one.arguments) for one in calls)))
        outcomes = self.guard.batch(calls, run=self.run)
        self.conversation.push(Message.results(*outcomes))
        self.conversation.push(Message.assistant("Done."))
        self._save()
        return [(one.call_id, one.for_model) for one in outcomes]

    def _save(self) -> None:
        # The page of the person's conversations shows the labels as badges.
        stored = {"labels": list(self.conversation.exposure), "messages": [one.text for one in self.conversation]}
        self.store.write_text(json.dumps(stored), encoding="utf-8")

    @classmethod
    def load(cls, lock: Interlock, run: Run, store: Path) -> Assistant:
        """Continue after a restart of the service."""
        stored = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {"labels": [], "messages": []}
        messages = [Message.user("\n".join(stored["messages"]))]
        conversation = Conversation.from_messages(messages)
        return cls(lock, run, store, conversation)
