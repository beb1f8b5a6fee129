"""Pressure: how full the model's context is, and how full it will be, out of what providers reported.

A provider says how many tokens a request had; we know how many bytes it had. Two such readings give a rate, and a rate
tells the size of the next request before it is sent. That is a guess, so it may only *add* a reason to compact: a
reported size that is over the limit is a reason whatever the guess says.

Nothing here looks at labels. A full context is made smaller by rewriting messages, which changes no taint (T2).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from interlock.errors import Refused
from interlock.model.digests import content_digest
from interlock.model.messages import Image, Message, ToolUse
from interlock.model.turns import written

# Tokens per byte. English has about a quarter, JSON, code and Chinese about a third: when in doubt, the larger.
USUAL: Final = Fraction(1, 3)
# No tokeniser makes more than a token of a byte, and only runs of spaces and the like have less than an eighth. A rate
# outside comes from what is not counted in bytes: an image, another list of tools, a cache that was left out.
LOWEST: Final = Fraction(1, 8)
HIGHEST: Final = Fraction(1)
# Two readings that are fewer bytes apart say more about rounding, and about what is not counted, than about a rate.
SMALLEST_STEP: Final = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """A provider counted ``tokens`` in a context of ``size`` bytes, as :func:`size_of` counts them."""

    tokens: int
    size: int


@dataclass(frozen=True, slots=True)
class Pressure:
    """What is known of the size of a context. A value: every operation returns another one.

    Attributes:
        last: the newest reading, the anchor of every prediction.
        previous: the one before it; both together give the rate.
        stale: the context was rewritten since, so the reported size is no longer its size.
        peak: the most tokens that were reported in this series.
        fingerprint: of what else is in every request; see :func:`fingerprint`. Empty: nobody has said.
    """

    last: Reading | None = None
    previous: Reading | None = None
    stale: bool = False
    peak: int = 0
    fingerprint: str = ""

    def read(self, tokens: int, size: int) -> Pressure:
        """A provider reported ``tokens`` for a context of ``size`` bytes. What was stale is fresh again.

        Raises:
            Refused: one of them is not an integer of at least 0.
        """
        now = Reading(natural(tokens, "tokens"), natural(size, "size"))
        return replace(self, last=now, previous=self.last, stale=False, peak=max(self.peak, now.tokens))

    def rewritten(self) -> Pressure:
        """The context was rewritten in place. The readings stay as anchors: they were true of the same model."""
        return replace(self, stale=True)

    def carry_into(self, fingerprint: str) -> Pressure:
        """The pressure at the start of a run: this one if nothing else in the request changed, else a new series.

        A new series has no readings and no peak; tokens of another model, or beside another list of tools, can't be
        compared with these.
        """
        return self if fingerprint == self.fingerprint else Pressure(fingerprint=fingerprint)

    def predict(self, size: int) -> int | None:
        """The tokens of a context of ``size`` bytes, rounded up; None without a reading.

        Monotone in ``size``, never negative, and exactly what was reported at the size of the last reading.
        """
        if self.last is None:
            return None
        return max(0, self.last.tokens + math.ceil(self._rate() * (size - self.last.size)))

    def _rate(self) -> Fraction:
        if self.last is None or self.previous is None:
            return USUAL
        step = self.last.size - self.previous.size
        if abs(step) < SMALLEST_STEP:
            return USUAL
        return min(max(Fraction(self.last.tokens - self.previous.tokens, step), LOWEST), HIGHEST)

    def should_compact(self, size: int, limit: int) -> bool:
        """Is there a reason to make a context of ``size`` bytes smaller before ``limit`` tokens are reached?

        True when the reported size is not stale and at or over the limit, or when the predicted one is. So a
        prediction adds a reason and takes none away.
        """
        if self.last is not None and not self.stale and self.last.tokens >= limit:
            return True
        predicted = self.predict(size)
        return predicted is not None and predicted >= limit


def natural(value: object, name: str) -> int:
    """The value, if it is an integer of at least 0.

    Raises:
        Refused: it is not; a bool is none either.
    """
    if type(value) is not int or value < 0:
        raise Refused(f"{name} must be an integer of at least 0, not {value!r}")
    return value


def fingerprint(model: str, system: str, tools: Iterable[str]) -> str:
    """Digest of what is in every request beside the messages: model, system prompt and names of tools in any order.

    Equal for equal parts only: they are encoded as JSON, so no name can look like the end of another.
    """
    return content_digest(json.dumps([model, system, sorted(tools)], ensure_ascii=False))


def size_of(messages: Iterable[Message]) -> int:
    """UTF-8 bytes of what the model sees: texts, results, and the names and arguments of calls.

    Ids and the providers' own wrapping are left out, since a rate makes up for them. Payloads of images are not
    counted: their tokens depend on their pixels and not on their bytes.
    """
    total = 0
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Image):
                continue
            if isinstance(block, ToolUse):
                total += _bytes(block.server) + _bytes(block.name) + _bytes(written(block.arguments))
            else:
                total += _bytes(block.text)
    return total


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
