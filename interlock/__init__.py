"""Interlock: a security interlock for the tool calls of LLM agents.

See ``docs/concepts.md`` for the idea and ``docs/spec.md`` for what is promised.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from interlock.assembly import Interlock, Manifest
    from interlock.errors import Bug, InterlockError, NotPermitted
    from interlock.gate.approval_steps import ApprovalRules
    from interlock.gate.conversation import Conversation
    from interlock.gate.guard import Guard
    from interlock.gate.identity import Identities
    from interlock.gate.tools import tool
    from interlock.model.calls import Call
    from interlock.model.decisions import Decision, Verdict
    from interlock.model.history import History, TokenBudget
    from interlock.model.labels import Taint
    from interlock.model.messages import Message, ToolUse
    from interlock.model.question import Answer, Question
    from interlock.model.results import Outcome, Ticket, ToolResult
    from interlock.sessions import Session
    from interlock.stores.memory import MemoryJournal

__all__ = [
    "Answer",
    "ApprovalRules",
    "Bug",
    "Call",
    "Conversation",
    "Decision",
    "Guard",
    "History",
    "Identities",
    "Interlock",
    "InterlockError",
    "Manifest",
    "MemoryJournal",
    "Message",
    "NotPermitted",
    "Outcome",
    "Question",
    "Session",
    "Taint",
    "Ticket",
    "TokenBudget",
    "ToolResult",
    "ToolUse",
    "Verdict",
    "tool",
]

# Loaded when they are asked for: pytest imports this package for its plugin in every project that has Interlock
# installed, and the command line wants to answer before an engine is loaded.
_PLACES: Final = {
    "Answer": "interlock.model.question",
    "ApprovalRules": "interlock.gate.approval_steps",
    "Bug": "interlock.errors",
    "Call": "interlock.model.calls",
    "Conversation": "interlock.gate.conversation",
    "Decision": "interlock.model.decisions",
    "Guard": "interlock.gate.guard",
    "History": "interlock.model.history",
    "Identities": "interlock.gate.identity",
    "Interlock": "interlock.assembly",
    "InterlockError": "interlock.errors",
    "Manifest": "interlock.assembly",
    "MemoryJournal": "interlock.stores.memory",
    "Message": "interlock.model.messages",
    "NotPermitted": "interlock.errors",
    "Outcome": "interlock.model.results",
    "Question": "interlock.model.question",
    "Session": "interlock.sessions",
    "Taint": "interlock.model.labels",
    "Ticket": "interlock.model.results",
    "TokenBudget": "interlock.model.history",
    "ToolResult": "interlock.model.results",
    "ToolUse": "interlock.model.messages",
    "Verdict": "interlock.model.decisions",
    "tool": "interlock.gate.tools",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(place), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
