"""The transcript of a conversation: what the model said and saw, and which labels covered it.

Frozen, and changed by making a new one. It may be rewritten, shortened and rolled back as the host likes: the labels of
the conversation live in its journal and are not touched here (T2). After every operation each tool use has exactly one
result (T17), except that the calls of the very last message may still be under way.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from interlock.errors import Refused
from interlock.model.labels import Label
from interlock.model.messages import Block, Message, Role, Text, ToolAnswer, ToolUse, plain
from interlock.model.pressure import Pressure
from interlock.model.turns import NO_OUTCOME

# The labels that stood when a message entered; None when a rewrite made that uncertain.
Cover: TypeAlias = tuple[Label, ...] | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A transcript as it stood before a run, of one conversation. ``covers`` is as long as ``messages``."""

    conversation: str
    messages: tuple[Message, ...]
    covers: tuple[Cover, ...] = ()

    def __post_init__(self) -> None:
        if len(self.covers) != len(self.messages):
            raise Refused("a snapshot has one cover for each message; take it with conversation.snapshot()")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A whole list of messages that a rewrite, or otherwise a rollback, replaced."""

    messages: tuple[Message, ...]
    rewrite: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """Messages and what is known of them.

    Attributes:
        covers: as long as ``messages``.
        past: what was replaced during the current run, oldest first.
        pressure: how full the model's context is.
    """

    messages: tuple[Message, ...] = ()
    covers: tuple[Cover, ...] = ()
    past: tuple[Replaced, ...] = ()
    pressure: Pressure = field(default_factory=Pressure)

    @property
    def rewritten(self) -> tuple[tuple[Message, ...], ...]:
        """The whole lists that rewrites replaced during the current run, oldest first."""
        return tuple(one.messages for one in self.past if one.rewrite)

    def pushed(self, message: Message, cover: Cover) -> Transcript:
        """One message more."""
        return replace(self, messages=(*self.messages, message), covers=(*self.covers, cover))

    def said(self, text: str, cover: Cover) -> Transcript:
        """The person's text, folded into a message that it can't follow: one of theirs, or the results of a round.

        Raises:
            Refused: calls have no result yet; text can stand neither before nor between their results.
        """
        self.demand_closed()
        if not self.messages or self.messages[-1].role not in (Role.USER, Role.TOOL):
            return self.pushed(Message.user(text), cover)
        last = self.messages[-1]
        folded = Message(last.role, (*last.blocks, Text(text)))
        return replace(
            self, messages=(*self.messages[:-1], folded), covers=(*self.covers[:-1], joined(self.covers[-1], cover))
        )

    def demand_closed(self) -> None:
        """Refuse to put anything between a call and its result.

        Raises:
            Refused: calls of the last message have no result yet.
        """
        if open_uses(self.messages):
            raise Refused("calls of the last message have no result yet: push their results first")

    def replaced(self, messages: Sequence[Message]) -> Transcript:
        """Another list of messages in place of this one, which is kept in ``rewritten``."""
        new = tuple(messages)
        return replace(
            self,
            messages=new,
            covers=covers_after(self.messages, self.covers, new),
            past=(*self.past, Replaced(self.messages, rewrite=True)),
            pressure=self.pressure.rewritten(),
        )

    def begun(self) -> Transcript:
        """A run starts: what earlier runs replaced is forgotten here."""
        return replace(self, past=())

    def rolled_back(self, before: Snapshot, cover: Cover, own: Callable[[str], bool]) -> Transcript:
        """The messages before a failed run, without the prompt that started it.

        The last message goes if it is nothing but text of the person's own: a prompt, or several that were folded into
        one. Results of a round stay, with whatever was folded into them, or the round's calls would lose them.

        Args:
            cover: what covers results that are made up for calls that have none in the snapshot.
            own: did the person type exactly this text?
        """
        messages, covers = answered(before.messages, before.covers, cover)
        if messages and _prompt(messages[-1], own):
            messages, covers = messages[:-1], covers[:-1]
        return replace(
            self,
            messages=messages,
            covers=covers,
            past=(*self.past, Replaced(self.messages, rewrite=False)),
            pressure=self.pressure.rewritten(),
        )


def open_uses(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Calls of the last round that have no result yet, in order."""
    told: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            return tuple(use for use in message.uses if use.id not in told)
        if not _answering(message):
            return ()
        told |= {one.id for one in answers(message)}
    return ()


def unpaired(messages: Iterable[Message]) -> Counter[str]:
    """How often, by id, a call has not exactly one result in its round, or a result has no call (T17).

    Calls of the last round that are still open are left out. By rounds, since some providers give the same ids again
    and again.
    """
    found: Counter[str] = Counter()
    waiting: set[str] = set()
    for message in messages:
        told = [one.id for one in answers(message)]
        found.update(one for place, one in enumerate(told) if one not in waiting or one in told[:place])
        waiting -= set(told)
        if not _answering(message):
            found.update(waiting)  # somebody spoke before the round was answered
            waiting = set()
        uses = [use.id for use in message.uses]
        found.update(one for place, one in enumerate(uses) if one in uses[:place])
        waiting |= set(uses)
    return found


def parted(old: Sequence[Message], new: Sequence[Message]) -> tuple[str, ...]:
    """Ids of calls that a new list parts from their results although the old one did not; sorted.

    A call may be without a result only at the end, and only if it was so at the end of the old list.
    """
    more = unpaired(new) - unpaired(old)
    still = Counter(use.id for use in open_uses(new)) - Counter(use.id for use in open_uses(old))
    if not still and open_uses(new) and _last_asked(old) != _last_asked(new):
        still = Counter(use.id for use in open_uses(new))  # the same ids, of another round
    return tuple(sorted(more + still))


def _last_asked(messages: Sequence[Message]) -> str:
    return next((_text_of(one) for one in reversed(messages) if one.uses), "")


def _answering(message: Message) -> bool:
    """Does a message belong to the results of a round? Some providers put them into the user's role."""
    return message.role is Role.TOOL or (message.role is Role.USER and bool(answers(message)))


def answers(message: Message) -> tuple[ToolAnswer, ...]:
    """The results in a message."""
    return tuple(block for block in message.blocks if isinstance(block, ToolAnswer))


def answered(
    messages: tuple[Message, ...], covers: tuple[Cover, ...], cover: Cover
) -> tuple[tuple[Message, ...], tuple[Cover, ...]]:
    """The same messages, with a result that says so for every call of the last round that has none (T17).

    Args:
        cover: what covers such a result.
    """
    waiting = open_uses(messages)
    if not waiting:
        return messages, covers
    missing = Message(Role.TOOL, tuple(ToolAnswer(use.id, NO_OUTCOME, is_error=True) for use in waiting))
    return (*messages, missing), (*covers, cover)


def covers_after(old: Sequence[Message], covers: Sequence[Cover], new: Sequence[Message]) -> tuple[Cover, ...]:
    """What covers each message of a rewritten list.

    Messages at the same place from the beginning keep their covers, and so does one that stood exactly once before and
    stands exactly once now. Of all others nothing is known.
    """
    kept = common(old, new)
    known = dict(zip(map(_key, old), covers, strict=True))
    before, after = Counter(map(_key, old)), Counter(map(_key, new))
    moved = (known[key] if before[key] == after[key] == 1 else None for key in map(_key, new[kept:]))
    return (*covers[:kept], *moved)


def common(old: Sequence[Message], new: Sequence[Message]) -> int:
    """How many messages two lists share from the beginning."""
    for place, (one, other) in enumerate(zip(old, new, strict=False)):
        if one is not other and _key(one) != _key(other):
            return place
    return min(len(old), len(new))


class Everything:
    """Everything that was ever said, in the order in which it was first there, gathered step by step.

    A list that continues the one before adds what is new at its end, equal or not to what was said earlier. Of any
    other list a message counts as new when it stands there oftener than it was found so far. Text that was folded into
    the last message makes it longer, and no second message.
    """

    def __init__(self) -> None:
        self.found: list[Message] = []
        self._current: list[Message] = []
        self._times: Counter[Message | str] = Counter()
        self._now: Counter[Message | str] = Counter()

    def advance(self, keep: int, new: Sequence[Message]) -> None:
        """The list is now its first ``keep`` messages and these. Costs as much as what changes."""
        current = self._current
        dropped, onward = current[keep:], not current[keep:]
        if dropped and new and self.found and len(dropped) == 1 and grew(dropped[0], new[0]):
            self._swap(new[0])
            new, onward = new[1:], True
        else:
            self._now.subtract(map(_key, dropped))
            del current[keep:]
        for message in new:
            key = _key(message)
            self._now[key] += 1
            if onward or self._now[key] > self._times[key]:
                self._times[key] += 1
                self.found.append(message)
        current += new

    def _swap(self, message: Message) -> None:
        """The last message of the list became longer."""
        old, new = _key(self._current[-1]), _key(message)
        place = len(self.found) - 1
        while self.found[place] != self._current[-1]:
            place -= 1
        self.found[place] = message
        for counter in (self._times, self._now):
            counter[old] -= 1
            counter[new] += 1
        self._current[-1] = message


def ever(states: Iterable[Sequence[Message]]) -> tuple[Message, ...]:
    """Everything that stood in any of these lists; see :class:`Everything`."""
    gathered = Everything()
    before: Sequence[Message] = ()
    for state in states:
        keep = common(before, state)
        gathered.advance(keep, state[keep:])
        before = state
    return tuple(gathered.found)


def grew(old: Message, new: Message) -> bool:
    """Is the second message the first one with text folded into it?"""
    blocks = len(old.blocks)
    return old.role is new.role and old.role in (Role.USER, Role.TOOL) and new.blocks[:blocks] == old.blocks


def _key(message: Message) -> Message | str:
    """What equal messages share. Arguments of calls can't be hashed, so a message that has some is its text form."""
    return _text_of(message) if message.uses else message


def _text_of(message: Message) -> str:
    parts = [
        [block.id, block.name, block.server, plain(block.arguments)] if isinstance(block, ToolUse) else repr(block)
        for block in message.blocks
    ]
    return json.dumps([message.role.value, parts], sort_keys=True)


def _prompt(message: Message, own: Callable[[str], bool]) -> bool:
    return message.role is Role.USER and all(_typed(block, own) for block in message.blocks)


def _typed(block: Block, own: Callable[[str], bool]) -> bool:
    return isinstance(block, Text) and own(block.text)


def joined(one: Cover, other: Cover) -> Cover:
    """What covers a message that both cover; what is unknown stays unknown."""
    return None if one is None or other is None else tuple(sorted({*one, *other}))
