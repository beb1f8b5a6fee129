"""Proves T2, T8 and T12 of artifacts when something breaks: whichever port fails at whichever step, nothing is written
without its labels on record, and nothing that was read is shown without them.

Each port is asked through a counter that fails at the n-th question, before it is answered or after, once or from then
on. Mutations that this file catches: labels put on an artifact after the decision; a result that is shown before its
artifact was looked up again; an error of the record that is passed over.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Conversation, Guard, Interlock, MemoryJournal, Outcome
from interlock.assembly import LocalFiles
from interlock.errors import JournalUnavailable, MemoryUnavailable
from interlock.gate.conversation import SystemClock
from interlock.stores.memory_artifacts import MemoryArtifacts
from tests.cases.desk import shared
from tests.cases.poisoned import MANIFEST, PLANT


class Counter:
    """Fails at the n-th question that any port is asked."""

    def __init__(self, place: int, error: type[Exception], *, after: bool, lasting: bool) -> None:
        self.place, self.error, self.after, self.lasting = place, error, after, lasting
        self.asked = 0
        self.armed = False

    def over(self, port: Any) -> Any:
        return _Port(port, self)

    def strikes(self) -> bool:
        if not self.armed:
            return False
        self.asked += 1
        return self.asked == self.place or (self.lasting and self.asked > self.place)


class _Port:
    def __init__(self, port: Any, counter: Counter) -> None:
        self._port, self._counter = port, counter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not callable(found):
            return found

        def asked(*args: Any, **more: Any) -> Any:
            struck = self._counter.strikes()
            if struck and not self._counter.after:
                raise self._counter.error("struck")
            reply = found(*args, **more)
            if struck:
                raise self._counter.error("struck")
            return reply

        return asked


class Scene:
    """A poisoned writer, a fresh reader, and what really happened."""

    def __init__(self, counter: Counter) -> None:
        self.artifacts = MemoryArtifacts(whole=True)
        self.labels_at_write: set[str] | None = None
        self.lock = Interlock(
            manifest=MANIFEST,
            engine=shared().engine,
            journal=counter.over(MemoryJournal()),
            clock=counter.over(SystemClock()),
            files=counter.over(LocalFiles()),
            artifacts=counter.over(self.artifacts),
        )
        self.writer, self.reader = self.lock.guard(Conversation()), self.lock.guard(Conversation())
        self.writer.admit(PLANT, labels=["untrusted:web"], source="page")

    def on_record(self) -> set[str]:
        key = f"path:{LocalFiles().resolve(['notes.txt'])[0]}"
        return set(self.artifacts.carried([key], namespace="default").labels)

    def write(self) -> Outcome:
        def save(path: str, text: str) -> str:
            self.labels_at_write = self.on_record()
            return "saved"

        return self.writer.call("save", {"path": "notes.txt", "text": PLANT}, run=save)

    def read(self, guard: Guard) -> Outcome:
        return guard.call("load", {"path": "notes.txt"}, run=lambda path: PLANT)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [JournalUnavailable, MemoryUnavailable, OSError, ValueError])
def test_t8_t12_nothing_is_written_without_its_labels(error: type[Exception], after: bool, lasting: bool) -> None:
    for place in range(1, 50):
        counter = Counter(place, error, after=after, lasting=lasting)
        scene = Scene(counter)
        counter.armed = True
        outcome = scene.write()
        if scene.labels_at_write is not None:
            assert "untrusted:web" in scene.labels_at_write
        else:
            assert not outcome.executed
        if counter.asked < place:
            assert outcome.executed
            return
    raise AssertionError("it never ran clean")


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [JournalUnavailable, MemoryUnavailable, OSError, ValueError])
def test_t2_t12_nothing_is_shown_without_the_labels_of_its_artifact(
    error: type[Exception], after: bool, lasting: bool
) -> None:
    for place in range(1, 50):
        counter = Counter(place, error, after=after, lasting=lasting)
        scene = Scene(counter)
        assert scene.write().executed
        counter.armed = True
        outcome = scene.read(scene.reader)
        counter.armed = False
        if PLANT in outcome.for_model:
            assert "untrusted:web" in scene.reader.conversation.taint
        if outcome.executed:
            assert "untrusted:web" in scene.reader.conversation.exposure
        if counter.asked < place:
            assert outcome.for_model == PLANT
            return
    raise AssertionError("it never ran clean")
