"""Windows: what the model is shown of a transcript that is only ever appended to.

The context is the recent suffix of the transcript, after a summary of everything before it. Where it may begin is where
no round is open: a call is never parted from its result (T17). What is older than the window and in no summary yet is
the *backlog*; it is shown all the same, until there is too much of it. Nothing is deleted and nothing is rewritten.

::

    0 ........ covered ............ recent ............ end
    | summary  |     backlog        |    stays verbatim  |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from interlock.errors import Refused, SummaryRequired
from interlock.model.messages import Message, Role
from interlock.model.pressure import size_of
from interlock.model.transcript import answers

Count = Callable[[Sequence[Message]], int]
BYTES_PER_TOKEN: Final = 3


def estimated_tokens(messages: Sequence[Message]) -> int:
    """A guess on the high side. Give the provider's own count when you have one."""
    return -(-size_of(messages) // BYTES_PER_TOKEN) + 4 * len(messages)


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Bounds of what is shown. Every one is finite.

    Attributes:
        messages, tokens: from here on a summary is due.
        recent: this many of the newest messages stay as they are; by tokens, half of ``tokens``.
        backlog: this many messages more may wait for a summary; then no model is called before it is made. The bound
            of tokens has no such slack.
        batch, batch_tokens: of one summary.
    """

    messages: int = 60
    tokens: int = 32_000
    recent: int = 20
    backlog: int = 40
    batch: int = 40
    batch_tokens: int = 16_000

    def __post_init__(self) -> None:
        given = (self.messages, self.tokens, self.recent, self.backlog, self.batch, self.batch_tokens)
        if any(type(one) is not int for one in given):
            raise Refused("limits of a window are whole numbers; one that is infinite or no number would bound nothing")
        least = min(self.messages, self.tokens, self.recent, self.batch, self.batch_tokens)
        if least < 1 or self.backlog < 0:
            raise Refused("limits of a window are positive numbers; backlog may be 0")
        if self.recent > self.messages:
            raise Refused(f"a window of {self.messages} messages can't keep {self.recent} recent ones; lower recent")


@dataclass(frozen=True, slots=True)
class Plan:
    """How a transcript is shown.

    Attributes:
        start: from this place on the messages are shown as they are; all before it are in a summary.
        batch: places ``[first, end)`` that the next summary covers; None while none is due.
        required: no model may be called before that summary is made.
        why: in words, when one is due.
    """

    start: int
    batch: tuple[int, int] | None = None
    required: bool = False
    why: str = ""

    def check(self) -> None:
        """Refuse to go on without a summary that is required.

        Raises:
            SummaryRequired: naming what is to be summarised.
        """
        if self.required:
            first, end = self.batch or (self.start, self.start)
            raise SummaryRequired(first, end, self.why)


def cuts(messages: Sequence[Message], start: int = 0) -> tuple[int, ...]:
    """Places from ``start`` on at which the list may be parted: every call before has its result before, too (T17).

    ``start`` is such a place itself.
    """
    found = []
    waiting: set[str] = set()
    for place in range(start, len(messages)):
        message = messages[place]
        # A round's results may come in several messages; text between them belongs to them.
        if not waiting and message.role is not Role.TOOL:
            found.append(place)
        waiting -= {one.id for one in answers(message)}
        waiting |= {one.id for one in message.uses}
    if not waiting:
        found.append(len(messages))
    return tuple(found)


def plan(messages: Sequence[Message], covered: int, limits: WindowLimits, count: Count = estimated_tokens) -> Plan:
    """How to show these messages when a summary covers the first ``covered`` of them.

    Args:
        count: tokens of a list of messages; the more messages, the more tokens.

    Raises:
        Refused: ``count`` gave anything but a number of tokens.
    """
    count = _checked(count)
    shown = messages[covered:]
    tokens = count(shown)
    many, large = len(shown) > limits.messages, tokens > limits.tokens
    if not many and not large:
        return Plan(covered)
    why = f"{len(shown)} messages and about {tokens} tokens are in no summary yet"
    required = large or len(shown) > limits.messages + limits.backlog
    places = [place for place in cuts(messages, covered) if place > covered]
    end = _end(messages, covered, places, limits, count)
    if end is None:
        # One round that is larger than the window: no summary helps, since it can't be parted.
        return Plan(covered, None, required, f"{why}, and the round that is under way can't be summarised")
    return Plan(covered, (covered, end), required, why)


def _checked(count: Count) -> Count:
    """A count that is no number would compare as few enough for any limit."""

    def counted(messages: Sequence[Message]) -> int:
        tokens = count(messages)
        if type(tokens) is not int or tokens < 0:
            raise Refused("count= gives a whole number of tokens, 0 or more; without one nobody knows what fits")
        return tokens

    return counted


def _end(
    messages: Sequence[Message], covered: int, places: Sequence[int], limits: WindowLimits, count: Count
) -> int | None:
    """Where the batch ends: as far as one pass may go, but not into what stays verbatim."""
    newest = len(messages)
    last = None
    for place in places:
        if place >= newest:
            break  # the newest unit is never summarised: the model is about to answer it
        rest = messages[place:]
        if last is not None and len(rest) < limits.recent and count(rest) <= limits.tokens // 2:
            break
        batch = messages[covered:place]
        if last is not None and (len(batch) > limits.batch or count(batch) > limits.batch_tokens):
            break
        last = place
        if len(rest) <= limits.recent and count(rest) <= limits.tokens // 2:
            break
    return last
