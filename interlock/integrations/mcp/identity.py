"""Whose conversation a request belongs to.

The protocol does not say: in its newer era every request has a session id of its own. What can't be told apart shares
one conversation, so an identity that is missing makes things stricter, and never clean.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.model.manifest import Manifest
from interlock.model.proxies import ProxyChoice

MAX_SESSIONS: Final = 1000
MAX_ADMITTED: Final = 10_000
SESSION_HEADER: Final = "mcp-session-id"


class Gate(Protocol):
    """What the proxy needs of an Interlock."""

    @property
    def manifest(self) -> Manifest:
        """What the tools are now."""

    def guard(self, conversation: Conversation) -> Guard:
        """The guard of one conversation."""

    def listed(self, server: str, tools: Iterable[str]) -> None:
        """Say which tools of a server stand as declared."""


@dataclass(slots=True)
class Held:
    """A conversation, its guard, and which texts of servers it has on record already."""

    guard: Guard
    admitted: set[tuple[str, str]] = field(default_factory=set)

    def note(self, key: tuple[str, str]) -> None:
        """Remember a text, as long as there are not too many; what is forgotten is put on record again."""
        if len(self.admitted) >= MAX_ADMITTED:
            self.admitted.clear()
        self.admitted.add(key)


class Identity:
    """From requests to conversations."""

    def __init__(self, gate: Gate, choice: ProxyChoice, first: Conversation | None = None) -> None:
        """``first``: the conversation of everything that can't be told apart; by default a new one."""
        self._gate = gate
        self._choice = choice
        self._wide = Held(gate.guard(first or Conversation(namespace=choice.principal)))
        self._sessions: OrderedDict[str, Held] = OrderedDict()

    def of(self, context: Any) -> Held:
        """The conversation of a request. Never keyed by anything that is new with each request."""
        if self._choice.conversation == "session" and context.protocol_version < "2026-07-28":
            session = session_of(context)
            if session:
                return self._of_session(session)
        return self._wide

    def _of_session(self, session: str) -> Held:
        held = self._sessions.get(session)
        if held is None:
            held = Held(self._gate.guard(Conversation(namespace=self._choice.principal)))
            self._sessions[session] = held
            while len(self._sessions) > MAX_SESSIONS:
                # Forgotten sessions live on in the wide conversation: whatever can't be told apart any more is there.
                _, oldest = self._sessions.popitem(last=False)
                self._wide.guard.conversation.learn(oldest.guard.conversation.state, oldest.guard.conversation.id)
        self._sessions.move_to_end(session)
        return held

    def all(self) -> list[Held]:
        """Every conversation that is held here."""
        return [self._wide, *self._sessions.values()]


def session_of(context: Any) -> str:
    """The id of the session that a request came in, where the transport has one; else empty."""
    request = context.request
    headers = getattr(request, "headers", None)
    found = headers.get(SESSION_HEADER, "") if headers is not None else ""
    return found if isinstance(found, str) else ""
