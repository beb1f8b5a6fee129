"""A conversation: messages that the host owns, above a journal that never forgets (T2).

The messages may be pushed, and by the host even dropped: taint does not live there. It lives in the journal that the
first guard binds, and until then in entries that wait for it.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NoReturn

from interlock.errors import JournalUnavailable, Refused, WrongJournal
from interlock.gate.steps import stamp
from interlock.locks import LOCK
from interlock.model.digests import content_digest
from interlock.model.entries import Admitted, Entry, Opened, Typed
from interlock.model.labels import Label, Taint, label
from interlock.model.marks import heard_in
from interlock.model.messages import Message
from interlock.model.origins import said_by_person
from interlock.model.state import State, apply
from interlock.ports import Clock, Journal

PASTED = Label("untrusted:paste")
IMAGE = Label("private:image")


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class Conversation:
    """One conversation of a person with an agent.

    Its taint belongs to it for ever: there is nothing here that makes it smaller. Only text given to :meth:`user` and
    :meth:`say` counts as typed by the person; a message in the user role does not.
    """

    def __init__(self, *, namespace: str = "default", labels: Iterable[str] = (), clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._id = f"c-{secrets.token_hex(8)}"
        if not namespace or len(namespace) > 128 or not namespace.isprintable():
            raise Refused("a namespace is printable text of 1 to 128 characters")
        self._namespace = namespace
        self._messages: list[Message] = []
        self._journal: Journal | None = None
        brought = tuple(sorted({label(one) for one in labels}))
        self._waiting: list[Entry] = [Opened(self._now(), self._id, namespace, "", brought)]
        self._early = apply(State(), self._waiting[0])

    @classmethod
    def new(cls) -> Conversation:
        """An empty conversation. It is clean because it is new."""
        return cls()

    @classmethod
    def user(cls, text: str) -> Conversation:
        """A new conversation that begins with text which the person typed."""
        conversation = cls()
        conversation.say(text)
        return conversation

    @classmethod
    def from_messages(cls, messages: Iterable[Message]) -> Conversation:
        """A new, *clean* conversation that shows these messages.

        Wrong for continuing a stored conversation: nothing is known about where the messages came from. Use
        :meth:`resumed` for that. No text in them counts as typed.
        """
        conversation = cls()
        for message in messages:
            conversation.push(message)
        return conversation

    @classmethod
    def resumed(cls, messages: Iterable[Message], taint: Taint | Iterable[str]) -> Conversation:
        """Continue a conversation: these messages, and the labels that had entered it. No text counts as typed.

        Pass the old conversation's ``exposure``, which has the labels of calls that were still running too.
        """
        conversation = cls(labels=tuple(taint))
        for message in messages:
            conversation.push(message)
        return conversation

    @property
    def id(self) -> str:
        return self._id

    @property
    def namespace(self) -> str:
        return self._namespace

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model said and saw, oldest first."""
        return tuple(self._messages)

    @property
    def state(self) -> State:
        """Security state, from the journal if one is bound."""
        return self._early if self._journal is None else self._journal.state(self._id)

    @property
    def taint(self) -> Taint:
        """Labels that have entered, each with its first source."""
        return self.state.taint

    @property
    def exposure(self) -> Taint:
        """Taint joined with the labels of calls that were allowed and have no outcome yet. Decisions use this."""
        return self.state.exposure

    def push(self, message: Message) -> None:
        """Add a message. An image arms ``private:image`` before it can be seen."""
        for image in message.images:
            self.record(Admitted(self._now(), "image", (IMAGE,), content_digest(image.media_type), len(image.payload)))
        self._messages.append(message)

    def say(self, text: str, *, pasted: bool = False) -> None:
        """Add text that the person typed, or, with ``pasted``, text that they brought from somewhere else.

        Pasted text arms ``untrusted:paste`` and vouches for nothing.
        """
        if not isinstance(text, str):
            raise Refused("a person says text")
        self.record(self._pasted(text) if pasted else self._typed(text))
        self._messages.append(Message.user(text))

    def record(self, entry: Entry) -> None:
        """Journal one fact, or keep it for the journal that is bound first."""
        if self._journal is None:
            with LOCK:
                if self._journal is None:  # no other thread has bound it meanwhile
                    self._early = apply(self._early, entry)
                    self._waiting.append(entry)
                    return
        _done(self._journal.append(self._id, (entry,)))

    def bind(self, journal: Journal) -> None:
        """Give this conversation to a journal, once.

        Raises:
            WrongJournal: it writes to another journal already; two gates on one conversation must share it, or each
                would know only half of the taint.
        """
        with LOCK:
            if self._journal is None:
                _done(journal.open(tuple(self._waiting)))
                self._journal = journal
                self._waiting = []
            elif self._journal is not journal:
                raise WrongJournal(
                    f"conversation {self._id} already writes to another journal;"
                    " build both Interlocks with the same journal="
                )

    def _typed(self, text: str) -> Typed:
        return Typed(self._now(), content_digest(text), len(text), said_by_person(text))

    def _pasted(self, text: str) -> Admitted:
        return Admitted(self._now(), "paste", (PASTED,), content_digest(text), len(text), heard=heard_in(text))

    def _now(self) -> str:
        return stamp(self._clock.now())

    def __len__(self) -> int:
        return len(self._messages)

    def is_empty(self) -> bool:
        return not self._messages

    def __bool__(self) -> bool:
        return True  # an empty conversation is still a conversation

    def __copy__(self) -> NoReturn:
        raise Refused("a conversation can't be copied: two copies would part with one taint; share the object")

    def __deepcopy__(self, _memo: Any) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise Refused("a conversation can't be pickled: its labels live in its journal; pass its id instead")

    def __repr__(self) -> str:
        return f"<Conversation {self._id}: {len(self._messages)} messages, {', '.join(self.taint) or 'clean'}>"


def _done(reply: object) -> None:
    """A journal that gives anything but a state has not written: a coroutine, for example, that nobody awaits."""
    if isinstance(reply, State):
        return
    if inspect.iscoroutine(reply):
        reply.close()
    raise JournalUnavailable(f"the journal answered {type(reply).__name__} instead of a state; nothing is on record")
