"""Proves T8 and T9 of the outbox: whatever happens in whatever order, what runs was released, and it runs once.

The model knows nothing of the code: for each draft a word for where it stands, its time, and whether its release still
holds. Two processes share a store. People release and reject, clocks jump both ways, labels enter, messages are taken
back, deliveries fail, are cut off, and race. After every step: what ran is what was released and alive, exactly once.
Mutations that this file catches: a draft that is sent twice, or after its rejection; a release that outlives labels, a
rewind or its time, whatever a clock says later; a cut-off delivery that is tried again; a draft that is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlock import Guard
from interlock.conversations import Conversations
from interlock.errors import Refused
from interlock.gate.outbox import Outbox
from interlock.model.entries import Decided, Taken, decode
from interlock.stores.memory_store import MemoryStore
from tests.approvals.desk import EVE, Sent, ToldClock
from tests.machines.test_grant_machine import asking_engine
from tests.outbox.box import staging

EXPIRY = timedelta(seconds=600)
OPEN = ("drafted", "released")


@dataclass
class Draft:
    """A draft in the model."""

    body: str
    at: datetime
    status: str = "drafted"


class OutboxMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.clock = ToldClock()
        self.store = MemoryStore()
        self.drafts: dict[str, Draft] = {}
        self.ran: list[str] = []
        self.released: list[str] = []
        self.fresh_labels = iter(f"private:l{n}" for n in range(100))
        self.kept = Conversations(self.store, "default", clock=self.clock)
        stored = self.kept.new("hello")
        self.id = stored.id
        self.locks = [self._lock() for _ in range(2)]
        # One store of drafts for both, as in a database.
        self.locks[1]._drafts = self.locks[0]._drafts
        self.locks[1].reload()
        self.guards = [lock.guard(self.kept.load(self.id).conversation) for lock in self.locks]
        assert self.guards[0].call("read_mail", {}, run=lambda: "mail").executed

    def _lock(self) -> Any:
        return staging(self.store, self.clock, engine=asking_engine(), settings=None)

    def _box(self, process: int) -> Outbox:
        box: Outbox = self.locks[process].outbox()
        return box

    def _seen(self) -> None:
        """An entry was written: what is over by its time is over for ever."""
        for one in self.drafts.values():
            if one.status in OPEN and self.clock.time >= one.at + EXPIRY:
                one.status = "expired"

    def _lapse(self) -> None:
        self._seen()
        for one in self.drafts.values():
            if one.status == "released":
                one.status = "drafted"

    def _alive(self, one: Draft) -> bool:
        return one.at <= self.clock.time < one.at + EXPIRY - timedelta(milliseconds=50)

    @rule(process=st.integers(0, 1), body=st.sampled_from(["x", "y", "z"]))
    def draft(self, process: int, body: str) -> None:
        guard: Guard = self.guards[process]
        sent = Sent()
        outcome = guard.call("send", {**EVE, "body": body}, run=sent)
        self._seen()
        assert not sent.calls
        name = outcome.decision.draft
        if not name:  # rejected three times
            assert outcome.decision.code == "asked_enough"
            return
        if name in self.drafts:
            known = self.drafts[name]
            assert (known.body, known.status in OPEN) == (body, True)
            return
        assert not any(one.body == body and one.status in OPEN for one in self.drafts.values())
        self.drafts[name] = Draft(body, guard.conversation.state.drafts[name].at and self._time(guard, name))

    def _time(self, guard: Guard, name: str) -> datetime:
        return datetime.fromisoformat(guard.conversation.state.drafts[name].at)

    @precondition(lambda self: self.drafts)
    @rule(process=st.integers(0, 1), data=st.data())
    def release(self, process: int, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.drafts)))
        one = self.drafts[name]
        try:
            box = self._box(process)
            box.release(box.find(name), "kim")
        except Refused:
            assert one.status != "drafted" or not self._alive(one), f"{one} could not be released"
            return
        assert one.status == "drafted", f"{one} was released"
        one.status = "released"
        self.released.append(name)
        self._seen()

    @precondition(lambda self: self.drafts)
    @rule(process=st.integers(0, 1), data=st.data())
    def reject(self, process: int, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.drafts)))
        one = self.drafts[name]
        try:
            self._box(process).reject(name, "kim")
        except Refused:
            assert one.status not in OPEN or not self._alive(one), f"{one} could not be rejected"
            return
        assert one.status in OPEN, f"{one} was rejected"
        one.status = "rejected"
        self._seen()

    def _due(self) -> list[str]:
        return [name for name, one in self.drafts.items() if one.status == "released" and one.at <= self.clock.time]

    @rule(process=st.integers(0, 1), fails=st.booleans())
    def deliver(self, process: int, fails: bool) -> None:
        def run(name: str, given: dict[str, Any]) -> str:
            self.ran.append(given["body"])
            if fails:
                raise OSError("gone")
            return "sent"

        due = self._due()
        before = len(self.ran)
        came = self._box(process).deliver(run)
        self._seen()
        names = [one.draft for one in came if one.outcome.executed]
        assert set(names) <= set(due)
        assert [self.drafts[name].body for name in names] == self.ran[before:]
        for name in due:
            if name not in names:
                assert not self._alive(self.drafts[name]), f"{name} was released and is not sent"
        for name in names:
            self.drafts[name].status = "failed" if fails else "sent"

    @rule(process=st.integers(0, 1))
    def a_delivery_is_cut_off(self, process: int) -> None:
        def run(name: str, given: dict[str, Any]) -> str:
            self.ran.append(given["body"])
            raise KeyboardInterrupt

        before = len(self.ran)
        try:
            self._box(process).deliver(run)
        except KeyboardInterrupt:
            (body,) = self.ran[before:]
            (one,) = [each for each in self.drafts.values() if each.body == body and each.status == "released"]
            one.status = "in doubt"
        self._seen()

    @rule()
    def two_processes_deliver_at_once(self) -> None:
        """The second one delivers between the first one's decision and its append: one append wins."""
        due = [name for name in self._due() if self._alive(self.drafts[name])]
        view = self.store.within("default")
        append, rival = type(view).append, []
        before = len(self.ran)

        def run(name: str, given: dict[str, Any]) -> str:
            self.ran.append(given["body"])
            return "sent"

        def between(own: Any, conversation: str, entries: Any, *, expected: int | None = None) -> Any:
            if not rival and any(isinstance(one, Decided) for one in entries):
                rival.append(None)
                self._box(1).deliver(run)
            return append(own, conversation, entries, expected=expected)

        type(view).append = between  # type: ignore[method-assign]
        try:
            self._box(0).deliver(run)
        finally:
            type(view).append = append  # type: ignore[method-assign]
        self._seen()
        ran = sorted(self.ran[before:])
        assert ran == sorted(self.drafts[name].body for name in due)
        for name in due:
            self.drafts[name].status = "sent"

    @rule(seconds=st.sampled_from([1, 100, 599, 700]))
    def time_passes(self, seconds: int) -> None:
        self.clock.jump(seconds=seconds)

    @rule(seconds=st.sampled_from([1, 300, 5000]))
    def the_clock_is_put_back(self, seconds: int) -> None:
        self.clock.jump(seconds=-seconds)

    @rule(process=st.integers(0, 1))
    def labels_enter(self, process: int) -> None:
        self.guards[process].admit("x", labels=[next(self.fresh_labels)], source="x")
        self._lapse()

    @rule()
    def messages_are_taken_back(self) -> None:
        stored = self.kept.load(self.id)
        stored.conversation.rewrite([])
        self.guards[0] = self.locks[0].guard(stored.conversation)
        self._lapse()

    @rule(process=st.integers(0, 1))
    def a_process_dies(self, process: int) -> None:
        self.guards[process] = self.locks[process].guard(self.kept.load(self.id, alone=True).conversation)
        self._seen()

    @invariant()
    def what_ran_was_released_once(self) -> None:
        if not hasattr(self, "id"):
            return
        view = self.store.within("default")
        taken = [one for one in (decode(each.body) for each in view.entries(self.id)) if isinstance(one, Taken)]
        names = [one.draft for one in taken]
        assert len(names) == len(set(names)), "a draft was sent twice"
        assert sorted(self.drafts[name].body for name in names) == sorted(self.ran)
        assert set(names) <= set(self.released)
        held = view.state(self.id).drafts
        for name, one in self.drafts.items():
            assert one.status == "expired" or held[name].status.value in (one.status, "expired"), (one, held[name])
            if one.status in ("rejected", "sent", "failed", "in doubt"):
                assert held[name].status.value == one.status


TestOutbox = OutboxMachine.TestCase
TestOutbox.settings = settings(max_examples=max(10, settings().max_examples // 20), stateful_step_count=20)
