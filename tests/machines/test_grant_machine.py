"""Proves T9: whatever happens in whatever order, a yes runs at most the calls that it was given for, in its time.

The model knows nothing of the code. It has the questions that were asked, each with its call, its time and how many
calls it is about, and a word for what became of it. Two processes share a store; each takes the conversation up again
after a crash. Clocks jump both ways, messages are taken back, labels enter, files of the conversation's journal are
written into another one. After every step: what ran is what was granted, and what is void in the model runs nowhere.
Mutations that this file catches: a grant that is not used up, or used up by another call; an expiry that a clock put
back undoes; a rewind, new labels, a crash or a fork that leave a grant alive; a consumption outside compare-and-set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from interlock import ApprovalRules, Call, Guard, Interlock, Question
from interlock.conversations import Conversations
from interlock.errors import Refused
from interlock.model.entries import Decided, Opened, decode
from interlock.model.grants import Status
from interlock.model.settings import parse_settings
from interlock.policy.reference import ReferenceEngine
from interlock.stores.memory_store import MemoryStore
from tests.approvals.desk import MANIFEST, ToldClock
from tests.strategies import embedded

SENDS = [{"to": "eve@evil.test", "body": "x"}, {"to": "kim@corp.example", "body": "x"}]
EXPIRY = 600.0


@dataclass
class Asked:
    """A question in the model."""

    which: int
    uses: int
    at: datetime
    doubtful: bool
    status: str = "pending"


class GrantMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.clock = ToldClock()
        self.store = MemoryStore()
        self.asked: dict[str, Asked] = {}
        self.ran: list[tuple[str, int]] = []
        self.doubtful: set[int] = set()
        self.fresh_labels = iter(f"private:l{n}" for n in range(100))
        self.kept = Conversations(self.store, "default", clock=self.clock)
        stored = self.kept.new("hello")
        self.id = stored.id
        self.handles = [stored, self.kept.load(self.id)]
        self.guards = [self._guard(one) for one in self.handles]
        assert self.guards[0].call("read_mail", {}, run=lambda: "mail").executed

    def _guard(self, stored: Any) -> Guard:
        lock = Interlock(
            manifest=MANIFEST,
            journal=self.store,
            clock=self.clock,
            engine=asking_engine(),
            approvals=ApprovalRules(seconds=60, expiry=EXPIRY),
        )
        return lock.guard(stored.conversation)

    def _seen(self) -> None:
        """An entry was written: what is over by its time is over for ever."""
        for one in self.asked.values():
            if one.status in ("pending", "granted") and self.clock.time >= one.at + timedelta(seconds=EXPIRY):
                one.status = "expired"

    def _usable(self, which: int) -> list[Asked]:
        now = self.clock.time
        return [
            one
            for one in self.asked.values()
            if one.status == "granted"
            and one.which == which
            and one.uses
            and one.at <= now
            # That it may have happened already was not shown to whoever answered before.
            and (one.doubtful or which not in self.doubtful)
        ]

    @rule(process=st.integers(0, 1), which=st.integers(0, 1), times=st.integers(1, 3))
    def propose(self, process: int, which: int, times: int) -> None:
        """One batch of identical calls; those that are allowed run at once."""
        self.clock.now()
        self._seen()
        granted = self._usable(which)
        left = sum(one.uses for one in granted)
        ticket = self.guards[process].propose(*[Call("send", SENDS[which], f"c{n}") for n in range(times)])
        assert len(ticket.allowed) <= left, f"{len(ticket.allowed)} of {times} run, {left} were granted"
        assert len(ticket.allowed) == min(times, left), "a grant that fits was not found"
        for call_id, allowed in ticket.allowed.items():
            name = allowed.decision.grant
            one = self.asked[name]
            assert (one.status, one.which) == ("granted", which)
            one.uses -= 1
            if not one.uses:
                one.status = "used"
            self.ran.append((name, allowed.number))
            self.guards[process].observe(ticket, call_id, "sent")
        for question in ticket.questions.values():
            known = self._note(question, which)
            assert (known.status, known.which) == ("pending", which)

    def _note(self, question: Question, which: int) -> Asked:
        at = datetime.fromisoformat(question.at)
        return self.asked.setdefault(question.id, Asked(which, len(question.call_ids), at, which in self.doubtful))

    @precondition(lambda self: any(one.status == "pending" for one in self.asked.values()))
    @rule(data=st.data(), process=st.integers(0, 1), yes=st.booleans())
    def answer(self, data: st.DataObject, process: int, yes: bool) -> None:
        self.clock.now()
        name = list(self.asked)[
            data.draw(st.integers(0, len(self.asked) - 1))
        ]  # ids are drawn at random, places are not
        one = self.asked[name]
        in_time = one.at <= self.clock.time < one.at + timedelta(seconds=EXPIRY) - timedelta(milliseconds=5)
        ok = one.status == "pending" and in_time
        try:
            self.guards[process].answer(name, "approve" if yes else "refuse", by="kim")
        except Refused:
            assert not ok, f"an open question could not be answered: {one}"
            return
        assert ok, f"{one} was answered"
        one.status = "granted" if yes else "refused"
        self._seen()

    @rule(seconds=st.sampled_from([1, 100, 599, 700]))
    def time_passes(self, seconds: int) -> None:
        self.clock.jump(seconds=seconds)

    @rule(seconds=st.sampled_from([1, 300, 5000]))
    def the_clock_is_put_back(self, seconds: int) -> None:
        self.clock.jump(seconds=-seconds)

    @rule(process=st.integers(0, 1))
    def a_process_dies(self, process: int) -> None:
        self.handles[process] = self.kept.load(self.id)
        self.guards[process] = self._guard(self.handles[process])

    @rule(process=st.integers(0, 1), which=st.integers(0, 1))
    def a_process_dies_before_the_call_is_made(self, process: int, which: int) -> None:
        """Or after it: nobody knows, so the grant is gone, and the same call is asked about with that in mind."""
        self.clock.now()
        self._seen()
        granted = self._usable(which)
        ticket = self.guards[process].propose(Call("send", SENDS[which], "x"))
        assert bool(ticket.allowed) is bool(granted)
        for allowed in ticket.allowed.values():
            one = self.asked[allowed.decision.grant]
            one.uses -= 1
            one.status = one.status if one.uses else "used"
            self.ran.append((allowed.decision.grant, allowed.number))
            self.doubtful.add(which)
        for question in ticket.questions.values():
            self._note(question, which)
        self.handles[process] = self.kept.load(self.id, alone=True)
        self.guards[process] = self._guard(self.handles[process])

    @rule()
    def messages_are_taken_back(self) -> None:
        """By the first process, whose list of messages is the newest here."""
        stored = self.kept.load(self.id)
        stored.conversation.rewrite([])
        self.handles[0], self.guards[0] = stored, self._guard(stored)
        self._void()

    @rule(process=st.integers(0, 1))
    def labels_enter(self, process: int) -> None:
        self.guards[process].admit("x", labels=[next(self.fresh_labels)], source="x")
        self._void()

    def _void(self) -> None:
        self._seen()
        for one in self.asked.values():
            if one.status in ("pending", "granted"):
                one.status = "void"

    @rule(which=st.integers(0, 1))
    def a_fork_has_no_grant(self, which: int) -> None:
        fork = self._guard(self.kept.keep(self.handles[0].conversation.fork()))
        self._seen()
        assert not fork.propose(Call("send", SENDS[which], "f")).allowed

    @rule(which=st.integers(0, 1))
    def a_replayed_journal_has_no_grant(self, which: int) -> None:
        """Every entry written anew into another conversation: yes and all."""
        view = self.store.within("default")
        entries = [decode(one.body) for one in view.entries(self.id)]
        at = entries[0].at
        name = f"c-copy-{len(entries)}-{len(view.conversations(limit=1000))}"
        view.open((Opened(at, name, "default"), *[one for one in entries[1:] if one.kind != "transcribed"]))
        state = view.state(name)
        assert not any(one.status in (Status.PENDING, Status.GRANTED) for one in state.questions.values())

    @rule(which=st.integers(0, 1))
    def two_processes_decide_at_once(self, which: int) -> None:
        """The second one decides between the first one's decision and its append: one append wins."""
        self.clock.now()
        self._seen()
        left = sum(one.uses for one in self._usable(which))
        first, second = self.guards
        rival: list[Any] = []
        view = self.store.within("default")
        append = type(view).append

        def between(own: Any, conversation: str, entries: Any, *, expected: int | None = None) -> Any:
            if not rival and any(isinstance(one, Decided) for one in entries):
                rival.append(None)
                rival[0] = second.propose(Call("send", SENDS[which], "r"))
            return append(own, conversation, entries, expected=expected)

        type(view).append = between  # type: ignore[method-assign]
        try:
            ticket = first.propose(Call("send", SENDS[which], "l"))
        finally:
            type(view).append = append  # type: ignore[method-assign]
        tickets = [ticket, rival[0]]
        assert sum(len(one.allowed) for one in tickets) == min(2, left)
        for one in tickets:
            for allowed in one.allowed.values():
                asked = self.asked[allowed.decision.grant]
                asked.uses -= 1
                asked.status = asked.status if asked.uses else "used"
                self.ran.append((allowed.decision.grant, allowed.number))
            for question in one.questions.values():
                self._note(question, which)
        for one, guard in ((ticket, first), (rival[0], second)):
            for call_id in one.allowed:
                guard.observe(one, call_id, "sent")

    @invariant()
    def what_ran_was_granted_for_it(self) -> None:
        if not hasattr(self, "id"):
            return
        view = self.store.within("default")
        entries = [decode(one.body) for one in view.entries(self.id)]
        consumed = [(one.question, one.number) for one in entries if one.kind == "consumed"]
        assert consumed == self.ran or sorted(consumed) == sorted(self.ran)
        held = view.state(self.id).questions
        for name, one in self.asked.items():
            if name not in held:
                continue  # forgotten: it has no grant
            if one.status not in ("pending", "granted"):
                assert held[name].status.value not in ("pending", "granted"), f"{name} lives: {held[name]}, {one}"


@cache
def asking_engine() -> ReferenceEngine:
    """The shipped controls in plain Python, with the leak guard asking: fast, and of the same answers (T13)."""
    values = parse_settings({"trifecta": "ask", "leak_guard": "ask"}).model_dump()
    return ReferenceEngine(values, embedded(0).controls)


TestGrants = GrantMachine.TestCase
TestGrants.settings = settings(max_examples=max(10, settings().max_examples // 20), stateful_step_count=20)
