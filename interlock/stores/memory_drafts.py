"""Drafts in memory: they can be released in this process only, and end with it."""

from __future__ import annotations

from typing import Final

from interlock.errors import OutboxUnavailable
from interlock.locks import LEAF
from interlock.model.drafts import Draft
from interlock.model.names import namespace_name

MAX_KEPT: Final = 1000


class MemoryDrafts:
    """Implements :class:`interlock.ports.DraftStore`. Bounded: a draft too many is refused, none is forgotten."""

    blocks = False

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], tuple[str, bytes]] = {}

    def keep(self, draft: Draft) -> None:
        """See :meth:`interlock.ports.DraftStore.keep`."""
        shown = draft.question
        key = (namespace_name(shown.namespace), shown.conversation, draft.id)
        body = draft.encode()
        with LEAF:
            if len(self._kept) >= MAX_KEPT and key not in self._kept:
                raise OutboxUnavailable(f"the outbox in memory holds {MAX_KEPT} drafts already")
            self._kept.pop(key, None)
            self._kept[key] = (shown.at, body)

    def draft(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """See :meth:`interlock.ports.DraftStore.draft`."""
        with LEAF:
            found = self._kept.get((namespace, conversation, id))
        return None if found is None else found[1]

    def stored(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str, str], ...]:
        """See :meth:`interlock.ports.DraftStore.stored`."""
        with LEAF:
            own = [(at, *key[1:]) for key, (at, _) in self._kept.items() if key[0] == namespace]
        ids = [name for _, _, name in own]
        first = ids.index(after) + 1 if after in ids else 0
        return tuple(own[first:][:limit])

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """See :meth:`interlock.ports.DraftStore.drop`."""
        with LEAF:
            self._kept.pop((namespace, conversation, id), None)
