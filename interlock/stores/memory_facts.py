"""Facts and summaries in memory: for tests, demos and hosts that accept the loss at exit."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.errors import Conflict, Refused
from interlock.locks import LEAF
from interlock.model.carried import Carried
from interlock.model.digests import Digest
from interlock.model.facts import Fact, Selection, Vector, nearest, ranked
from interlock.model.names import namespace_name
from interlock.model.summaries import StoredSummary


class MemoryFacts:
    """Implements :class:`interlock.ports.Facts`."""

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, tuple[Fact, Vector | None]]] = {}

    def put(self, namespace: str, fact: Fact, *, expected: int, limit: int, vector: Vector | None = None) -> Fact:
        """See :meth:`interlock.ports.Facts.put`."""
        with LEAF:
            facts = self._facts.setdefault(namespace_name(namespace), {})
            known = facts.get(fact.id)
            if (known[0].revision if known else 0) != expected:
                raise Conflict(f"fact {fact.id!r} is at revision {known[0].revision if known else 0}, not {expected}")
            # What was forgotten has left its place to others, and needs one when it is written anew.
            grows = known is None or known[0].text is None
            if grows and sum(one.text is not None for one, _ in facts.values()) >= limit:
                raise Refused(f"the namespace holds {limit} facts already; forget some")
            carried = fact.carried.join(known[0].carried) if known else fact.carried
            stored = renewed(fact, expected + 1, carried)
            facts[fact.id] = (stored, vector)
            return stored

    def fact(self, namespace: str, id: str) -> Fact | None:
        """See :meth:`interlock.ports.Facts.fact`."""
        found = self._facts.get(namespace_name(namespace), {}).get(id)
        return found[0] if found else None

    def search(self, namespace: str, words: Sequence[str], limit: int) -> tuple[Fact, ...]:
        """See :meth:`interlock.ports.Facts.search`."""
        return ranked((fact for fact, _ in self._all(namespace)), words, limit)

    def near(self, namespace: str, vector: Vector, limit: int) -> tuple[Fact, ...]:
        """See :meth:`interlock.ports.Facts.near`."""
        found = ((fact, known) for fact, known in self._all(namespace) if known is not None)
        return tuple(fact for fact, _ in nearest(found, vector, limit))

    def forget(self, namespace: str, selection: Selection) -> int:
        """See :meth:`interlock.ports.Facts.forget`."""
        with LEAF:
            chosen = [fact for fact, _ in self._all(namespace) if selection.takes(fact)]
            for fact in chosen:
                self._facts[namespace][fact.id] = (without_text(fact), None)
            return len(chosen)

    def _all(self, namespace: str) -> list[tuple[Fact, Vector | None]]:
        with LEAF:
            return [one for one in self._facts.get(namespace_name(namespace), {}).values() if one[0].text is not None]


def renewed(fact: Fact, revision: int, carried: Carried) -> Fact:
    """A fact as the store keeps it: at its revision, with the labels of all of them."""
    return Fact(fact.id, revision, fact.at, fact.text, fact.content, fact.conversation, fact.first, fact.end, carried)


def without_text(fact: Fact) -> Fact:
    """A fact whose text was deleted. Its labels stay."""
    return Fact(
        fact.id, fact.revision, fact.at, None, fact.content, fact.conversation, fact.first, fact.end, fact.carried
    )


class MemorySummaries:
    """Implements :class:`interlock.ports.Summaries`."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Digest], StoredSummary] = {}

    def keep(self, namespace: str, conversation: str, summary: StoredSummary) -> None:
        """See :meth:`interlock.ports.Summaries.keep`."""
        self._found[namespace_name(namespace), conversation, summary.content] = summary

    def summary(self, namespace: str, conversation: str, content: Digest) -> StoredSummary | None:
        """See :meth:`interlock.ports.Summaries.summary`."""
        return self._found.get((namespace_name(namespace), conversation, content))
