"""The outbox of one namespace: what waits for a person there, and the delivery of what a person has released."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from interlock.errors import JournalUnavailable, Refused, Tampered
from interlock.gate import outbox_steps
from interlock.gate.drivers import Run, World, adrive, drive
from interlock.gate.steps import Rules
from interlock.model.digests import Digest
from interlock.model.drafts import WAITING, Draft, Kept, Status, read_draft, shown_digest
from interlock.model.labels import Label
from interlock.model.names import namespace_name
from interlock.model.results import Outcome, printable
from interlock.model.times import stamp
from interlock.ports import DraftStore, Journal, Store

# What is stored before its entry is on record must not be taken for what is left over.
YOUNG: Final = timedelta(minutes=10)
OVER: Final = frozenset({Status.REJECTED, Status.EXPIRED, Status.SENT, Status.FAILED})


@dataclass(frozen=True, slots=True)
class Shown:
    """A draft as a person sees it.

    Attributes:
        labels: what is shown of labels: those at the drafting, and all that has entered since.
        digest: names exactly this: the draft, and these labels.
    """

    draft: Draft
    kept: Kept
    labels: tuple[Label, ...]

    @property
    def digest(self) -> Digest:
        return shown_digest(self.kept.body, self.labels)

    @property
    def since(self) -> tuple[Label, ...]:
        """Labels that have entered since it was drafted."""
        return tuple(one for one in self.labels if one not in self.kept.bound.labels)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of one released draft. ``outcome.executed`` says whether the tool was entered.

    Its result is on record, and its labels are in its conversation, but no model has seen it.
    """

    conversation: str
    draft: str
    outcome: Outcome

    @property
    def note(self) -> str:
        """A sentence of ours for the conversation's transcript, which holds nothing that anybody else wrote."""
        tool = self.outcome.tool
        if not self.outcome.executed:
            return f"The draft {self.draft} ({tool}) was not sent: {self.outcome.decision.code}."
        if self.outcome.is_error:
            return f"The draft {self.draft} ({tool}) was released by a person, and sending it failed."
        return f"The draft {self.draft} ({tool}) was released by a person and has been sent."


class Outbox:
    """The drafts of one namespace. Whoever may open it may release: who that is, is for the caller to know.

    Raises from every method:
        OutboxUnavailable, JournalUnavailable: the store can't be read or written.
        Tampered: what is stored is not what was drafted.
    """

    def __init__(
        self, current: Callable[[], tuple[World, Rules | None]], namespace: str, conversation: str | None = None
    ) -> None:
        """Use :meth:`interlock.Interlock.outbox`, or :meth:`interlock.Guard.outbox` for that of one ``conversation``.

        Without rules drafts can be shown and rejected only.

        Raises:
            Refused: not a namespace.
        """
        world, _ = current()
        if world.drafts is None:
            raise Refused("there is no outbox here")
        journal = world.journal
        self.namespace = namespace_name(namespace)
        self._journal: Journal = journal.within(namespace) if isinstance(journal, Store) else journal
        self._store: DraftStore = world.drafts
        self._clock = world.clock
        self._current = current
        self._only = conversation
        # A conversation that is kept in a session has its journal there, and only its guard can reach it.
        self._elsewhere = conversation is None and not isinstance(journal, Store)

    def drafts(self) -> list[Shown]:
        """What waits for a person, for its delivery, or is in doubt, oldest first; what is over is not stored any more
        afterwards."""
        return [one for one in map(self._shown, self._stored()) if one is not None]

    def find(self, name: str) -> Shown:
        """One draft by its id, or by the beginning of it that is no other's.

        Raises:
            Refused: there is none, or there are several.
        """
        stored = self._one(name)
        found = self._shown(stored)
        if found is None:
            raise Refused(f"draft {stored[2]} is over")
        return found

    def release(self, shown: Shown, by: str) -> Kept:
        """Decide a draft anew and let it be delivered once, as it was shown.

        Raises:
            Refused: it does not wait any more, more has entered than was shown, or the policy denies it now.
        """
        world, rules = self._in_force()
        draft = shown.draft
        spec = rules.manifest.spec(draft.tool)
        seen = {*shown.labels, *spec.private, *spec.untrusted, *spec.opens}
        steps = outbox_steps.release(draft.question.conversation, draft, seen, printable(by), rules)
        return drive(steps, world)

    def reject(self, name: str, by: str) -> Kept:
        """Let a draft never be sent.

        Raises:
            Refused: it does not wait any more.
        """
        _, conversation, whole = self._one(name)
        return drive(outbox_steps.reject(conversation, whole, printable(by)), self._world())

    def deliver(self, run: Run) -> list[Delivered]:
        """Run what is released, each once, as ``run(name, arguments)`` with exactly its arguments.

        What another process delivers at the same time is left out. A delivery that is cut off is in doubt, and nobody
        tries it again.
        """
        found = []
        for conversation, name in self._released():
            world, rules = self._in_force()
            outcome = drive(outbox_steps.deliver(conversation, name, rules), world, run)
            if outcome is not None:
                found.append(Delivered(conversation, name, outcome))
        return found

    async def adeliver(self, run: Run) -> list[Delivered]:
        """Like :meth:`deliver`, in the running event loop; ``run`` may be a coroutine function."""
        found = []
        for conversation, name in self._released():
            world, rules = self._in_force()
            outcome = await adrive(outbox_steps.deliver(conversation, name, rules), world, run)
            if outcome is not None:
                found.append(Delivered(conversation, name, outcome))
        return found

    def _released(self) -> list[tuple[str, str]]:
        released = []
        for _, conversation, name in self._stored():
            kept = self._kept(conversation, name)
            if kept is not None and kept.status is Status.RELEASED:
                released.append((conversation, name))
        return released

    def _world(self) -> World:
        return self._current()[0].over(self._journal, {})

    def _in_force(self) -> tuple[World, Rules]:
        """Read once per step, so that a reload never splits a decision."""
        world, rules = self._current()
        if rules is None:
            raise Refused("releasing and delivering need the rules; name the operator's configuration")
        return world.over(self._journal, {}), rules

    def _one(self, name: str) -> tuple[str, str, str]:
        """A stored draft, whether or not it can be shown."""
        meant = [one for one in self._stored() if one[2].startswith(name)]
        exact = [one for one in meant if one[2] == name]
        if len(exact or meant) != 1:
            raise Refused(f"{printable(name)} is not one draft in namespace {printable(self.namespace)}; see the list")
        return (exact or meant)[0]

    def _stored(self) -> Iterator[tuple[str, str, str]]:
        after = ""
        while page := self._store.stored(self.namespace, after=after):
            yield from (one for one in page if self._ours(one[1]))
            after = page[-1][2]

    def _ours(self, conversation: str) -> bool:
        if self._only is not None:
            return conversation == self._only
        if not self._elsewhere:
            return True
        try:
            self._journal.state(conversation)
        except JournalUnavailable:
            return False
        return True

    def _kept(self, conversation: str, name: str) -> Kept | None:
        return self._journal.state(conversation).drafts.get(name)

    def _shown(self, stored: tuple[str, str, str]) -> Shown | None:
        at, conversation, name = stored
        state = self._journal.state(conversation)
        kept = state.drafts.get(name)
        now = self._clock.now()
        if kept is None:
            if at < stamp(now - YOUNG):
                self._store.drop(self.namespace, conversation, name)
            return None
        late = kept.status in WAITING and stamp(now) >= kept.expires
        if kept.status in OVER or late:
            self._store.drop(self.namespace, conversation, name)
            return None
        body = self._store.draft(self.namespace, conversation, name)
        if body is None:
            raise Tampered(0, f"draft {name} is not stored any more; reject it")
        draft = read_draft(body, kept.body)
        return Shown(draft, kept, tuple(outbox_steps.own_labels(draft, kept, state)))
