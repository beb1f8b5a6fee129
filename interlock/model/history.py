"""History: a list of messages in an order that providers take, which can be cut down to a budget of tokens.

The order of roles is a table. A push that is not in it changes nothing and says why:

    first      → system, user, tool        (tool: of a history that begins where a provider holds the rest)
    system     → user
    user       → assistant
    assistant  → user, tool
    tool       → assistant, tool

A history holds messages and nothing else. Cutting it takes text out of the model's sight and no label out of any
journal: taint is not here, and no truncation makes it smaller (T2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from interlock.errors import Refused
from interlock.model.messages import Message, Role, ToolAnswer, ToolUse
from interlock.model.pressure import USUAL, natural, size_of

# What an estimate adds for the wrapping of a message, and for an image: the most that the large providers charge for
# one of usual size. An image's bytes say nothing about its tokens.
MESSAGE_TOKENS: Final = 4
IMAGE_TOKENS: Final = 1600

Counter: TypeAlias = Callable[[Message], int]

# By role, what it may follow; None is the beginning.
_AFTER: Final[dict[Role, frozenset[Role | None]]] = {
    Role.SYSTEM: frozenset({None}),
    Role.USER: frozenset({None, Role.ASSISTANT, Role.SYSTEM}),
    Role.ASSISTANT: frozenset({Role.USER, Role.TOOL}),
    Role.TOOL: frozenset({None, Role.ASSISTANT, Role.TOOL}),
}


class OutOfOrder(Refused):
    """A message was pushed after one that it can't follow. The history is as it was.

    Attributes:
        attempted: the role of the message that was refused.
        previous: the role of the last message, None at the beginning.
    """

    def __init__(self, attempted: Role, previous: Role | None) -> None:
        where = "be the first message" if previous is None else f"follow {previous.value!r}"
        allowed = " or ".join(sorted(role.value for role, after in _AFTER.items() if previous in after))
        super().__init__(f"{attempted.value!r} can't {where}; push {allowed} instead")
        self.attempted = attempted
        self.previous = previous

    def __reduce__(self) -> tuple[type[OutOfOrder], tuple[Role, Role | None]]:
        return type(self), (self.attempted, self.previous)


def estimated_tokens(message: Message) -> int:
    """An estimate that errs high: a token for three bytes of UTF-8, and some for the wrapping and for each image.

    The same for the same message on every machine, and linear in its length.
    """
    return MESSAGE_TOKENS + math.ceil(size_of([message]) * USUAL) + IMAGE_TOKENS * len(message.images)


class TokenBudget:
    """Tokens that may be used, of which parts can be reserved. For one owner: nothing here waits for a lock.

    Raises:
        Refused: ``limit`` is not an integer of at least 0.
    """

    __slots__ = ("_limit", "_used")

    def __init__(self, limit: int) -> None:
        self._limit = natural(limit, "limit")
        self._used = 0

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def used(self) -> int:
        """What has been reserved; never more than the limit."""
        return self._used

    @property
    def remaining(self) -> int:
        return self._limit - self._used

    def try_reserve(self, tokens: int) -> bool:
        """Reserve all of ``tokens`` and say True, or reserve nothing and say False.

        Raises:
            Refused: ``tokens`` is not an integer of at least 0. Nothing is reserved.
        """
        if natural(tokens, "tokens") > self.remaining:
            return False
        self._used += tokens
        return True

    def __repr__(self) -> str:
        return f"<TokenBudget {self._used} of {self._limit}>"


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a truncation did.

    Attributes:
        removed: the number of messages that are gone.
        reserved: was the reservation made? Without it the history, with what was to come, does not fit.
        tokens: what the history that is left takes.
    """

    removed: int
    reserved: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Request:
    """What a provider is asked: a codec's ``encoded(request.messages, system=request.system)`` gives its shape.

    Attributes:
        system: the system prompt.
        messages: the others, oldest first; none of them is a system message.
        temperature: of sampling.
    """

    system: str
    messages: tuple[Message, ...]
    temperature: float = 0.7


class History:
    """Messages in order, oldest first, each pushed under the table above.

    Raises:
        OutOfOrder: the messages that it is made of are not in such an order.
    """

    __slots__ = ("_messages",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: list[Message] = []
        for message in messages:
            self.push(message)

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<History: {len(self._messages)} messages>"

    def push(self, message: Message) -> None:
        """Add a message at the end.

        Raises:
            OutOfOrder: its role can't follow that of the last message. The history is as it was.
        """
        previous = self._messages[-1].role if self._messages else None
        if previous not in _AFTER[message.role]:
            raise OutOfOrder(message.role, previous)
        self._messages.append(message)

    def token_count(self, counter: Counter = estimated_tokens) -> int:
        """The tokens of all messages: estimated, or counted exactly by a counter of one message.

        Raises:
            Refused: the counter gave something that is no integer of at least 0. What it raises itself comes out.
        """
        return sum(self._counts(counter))

    def truncate_to_budget(
        self, budget: TokenBudget, *, needed: int = 0, counter: Counter = estimated_tokens
    ) -> Truncation:
        """Remove the oldest turns until the rest fits beside ``needed`` tokens, and reserve those.

        A turn begins with a user message and is removed whole, with its calls and their results. What fits already is
        left alone. A leading system message stays, and so does the latest turn, however large: without it there would
        be nothing to answer, and half of it would part calls from results (T17). Then everything before it is
        removed and the reservation is not made; what to do is the caller's choice.

        ``needed`` is what is reserved, for the answer to come: the budget is for requests that each take the history
        anew. Taint is not touched (T2).

        Returns:
            How many messages were removed, and whether the reservation was made. Afterwards, if any was removed, the
            history begins with its system message, if it had one, and then a user message. If the reservation was
            made, the history takes at most ``budget.remaining``.

        Raises:
            Refused: ``needed``, or what the counter gave, is no integer of at least 0. What the counter raises comes
                out. In each case history and budget are as they were.
        """
        room = budget.remaining - natural(needed, "needed")
        counts = self._counts(counter)
        head = int(bool(self._messages) and self._messages[0].role is Role.SYSTEM)
        fixed = sum(counts[:head])
        # What is left when everything from the head up to this place is gone.
        left = [fixed + total for total in accumulate(reversed(counts[head:]), initial=0)][::-1]
        start = head
        for place in _cuts(self._messages, head):
            if left[start - head] <= room:
                break
            start = place
        tokens = left[start - head]
        reserved = tokens <= room and budget.try_reserve(needed)
        del self._messages[head:start]
        return Truncation(start - head, reserved, tokens)

    def into_request(self, system: str, temperature: float = 0.7) -> Request:
        """The history as a request under this system prompt. Its own system message is left out; nothing changes."""
        rest = tuple(message for message in self._messages if message.role is not Role.SYSTEM)
        return Request(system, rest, temperature)

    def _counts(self, counter: Counter) -> list[int]:
        return [natural(counter(message), "a count of tokens") for message in self._messages]


def _cuts(messages: list[Message], head: int) -> Iterator[int]:
    """Places after the head where the history may begin, oldest first: at a user message, with no call across.

    The order of roles alone does not keep a call and its result together: a result may come after another user
    message. A result belongs to the latest call before it that has its id.
    """
    called: dict[str, int] = {}
    answers: dict[int, int] = {}  # by place of a call, the last place of its results
    for place, message in enumerate(messages):
        for block in message.blocks:
            if isinstance(block, ToolUse):
                called[block.id] = place
            elif isinstance(block, ToolAnswer) and block.id in called:
                answers[called[block.id]] = place
    crossed = 0  # the last place that has a result of a call before the one that is looked at
    for place, message in enumerate(messages):
        if place > head and message.role is Role.USER and place > crossed:
            yield place
        crossed = max(crossed, answers.get(place, 0))
