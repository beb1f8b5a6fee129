"""Proves T2, T11, T16 and T17 of whole lives of a session: calls, rewrites, failed turns, forks, children, crashes.

The model is a handful of sets: the labels that were acknowledged to the session, and to each fork and child of it. A
process may die at any effect of the disk, with or without power, in the middle of anything; files are damaged. After
every step nothing that was acknowledged may be missing. The faults at the end are planted one at a time, and each must
be found: mutations that this file is shown to catch.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from interlock import Call, Conversation, Message, Session, ToolResult
from interlock.gate import conversation as conversations
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, Entry, Resumed
from interlock.model.labels import CLEAN, EVERY_LEG, Label
from interlock.model.messages import Image, ToolUse
from interlock.model.records import read_line
from interlock.model.state import State, apply
from interlock.model.transcript import open_uses, unpaired
from interlock.stores import session_file
from interlock.stores.session_file import HEADER, SessionFile
from tests.faults.disks import Died, Trouble, TroubledDisk, abandon, guarded, missing, over
from tests.worlds import FixedClock

AT = "2026-11-29T12:00:00.000000Z"
BROUGHT = {"read_note": {"private:notes"}, "fetch": {"untrusted:web"}, "read_mail": {"private:mail", "untrusted:mail"}}
ARGUMENTS = {"read_note": {}, "fetch": {"url": "http://a.example/"}, "read_mail": {"folder": "inbox"}}
LABELS = ["private:a", "untrusted:b", "private:c"]

names = st.sampled_from(sorted(BROUGHT))
labels = st.sampled_from(LABELS)
places = st.sampled_from([0, 0.5, 1])


def admit(conversation: Conversation, one: str) -> None:
    conversation.record(Admitted(AT, "test", (Label(one),), NO_DIGEST, 0))


class SessionMachine(RuleBasedStateMachine):
    """One session on one file, with its forks and children, and a process that may die at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.held: set[str] = set()
        self.forks: list[tuple[Conversation, set[str]]] = []
        self.children: list[Any] = []
        self.pending: list[tuple[Any, list[set[str]]]] = []
        self.number = 0
        self.disk = TroubledDisk()

    def teardown(self) -> None:
        if hasattr(self, "session"):
            abandon(self.session)
        self.disk.forget()
        shutil.rmtree(self.folder)

    @property
    def conversation(self) -> Conversation:
        return self.session.conversation

    @property
    def path(self) -> Path:
        return self.folder / "s"

    @initialize(brought=st.sets(labels, max_size=2))
    def begin(self, brought: set[str]) -> None:
        conversation = Conversation(labels=sorted(brought), clock=FixedClock())
        with over(self.disk):
            self.session = Session.create(self.path, conversation, clock=FixedClock())
        self.guard = guarded(self.session)
        self.before = conversation.snapshot()
        self.held |= brought

    def _text(self) -> str:
        self.number += 1
        return f"text {self.number}"

    # --- what hosts do --------------------------------------------------------------------------------------------

    @rule()
    def say(self) -> None:
        if not open_uses(self.conversation.messages):
            self.conversation.say(self._text())

    @rule()
    def push(self) -> None:
        self.conversation.push(Message.assistant(self._text()))

    @rule(one=labels)
    def admit(self, one: str) -> None:
        admit(self.conversation, one)
        self.held.add(one)

    @rule()
    def look(self) -> None:
        self.conversation.push(Message.user(self._text(), Image("image/png", b"pixels")))
        self.held.add("private:image")

    @rule(name=names, external=st.booleans(), forks=st.booleans())
    def call(self, name: str, external: bool, forks: bool = False) -> None:
        """A round. While the tool runs somebody may fork: its result, with a label of its own, joins both."""

        def run(**_: Any) -> ToolResult:
            if forks and len(self.forks) < 3:
                self.fork()
            return ToolResult(self._text(), external=external, labels=["private:own"])

        known = len(self.forks)
        outcome = self.guard.call(name, ARGUMENTS[name], id="a", run=run)
        if outcome.executed:
            brought = {one for one in BROUGHT[name] if external or not one.startswith("untrusted")}
            for held in (self.held, *(held for _, held in self.forks[known:])):
                held |= brought | ({"private:own"} if outcome.result is not None else set())
        self.conversation.push(Message.assistant("", ToolUse("a", name, ARGUMENTS[name])))
        self.conversation.push(Message.results(outcome))

    @rule(name=names)
    def propose(self, name: str) -> None:
        ticket = self.guard.propose(Call(name, ARGUMENTS[name], "p"))
        if ticket.allowed:
            self.pending.append((ticket, []))
            self.held |= BROUGHT[name]

    @precondition(lambda self: self.pending)
    @rule(one=labels)
    def a_late_result(self, one: str) -> None:
        """It joins the forks that were made meanwhile, too."""
        ticket, forks = self.pending.pop()
        outcome = self.guard.observe(ticket, "p", ToolResult(self._text(), labels=[one]))
        assert outcome.result is not None
        for held in (self.held, *forks):
            held.add(one)

    @rule(keep=st.integers(0, 2))
    def rewrite(self, keep: int) -> None:
        kept = [one for one in self.conversation.messages if not one.uses and one.role.value != "tool"]
        self.conversation.rewrite([Message.user(self._text()), *kept[len(kept) - keep :]])

    @rule()
    def start_a_run(self) -> None:
        self.before = self.conversation.snapshot()

    @rule()
    def roll_back(self) -> None:
        self.conversation.roll_back_failed_turn(self.before)

    @rule()
    def record(self) -> None:
        self.session.record_run(self.before, self.conversation)

    @rule(one=labels)
    def record_another(self, one: str) -> None:
        other = Conversation.from_messages(self.conversation.messages)
        start = other.snapshot()
        admit(other, one)
        other.push(Message.assistant(self._text()))
        self.session.record_run(start, other)
        self.held.add(one)

    @precondition(lambda self: len(self.forks) < 3)
    @rule()
    def fork(self) -> None:
        self.forks.append((self.conversation.fork(), set(self.held)))
        for _, forks in self.pending:
            forks.append(self.forks[-1][1])

    @precondition(lambda self: self.forks)
    @rule(one=labels, which=st.integers(0, 2))
    def a_fork_learns(self, one: str, which: int) -> None:
        fork, held = self.forks[which % len(self.forks)]
        admit(fork, one)
        held.add(one)

    @precondition(lambda self: len(self.children) < 3)
    @rule(learns=st.lists(st.sampled_from([*LABELS, "private:child"]), max_size=2), joins=st.booleans())
    def delegate(self, learns: Sequence[str] = ("private:child",), joins: bool = False) -> None:
        """What a child learns is its parent's at once, whether or not it ever comes back."""
        child = self.conversation.child(self._text(), tools=[])
        for one in learns:
            admit(child, one)
            self.held.add(one)
        if joins:
            self.conversation.join(child)
        else:
            self.children.append(child)

    @precondition(lambda self: self.children)
    @rule(one=labels, joins=st.booleans())
    def a_child_learns(self, one: str, joins: bool) -> None:
        child = self.children.pop()
        admit(child, one)
        self.held.add(one)
        if joins:
            self.conversation.join(child)

    # --- ends and beginnings ----------------------------------------------------------------------------------------

    def _loaded(self, *, damaged: bool = False) -> None:
        self.children, self.pending = [], []
        self.disk.forget()
        self.disk = TroubledDisk()
        with over(self.disk):
            self.session = Session.load(self.path, clock=FixedClock())
        assert bool(self.session.damage) is damaged, self.session.damage
        assert len(self.session.timeline) == len(self.conversation)
        assert not unpaired(self.conversation.messages)
        self.guard = guarded(self.session)
        self.before = self.conversation.snapshot()

    @rule()
    def close_and_load(self) -> None:
        self.session.close()
        self._loaded()

    @rule(power=st.booleans())
    def die(self, power: bool) -> None:
        abandon(self.session)
        if not power:
            self.disk.lose_power()
        self._loaded()

    @rule(
        at=st.integers(1, 8),
        happens=places,
        power=st.booleans(),
        doing=st.lists(
            st.sampled_from(["admit", "call", "rewrite", "record", "roll_back", "close_and_load", "fork", "delegate"]),
            min_size=1,
            max_size=2,
        ),
    )
    def die_while(self, at: int, happens: float, power: bool, doing: Sequence[str]) -> None:
        self.disk.trouble = Trouble(len(self.disk.effects) + at, happens=happens)
        ways: dict[str, Callable[[], None]] = {
            "admit": lambda: self.admit("private:late"),
            "call": lambda: self.call("fetch", True),
            "rewrite": lambda: self.rewrite(1),
        }
        try:
            for name in doing:
                (ways.get(name) or getattr(self, name))()
        except Died:
            abandon(self.session)
            if not power:
                self.disk.lose_power()
            self._loaded()
        self.disk.trouble = None

    @rule(part=st.floats(0, 0.999), power=st.booleans())
    def damage(self, part: float, power: bool) -> None:
        """A byte of what was acknowledged changes while nobody has it open."""
        abandon(self.session)
        data = bytearray(self.path.read_bytes())
        place = len(HEADER) + int((len(data) - len(HEADER)) * part)
        data[place] ^= 1
        self.path.write_bytes(bytes(data))
        self._loaded(damaged=True)
        self.held |= set(EVERY_LEG)

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_forgotten(self) -> None:
        if not hasattr(self, "session"):
            return
        assert not missing(self.conversation, self.held), "the session forgot"
        for fork, held in self.forks:
            assert not missing(fork, held), "a fork forgot"
        assert not unpaired(self.conversation.messages)
        assert len(self.session.timeline) == len(self.conversation)

    @invariant()
    def the_file_is_the_state(self) -> None:
        if not hasattr(self, "session"):
            return
        state = State()
        for place, line in enumerate(self.path.read_bytes().removeprefix(HEADER).splitlines(), 1):
            for entry in read_line(line, place)[1].entries:
                state = apply(state, entry)
        assert state == self.conversation.state, "the fold of the file is another state"


SETTINGS = settings(max_examples=max(10, settings().max_examples // 6), stateful_step_count=25)
TestSession = SessionMachine.TestCase
TestSession.settings = SETTINGS


# --- planted faults ---------------------------------------------------------------------------------------------------


class Lazy:
    """A disk that does not flush what is written to the file itself."""

    def __init__(self, file: SessionFile, disk: Any) -> None:
        self.file, self.disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self.disk, name)

    def sync(self, descriptor: int) -> None:
        if descriptor != self.file._descriptor:
            self.disk.sync(descriptor)


def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    write = SessionFile._write

    def lazily(self: SessionFile, record: Any) -> State:
        disk = self._disk
        self._disk = Lazy(self, disk)  # type: ignore[assignment]
        try:
            return write(self, record)
        finally:
            self._disk = disk

    monkeypatch.setattr(SessionFile, "_write", lazily)


def one_place_for_both_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "slot_of", lambda sequence: 0)


def a_resume_that_joins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def applied(state: State, entry: Entry) -> State:
        after = apply(state, entry)
        return replace(after, taint=state.taint) if isinstance(entry, Resumed) and "damaged" not in entry.why else after

    monkeypatch.setattr(session_file, "apply", applied)


def a_rewrite_that_cleans(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = SessionFile.keep

    def cleaning(self: SessionFile, *given: Any) -> None:
        keep(self, *given)
        self._state = replace(self._state, taint=CLEAN)

    monkeypatch.setattr(SessionFile, "keep", cleaning)


def damage_that_loads_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "EVERY_LEG", ())


def damage_that_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "verify", lambda chain, held, key: None)


def a_child_that_tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations.Child, "_told", lambda self, entries, *more, **known: None)


def a_fork_that_begins_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    inherited = conversations.inherited
    monkeypatch.setattr(
        conversations, "inherited", lambda *given, **known: replace(inherited(*given, **known), labels=())
    )


def late_results_that_no_fork_hears_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversation, "_told", lambda self, entries, *more, **known: None)


def another_conversation_without_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Session.record_run

    def forgetful(self: Session, before: Any, conversation: Conversation) -> None:
        if conversation is not self.conversation:
            clean = Conversation.from_messages(conversation.messages)
            before, conversation = clean.snapshot(), clean
        real(self, before, conversation)

    monkeypatch.setattr(Session, "record_run", forgetful)


FAULTS = [
    no_flush,
    one_place_for_both_heads,
    a_resume_that_joins_nothing,
    a_rewrite_that_cleans,
    damage_that_loads_clean,
    damage_that_is_not_looked_for,
    a_child_that_tells_nobody,
    a_fork_that_begins_clean,
    late_results_that_no_fork_hears_of,
    another_conversation_without_its_labels,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.replace("_", " "))
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None]) -> None:
    fault(monkeypatch)
    quick = settings(
        max_examples=300,
        stateful_step_count=25,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(SessionMachine, settings=quick)
