"""An OPA server first, and the embedded engine with the same policies while the server is out.

The embedded engine speaks only where nobody else did: not when the server denied, and not when it gave something that
is no answer. It holds the very revision that the server's answers are demanded to have, so it can't be looser than the
server would have been. And once the server has said anything that did not count (another revision, nothing at all, a
refusal), it stays silent until the server's word counts again: a policy that was replaced or taken away on purpose must
not come back because the server is then stopped.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from interlock.errors import Misconfigured
from interlock.model.answers import Answered, ControlText
from interlock.model.look import Paths
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.opa import OpaEngine
from interlock.policy.opa_faults import OUT, NoAnswer


class FallbackEngine:
    """Implements :class:`interlock.ports.AsyncEngine` over both."""

    name: Final = "opa"
    looks_at: Paths | None = None

    def __init__(self, first: OpaEngine, second: EmbeddedEngine) -> None:
        """
        Raises:
            Misconfigured: the server may answer from another revision than the embedded engine holds.
        """
        if first.demand.exact != second.revision or set(first.controls) != set(second.controls):
            raise Misconfigured(
                "engine.fallback: the embedded engine may only stand in for a server that must answer from the very"
                ' same policies; say revision = "same"'
            )
        self.first, self.second = first, second
        self.revision: str = second.revision
        self.controls: Mapping[str, ControlText] = second.controls
        # Questions and words that did not count, numbered in one sequence. An answer restores trust only when its
        # question is younger than the last such word: of two that overlap, nobody knows which of them is true now.
        self._numbers = itertools.count(1)
        self._trusted = self._distrusted = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Those of the server's engine, and how often the embedded one answered: ``fallback``."""
        return self.first.counts

    def evaluate(self, document: bytes) -> Answered:
        """See :meth:`interlock.ports.Engine.evaluate`."""
        number = next(self._numbers)
        try:
            return self._counted(number, self.first.evaluate(document))
        except NoAnswer as error:
            return self._instead(document, error)

    async def aevaluate(self, document: bytes) -> Answered:
        """See :meth:`interlock.ports.AsyncEngine.aevaluate`."""
        number = next(self._numbers)
        try:
            return self._counted(number, await self.first.aevaluate(document))
        except NoAnswer as error:
            return self._instead(document, error)

    def _counted(self, number: int, answer: Answered) -> Answered:
        self._trusted = max(self._trusted, number)
        return answer

    def _instead(self, document: bytes, error: NoAnswer) -> Answered:
        """The embedded engine's answer; the error itself where it may not speak."""
        if error.fault not in OUT:
            self._distrusted = next(self._numbers)
        if self._distrusted > self._trusted:
            raise error
        text = self.second.evaluate(document)
        self.first.note("fallback")
        return Answered(text, engine=f"embedded ({error.kind})", revision=self.revision)
