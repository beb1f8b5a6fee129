"""Semantic memory: facts that one conversation writes down and others recall, with their labels (T12).

What comes back is a stranger's text, whoever wrote it: it enters under its stored labels and ``untrusted:memory``, on
record before it can be seen, between marks that nobody can foresee, as the result of a call. It is not put into the
transcript; each request recalls anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from interlock.errors import InterlockError, MemoryUnavailable, Refused
from interlock.gate.conversation import Conversation, SystemClock
from interlock.gate.marks import mark_for
from interlock.gate.steps import stamp
from interlock.model.carried import LOST, Carried, joined
from interlock.model.entries import Remembered
from interlock.model.facts import MAX_FOUND, Fact, Selection, Vector, fact_of, vector_of, words_of
from interlock.model.labels import Label
from interlock.model.messages import Message
from interlock.model.quoting import as_result, enclosed, indented
from interlock.model.summaries import spoken
from interlock.ports import Clock, Facts

Embed = Callable[[str], Iterable[float]]
MAX_FACTS: Final = 10_000
MAX_RECALLED: Final = 8000
TOOL: Final = "recalled_memory"


@dataclass(frozen=True, slots=True)
class Recall:
    """What was recalled. Its labels have joined the conversation already.

    Attributes:
        facts: best first.
        text: all of them between marks of this request; empty when there is none.
        labels: that they brought.
        notices: what a person should know of each label that came with them, and what they can do about it.
    """

    facts: tuple[Fact, ...] = ()
    text: str = ""
    labels: tuple[Label, ...] = ()
    notices: tuple[str, ...] = ()
    mark: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The text as the result of a call, to be put before the model for this request; never as the person's or the
        operator's words. Don't push it: the transcript does not keep what memory says."""
        return as_result(self.text, f"recall-{self.mark}", TOOL) if self.text else ()


class Memory:
    """Facts of conversations, in the namespace of each. Safe to share between threads."""

    def __init__(
        self, facts: Facts, *, embed: Embed | None = None, clock: Clock | None = None, most: int = MAX_FACTS
    ) -> None:
        """
        Args:
            facts: where they are kept.
            embed: gives the vector of a text, for recall by meaning. Whoever it asks reads every fact and every query.
            most: facts that one namespace may hold.
        """
        self._facts = facts
        self._embed = embed
        self._clock = clock or SystemClock()
        self._most = most

    def remember(
        self, conversation: Conversation, text: str, *, place: tuple[int, int] | None = None, id: str = ""
    ) -> Fact:
        """Write a fact for other conversations.

        It carries the labels that cover the messages it was made from, and those of the whole conversation: what a
        model writes, it may have from anything that it has read.

        Args:
            place: ``(first, end)`` of those messages; by default all of them.
            id: a name of your own; one that is not there yet.

        Raises:
            Refused: no text, too much of it, no such messages, or the namespace is full.
            Conflict: there is a fact of this id.
            MemoryUnavailable, JournalUnavailable: not on record; then there is no fact.
        """
        return self._put(conversation, text, place, id or f"m-{secrets.token_hex(6)}", 0)

    def correct(
        self, conversation: Conversation, id: str, revision: int, text: str, *, place: tuple[int, int] | None = None
    ) -> Fact:
        """Put another text in the place of exactly this revision. The labels of all revisions stay with the fact.

        Raises:
            Refused, Conflict, MemoryUnavailable, JournalUnavailable: see :meth:`remember`. Conflict also when somebody
                changed the fact since that revision: read it again.
        """
        if revision < 1:
            raise Refused("a correction names the revision that it corrects, from 1")
        return self._put(conversation, text, place, id, revision)

    def _put(
        self, conversation: Conversation, text: str, place: tuple[int, int] | None, id: str, expected: int
    ) -> Fact:
        at = stamp(self._clock.now())
        first, end, carried = _sources(conversation, place)
        fact = fact_of(id, expected + 1, at, text, conversation.id, (first, end), carried)
        vector = self._vector(text)
        # On record in the journal of whoever wrote it before anybody can recall it.
        conversation.record(Remembered(at, id, expected + 1, first, end, carried.labels, fact.content, len(text)))
        return self._facts.put(conversation.namespace, fact, expected=expected, limit=self._most, vector=vector)

    def recall(
        self, conversation: Conversation, query: str, *, limit: int = 8, characters: int = MAX_RECALLED
    ) -> Recall:
        """Find facts of the conversation's namespace and let them enter it.

        Their labels have joined and are on record before anything is returned.

        Args:
            limit: at most so many facts, up to 32.
            characters: at most so much text.

        Raises:
            Refused: a limit below 1.
            MemoryUnavailable, JournalUnavailable: nothing may be shown.
        """
        if limit < 1 or characters < 1:
            raise Refused("a recall brings at least one fact of at least one character")
        found = self._found(conversation.namespace, query, min(limit, MAX_FOUND), characters)
        for fact in found:
            conversation.take_in(fact.recalled, f"memory {fact.id}", fact.text)
        if not found:
            return Recall()
        # Indented, so that no line of one fact passes for the beginning of another.
        body = "\n".join(f"- ({fact.id}, {fact.at[:10]}) {indented(fact.text or '')}" for fact in found)
        mark = mark_for(body)
        text = enclosed(body, mark, what="Notes that were recalled from memory")
        brought = joined(fact.recalled for fact in found)
        notices = tuple(one for fact in found for one in fact.carried.notices(f"memory {fact.id}"))
        return Recall(found, text, brought.labels, notices, mark)

    def fact(self, namespace: str, id: str) -> Fact | None:
        """One fact, for the operator or the person; also one whose text was deleted. Raises MemoryUnavailable."""
        return self._facts.fact(namespace, id)

    def forget(self, namespace: str, selection: Selection) -> int:
        """Delete the texts of facts. Their labels stay on record. An act of the operator or the person.

        Returns:
            How many facts lost their text.

        Raises:
            MemoryUnavailable: not all of them were deleted; repeat it.
        """
        return self._facts.forget(namespace, selection)

    def expire(self, namespace: str, age: timedelta) -> int:
        """Delete the texts of facts that were not written or changed for so long; see :meth:`forget`."""
        return self.forget(namespace, Selection(before=stamp(self._clock.now() - age)))

    def _found(self, namespace: str, query: str, limit: int, characters: int) -> tuple[Fact, ...]:
        vector = self._vector(query)
        near = () if vector is None else self._facts.near(namespace, vector, limit)
        named = self._facts.search(namespace, words_of(query), limit)
        chosen: list[Fact] = []
        for fact in {one.id: one for one in (*near, *named)}.values():
            characters -= len(fact.text or "")
            if characters < 0 or len(chosen) == limit:
                break
            chosen.append(fact)
        return tuple(chosen)

    def _vector(self, text: str) -> Vector | None:
        if self._embed is None:
            return None
        try:
            return vector_of(self._embed(text))
        except InterlockError:
            raise
        except Exception as error:  # an embedder is a foreign service: its errors are those of memory
            raise MemoryUnavailable(f"the embedder raised {type(error).__name__}") from error


def _sources(conversation: Conversation, place: tuple[int, int] | None) -> tuple[int, int, Carried]:
    """What a fact is made from: the range, and everything that it carries."""
    transcript = conversation.transcript
    _, covers = spoken(transcript.messages, transcript.covers)
    first, end = (0, len(covers)) if place is None else place
    if not 0 <= first <= end <= len(covers):
        raise Refused(f"there are no messages {first} to {end} among {len(covers)}")
    sources = (LOST if cover is None else Carried(cover) for cover in covers[first:end])
    # A cover may name what the exposure does not: a rewrite can bring in messages of which nobody knows anything.
    return first, end, conversation.carried().join(joined(sources))
