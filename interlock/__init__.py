"""Interlock: a security interlock for the tool calls of LLM agents.

See ``docs/concepts.md`` for the idea and ``docs/spec.md`` for what is promised.
"""

from interlock.assembly import Interlock, Manifest
from interlock.errors import Bug, InterlockError, NotPermitted
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.gate.identity import Identities
from interlock.gate.tools import tool
from interlock.model.calls import Call
from interlock.model.decisions import Decision, Verdict
from interlock.model.history import History, TokenBudget
from interlock.model.labels import Taint
from interlock.model.messages import Message, ToolUse
from interlock.model.results import Outcome, Ticket, ToolResult
from interlock.sessions import Session
from interlock.stores.memory import MemoryJournal

__all__ = [
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
    "Session",
    "Taint",
    "Ticket",
    "TokenBudget",
    "ToolResult",
    "ToolUse",
    "Verdict",
    "tool",
]
