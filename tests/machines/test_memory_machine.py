"""Proves T2 and T12 of everything that outlives a conversation: whatever is remembered, corrected, forgotten, written,
copied, sent, summarised, delegated and forked, in whatever order, every conversation holds what its sources held.

The model knows sets of labels and nothing of the code: one per conversation, fact, file, parcel and summary. After
every step the exposure of each conversation must be the model's, to the label, so that neither a lost label nor one too
many stays unseen. Each fault below is planted, and the machine must find it.
Mutations that this file catches: those of `FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from interlock import Conversation, Interlock, MemoryJournal, Message, windows
from interlock import memory as memories
from interlock.gate import artifact_steps
from interlock.gate import conversation as conversations
from interlock.memory import Memory
from interlock.model import carried as carrieds
from interlock.model import facts as fact_values
from interlock.model.carried import CLEAN, Carried
from interlock.model.entries import Opened
from interlock.model.facts import Selection
from interlock.model.parcels import Parcel, read_parcel
from interlock.model.windows import WindowLimits
from interlock.stores import memory_artifacts, memory_facts
from interlock.stores.memory_artifacts import MemoryArtifacts
from interlock.stores.memory_facts import MemoryFacts, MemorySummaries
from interlock.windows import ContextWindow, RunBudget
from tests.cases.desk import Engine, all_allow, did
from tests.cases.poisoned import MANIFEST

LIMITS = WindowLimits(messages=4, recent=1, batch=3, backlog=1)
ENGINE = Engine(lambda _: all_allow())
FILES = ["a", "a/b", "a/b/c", "ab", "z"]
one = st.integers(0, 9)


def concerned(written: str, read: str) -> bool:
    """The model's own idea of which file holds which."""
    return written == read or read.startswith(f"{written}/") or written.startswith(f"{read}/")


class MemoryMachine(RuleBasedStateMachine):
    """Up to eight conversations, and everything that they leave to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.talks: list[tuple[Conversation, set[str]]] = []
        self.facts: dict[str, set[str]] = {}
        self.revisions: dict[str, int] = {}
        self.forgotten: set[str] = set()
        self.files: dict[str, set[str]] = {}
        self.parcels: list[tuple[bytes, set[str]]] = []
        self.summed: dict[str, set[str]] = {}

    @initialize()
    def begin(self) -> None:
        self.summaries = MemorySummaries()
        self.memory = Memory(MemoryFacts())
        artifacts = MemoryArtifacts(whole=True)
        self.lock = Interlock(manifest=MANIFEST, engine=ENGINE, journal=MemoryJournal(), artifacts=artifacts)
        self.talk()
        self.talk()

    # --- conversations ----------------------------------------------------------------------------------------------

    def _new(self, conversation: Conversation, held: set[str]) -> None:
        assert set(conversation.exposure) == held  # also of one that there is no room for
        if len(self.talks) < 8:
            self.talks.append((conversation, held))

    def _one(self, number: int) -> tuple[Conversation, set[str]]:
        return self.talks[number % len(self.talks)]

    @rule()
    def talk(self) -> None:
        self._new(Conversation(), set())

    @rule(who=one, leg=st.sampled_from(["untrusted", "private", "egress"]))
    def learn(self, who: int, leg: str) -> None:
        conversation, held = self._one(who)
        self.count += 1
        label = f"{leg}:s{self.count}"
        self.lock.guard(conversation).admit("x", labels=[label], source=f"source {self.count}")
        held.add(label)
        conversation.push(Message.user(f"message {self.count}"))

    @rule(who=one)
    def fork(self, who: int) -> None:
        conversation, held = self._one(who)
        self._new(conversation.fork(), set(held))

    @rule(who=one, other=one)
    def delegate(self, who: int, other: int) -> None:
        """A child recalls whatever it finds, and is joined."""
        conversation, held = self._one(who)
        with conversation.child("look it up", tools=[]) as child:
            found = self.memory.recall(child, "word", limit=1 + other)
        held |= self._recalled([fact.id for fact in found.facts])

    # --- memory -----------------------------------------------------------------------------------------------------

    def _recalled(self, ids: list[str]) -> set[str]:
        assert not self.forgotten.intersection(ids)
        return {label for name in ids for label in self.facts[name]} | ({"untrusted:memory"} if ids else set())

    @rule(who=one)
    def remember(self, who: int) -> None:
        conversation, held = self._one(who)
        fact = self.memory.remember(conversation, f"word {len(self.facts)}")
        self.facts[fact.id], self.revisions[fact.id] = set(held), 1

    @rule(who=one, other=one, which=one, anew=st.booleans())
    def correct(self, who: int, other: int, which: int, anew: bool) -> None:
        """One conversation corrects what another one wrote, in this step or long before."""
        if anew:
            self.remember(other)
        if self.facts:
            conversation, held = self._one(who)
            name = sorted(self.facts)[which % len(self.facts)]
            self.memory.correct(conversation, name, self.revisions[name], "word again")
            self.facts[name] |= held
            self.revisions[name] += 1
            self.forgotten.discard(name)
            reader = Conversation()  # somebody who holds nothing yet misses whatever is missing
            found = self.memory.recall(reader, "word", limit=9)
            assert set(reader.exposure) == self._recalled([fact.id for fact in found.facts])

    @rule(which=one)
    def forget(self, which: int) -> None:
        if self.facts:
            name = sorted(self.facts)[which % len(self.facts)]
            self.memory.forget("default", Selection(ids=(name,)))
            self.forgotten.add(name)

    @rule(who=one, limit=st.integers(1, 3))
    def recall(self, who: int, limit: int) -> None:
        conversation, held = self._one(who)
        found = self.memory.recall(conversation, "word", limit=limit)
        assert bool(found.facts) == bool(set(self.facts) - self.forgotten)
        held |= self._recalled([fact.id for fact in found.facts])

    # --- artifacts --------------------------------------------------------------------------------------------------

    def _read(self, path: str) -> set[str]:
        return {label for file, held in self.files.items() if concerned(file, path) for label in held}

    @rule(who=one, path=st.sampled_from(FILES))
    def write(self, who: int, path: str) -> None:
        conversation, held = self._one(who)
        assert did(self.lock.guard(conversation), "save", {"path": path, "text": "x"}).executed
        self.files.setdefault(path, set()).update(held)

    @rule(who=one, path=st.sampled_from(FILES))
    def read(self, who: int, path: str) -> None:
        conversation, held = self._one(who)
        assert did(self.lock.guard(conversation), "load", {"path": path}).executed
        held |= self._read(path)

    @rule(who=one, origin=st.sampled_from(FILES), end=st.sampled_from(FILES))
    def copy(self, who: int, origin: str, end: str) -> None:
        conversation, held = self._one(who)
        assert did(self.lock.guard(conversation), "copy", {"source": origin, "target": end}).executed
        held |= self._read(origin)
        self.files.setdefault(end, set()).update(held)

    # --- parcels and summaries --------------------------------------------------------------------------------------

    @rule(who=one)
    def send(self, who: int) -> None:
        conversation, held = self._one(who)
        self.parcels.append((conversation.parcel("do it").encode(), set(held)))

    @rule(which=one, who=one, new=st.booleans())
    def receive(self, which: int, who: int, new: bool) -> None:
        if self.parcels:
            body, brought = self.parcels[which % len(self.parcels)]
            parcel: Parcel = read_parcel(body, namespace="default")
            if new:
                self._new(Conversation.from_parcel(parcel), set(brought))
            else:
                conversation, held = self._one(who)
                conversation.open_parcel(parcel)
                held |= brought

    @rule(who=one)
    def summarise(self, who: int) -> None:
        conversation, held = self._one(who)
        for _ in range(3):
            conversation.push(Message.user("more"))
        window = ContextWindow(
            conversation, limits=LIMITS, summarise=lambda _: f"sum {len(conversation)}", summaries=self.summaries
        )
        window.context(RunBudget(passes=99))
        summary = window.summary()
        if summary is None:
            return
        covers = conversation.transcript.covers[: summary.covered]
        below = {label for cover in covers for label in cover or ()}
        below |= self.summed.get(conversation.id, set())
        assert below <= set(summary.labels) <= held
        self.summed[conversation.id] = set(summary.labels)

    @invariant()
    def t2_t12_everybody_holds_what_the_model_holds(self) -> None:
        for conversation, held in self.talks:
            found = set(conversation.exposure)
            assert found == held, f"{conversation.id}: lost {held - found}, too many {found - held}"


TestMemory = MemoryMachine.TestCase
TestMemory.settings = settings(settings(), stateful_step_count=25)


# --- planted faults ---------------------------------------------------------------------------------------------------


def _returning(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a recall admits nothing": (Conversation, "take_in", _returning(None)),
    "a fact forgets who wrote it": (memories, "_sources", _returning((0, 0, CLEAN))),
    "a correction drops the labels before it": (
        memory_facts,
        "renewed",
        lambda fact, revision, _: fact_values.Fact(
            fact.id, revision, fact.at, fact.text, fact.content, fact.conversation, 0, 0, fact.carried
        ),
    ),
    "memory is trusted": (fact_values.Fact, "recalled", property(lambda fact: fact.carried)),
    "a join keeps its left side": (Carried, "join", lambda self, _: self),
    "writes leave no label": (artifact_steps, "labelled", lambda *_: iter(())),
    "reads are looked up exactly": (memory_artifacts, "concerns", lambda written, read: written == read),
    "reads join nothing": (artifact_steps, "loaded", lambda call, _: (yield from _given(call))),
    "parcels are sent clean": (conversations, "written_by", _returning(CLEAN)),
    "a run begins clean": (conversations, "Opened", lambda *parts, **_: _clean(*parts)),
    "a summary has the labels of its first message only": (
        windows,
        "labels_of",
        lambda _, covers: carrieds.Carried(tuple(label for cover in covers[:1] for label in cover or ())).labels,
    ),
    "a summary is clean": (windows, "labels_of", _returning(())),
}


def _given(call: Any) -> Any:
    yield from ()
    return call


def _clean(*parts: Any) -> Opened:
    return Opened(*parts[:4])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, wrong = FAULTS[fault]
    if name == "loaded":  # the second look after the call finds what the first one missed; both must be broken
        monkeypatch.setattr(artifact_steps, "read_by", lambda *_: (yield from _given([])))
    monkeypatch.setattr(where, name, wrong)
    with pytest.raises(Exception) as found:
        run_state_machine_as_test(
            MemoryMachine,
            settings=settings(
                max_examples=200,
                stateful_step_count=25,
                derandomize=True,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    assert "AssertionError" in repr(found.getrepr()) or isinstance(found.value, AssertionError)
