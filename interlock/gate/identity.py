"""Which conversation does a host mean? For hosts that send deltas, fork their transcript, or have no stable id.

Conversation ids are ours; ids of hosts are chosen by hosts, repeat and can be forged. What a transcript can't help
carrying are the ids of its tool calls: an index from them to conversations recognises it. What can't be recognised goes
into a wider bucket that knows at least as much as any conversation it might be, never into a fresh, clean one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from interlock.gate.conversation import Conversation, SystemClock
from interlock.gate.steps import stamp
from interlock.locks import LOCK
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.messages import Message, ToolAnswer, ToolUse
from interlock.ports import Clock

MAX_CONVERSATIONS: Final = 10_000
MAX_CALLS: Final = 1_000_000


class Identities:
    """Conversations by the ids of their tool calls, per principal: whoever the host answers to (a user, a tenant).

    Bounded. What is pushed out leaves its labels in its principal's bucket, so forgetting only adds. Safe to share
    between threads.
    """

    def __init__(
        self, *, conversations: int = MAX_CONVERSATIONS, calls: int = MAX_CALLS, clock: Clock | None = None
    ) -> None:
        self._conversations, self._calls = conversations, calls
        self._clock = clock or SystemClock()
        # By principal and id, oldest first. A call id that came up in several conversations names all of them.
        self._known: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._owners: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self._buckets: dict[str, Conversation] = {}

    def note(self, conversation: Conversation, call_ids: Iterable[str] = (), *, principal: str = "") -> None:
        """Remember a conversation, by these call ids and by those that stand in its messages."""
        ids = {*call_ids, *calls_in(conversation.messages)}
        with LOCK:
            key = (principal, conversation.id)
            self._known[key] = conversation
            self._known.move_to_end(key)
            for one in ids:
                owners = self._owners.get((principal, one), ())
                if conversation.id not in owners:
                    self._owners[principal, one] = (*owners, conversation.id)
                self._owners.move_to_end((principal, one))
            while len(self._known) > self._conversations:
                (name, _), forgotten = self._known.popitem(last=False)
                self._join(self.bucket(name), forgotten.exposure, forgotten.id)
            while len(self._owners) > self._calls:
                (name, _), owners = self._owners.popitem(last=False)
                for owner in owners:
                    known = self._known.get((name, owner))
                    if known is not None:
                        self._join(self.bucket(name), known.exposure, owner)

    def recognise(
        self, messages: Iterable[Message] = (), call_ids: Iterable[str] = (), *, principal: str = ""
    ) -> Conversation:
        """The conversation that these messages, or these call ids, belong to.

        * All ids are known: the conversation that was active last among theirs, with the exposure of all of them.
        * Some are unknown: the same, and every leg joins; nobody knows what those calls brought.
        * None: the bucket of the principal, with the exposure of all conversations of the principal; and every leg if
          there were ids.
        """
        ids = sorted({*call_ids, *calls_in(messages)})
        with LOCK:
            owners = {owner for one in ids for owner in self._owners.get((principal, one), ())}
            # In the order of use: the last one is the one that is most likely meant.
            found = [one for (name, known), one in self._known.items() if name == principal and known in owners]
            strange = any(not self._alive(principal, one) for one in ids)
            if found:
                chosen, others = found[-1], found[:-1]
                self._known.move_to_end((principal, chosen.id))
            else:
                chosen = self.bucket(principal)
                others = [one for (name, _), one in self._known.items() if name == principal]
            for other in others:
                self._join(chosen, other.exposure, other.id)
            if strange:
                self._join(chosen, (*EVERY_LEG, *self.bucket(principal).exposure), "calls that nobody knows")
            return chosen

    def bucket(self, principal: str = "") -> Conversation:
        """The conversation of everything that can't be told apart for a principal."""
        with LOCK:
            if principal not in self._buckets:
                self._buckets[principal] = Conversation(clock=self._clock)
            return self._buckets[principal]

    def _alive(self, principal: str, call_id: str) -> bool:
        owners = self._owners.get((principal, call_id), ())
        return bool(owners) and all((principal, owner) in self._known for owner in owners)

    def _join(self, conversation: Conversation, labels: Iterable[Label], source: str) -> None:
        held = conversation.exposure
        new = tuple(sorted({one for one in labels if one not in held}))
        if new:
            now = stamp(self._clock.now())
            conversation.record(Admitted(now, f"as {source}", new, NO_DIGEST, 0, unheard=True))


def calls_in(messages: Iterable[Message]) -> set[str]:
    """Ids of all tool calls in messages: of the uses, and of the results that a host kept without their uses."""
    found: set[str] = set()
    for message in messages:
        found |= {block.id for block in message.blocks if isinstance(block, ToolUse | ToolAnswer)}
    return found
