"""Open questions in memory: they can be answered in this process only."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from interlock.locks import LEAF
from interlock.model.names import namespace_name
from interlock.model.question import Question

MAX_KEPT: Final = 1000


class MemoryQuestions:
    """Implements :class:`interlock.ports.Questions`. Bounded: the oldest is forgotten, and then can't be shown."""

    blocks = False

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()

    def keep(self, question: Question) -> None:
        """See :meth:`interlock.ports.Questions.keep`."""
        key = (namespace_name(question.namespace), question.conversation, question.id)
        body = question.encode()
        with LEAF:
            self._kept.pop(key, None)
            self._kept[key] = body
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)

    def question(self, namespace: str, conversation: str, id: str) -> bytes | None:
        """See :meth:`interlock.ports.Questions.question`."""
        with LEAF:
            return self._kept.get((namespace, conversation, id))

    def waiting(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[tuple[str, str], ...]:
        """See :meth:`interlock.ports.Questions.waiting`."""
        with LEAF:
            own = [key[1:] for key in self._kept if key[0] == namespace]
        ids = [name for _, name in own]
        first = ids.index(after) + 1 if after in ids else 0
        return tuple(own[first:][:limit])

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        """See :meth:`interlock.ports.Questions.drop`."""
        with LEAF:
            self._kept.pop((namespace, conversation, id), None)
