"""Which conversation does a host mean? For hosts that send deltas, fork their transcript, or have no stable id.

Conversation ids are ours; ids of hosts are chosen by hosts, repeat and can be forged. What a transcript can't help
carrying are the ids of its tool calls: an index from them to conversations recognises it. What can't be recognised goes
into a wider bucket that knows at least as much as any conversation it might be, never into a fresh, clean one.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from interlock.gate.conversation import Conversation
from interlock.locks import LOCK
from interlock.model.entries import Opened
from interlock.model.labels import EVERY_LEG
from interlock.model.messages import Message, ToolAnswer, ToolUse
from interlock.model.state import State, apply

MAX_CONVERSATIONS: Final = 10_000
MAX_CALLS: Final = 1_000_000
MAX_OWNERS: Final = 32
FORGOTTEN_BITS: Final = 24
ANY: Final = "*"  # no id of a conversation


class Identities:
    """Conversations by the ids of their tool calls, per principal: whoever the host answers to (a user, a tenant).

    Bounded. What is pushed out leaves all that it held in a wider bucket, so forgetting only adds. Keep working
    conversations noted: one that is pushed out and goes on learns what its bucket does not. A provider that gives the
    same ids in every conversation (``call_0``) names all of them; note those with ids of your own. Threads may share
    one.
    """

    def __init__(self, *, conversations: int = MAX_CONVERSATIONS, calls: int = MAX_CALLS) -> None:
        self._conversations, self._calls = conversations, calls
        # By principal and id, oldest first. An id that came up in too many conversations, or in one that is forgotten,
        # names ANY: whichever conversation of the principal there was.
        self._known: OrderedDict[tuple[str, str], Conversation] = OrderedDict()
        self._owners: OrderedDict[tuple[str, str], frozenset[str]] = OrderedDict()
        self._buckets: OrderedDict[str, Conversation] = OrderedDict()
        self._lost = Conversation()
        self._forgotten = bytearray()  # one bit for each id that was forgotten; others that share it count as forgotten

    def note(self, conversation: Conversation, call_ids: Iterable[str] = (), *, principal: str = "") -> None:
        """Remember a conversation, by these call ids and by those that stand in its messages.

        Raises:
            JournalUnavailable: something had to be forgotten and what it held could not be kept; it is not forgotten.
        """
        ids = {*call_ids, *calls_in(conversation.messages)}
        with LOCK:
            key = (principal, conversation.id)
            self._known[key] = conversation
            self._known.move_to_end(key)
            for one in ids:
                known = self._owners.get((principal, one))
                if known is None:
                    known = frozenset({ANY}) if self._was_forgotten(principal, one) else frozenset()
                owners = known | {conversation.id}
                self._owners[principal, one] = owners if len(owners) <= MAX_OWNERS else frozenset({ANY})
                self._owners.move_to_end((principal, one))
            while len(self._known) > self._conversations:
                (name, _), forgotten = oldest = next(iter(self._known.items()))
                self.bucket(name).learn(forgotten.state, forgotten.id)  # first kept, then forgotten
                del self._known[oldest[0]]
            while len(self._owners) > self._calls:
                (name, one), owners = next(iter(self._owners.items()))
                for owner in owners:
                    if (name, owner) in self._known:
                        self.bucket(name).learn(self._known[name, owner].state, owner)
                self._forgotten = self._forgotten or bytearray(1 << (FORGOTTEN_BITS - 3))
                place = _place(name, one)
                self._forgotten[place >> 3] |= 1 << (place & 7)
                self._owners.popitem(last=False)

    def recognise(
        self, messages: Iterable[Message] = (), call_ids: Iterable[str] = (), *, principal: str = ""
    ) -> Conversation:
        """The conversation that these messages, or these call ids, belong to.

        * All ids are known: the conversation that was active last among theirs, with the exposure of all of them.
        * Some are unknown: the same, and every leg joins; nobody knows what those calls brought.
        * None: the bucket of the principal, with the exposure of all conversations of the principal; and every leg if
          there were ids.

        Raises:
            JournalUnavailable: what must join could not be recorded.
        """
        ids = {*call_ids, *calls_in(messages)}
        with LOCK:
            named = [self._owners.get((principal, one), frozenset()) for one in ids]
            owners = frozenset[str]().union(*named)
            anybodys = any(
                not one or any(owner == ANY or (principal, owner) not in self._known for owner in one) for one in named
            )
            # In the order of use: the last one is the one that is most likely meant.
            own = [one for (name, _), one in self._known.items() if name == principal]
            found = [one for one in own if one.id in owners]
            chosen = found[-1] if found else self.bucket(principal)
            if found:
                self._known.move_to_end((principal, chosen.id))
            for other in own if anybodys or not found else found:
                if other is not chosen:
                    chosen.learn(other.state, other.id)
            if anybodys:
                bucket = self.bucket(principal)
                if bucket is not chosen:
                    chosen.learn(bucket.state, bucket.id)
                # A conversation that nobody knows had any labels there are.
                chosen.learn(_STRANGER, "calls that nobody knows")
            return chosen

    def _was_forgotten(self, principal: str, call_id: str) -> bool:
        place = _place(principal, call_id)
        return bool(self._forgotten) and bool(self._forgotten[place >> 3] >> (place & 7) & 1)

    def bucket(self, principal: str = "") -> Conversation:
        """The conversation of everything that can't be told apart for a principal."""
        with LOCK:
            if principal not in self._buckets:
                self._buckets[principal] = made = Conversation()
                made.learn(self._lost.state, "forgotten buckets")
                while len(self._buckets) > self._conversations:
                    oldest = next(iter(self._buckets))
                    self._lost.learn(self._buckets[oldest].state, "a bucket")
                    del self._buckets[oldest]
            self._buckets.move_to_end(principal)
            return self._buckets[principal]


def _place(principal: str, call_id: str) -> int:
    data = repr((principal, call_id)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=4).digest(), "big") >> (32 - FORGOTTEN_BITS)


# What a conversation holds of which nothing is known.
_STRANGER: Final = apply(State(), Opened("", "", labels=EVERY_LEG))


def calls_in(messages: Iterable[Message]) -> set[str]:
    """Ids of all tool calls in messages: of the uses, and of the results that a host kept without their uses."""
    found: set[str] = set()
    for message in messages:
        found |= {block.id for block in message.blocks if isinstance(block, ToolUse | ToolAnswer)}
    return found
