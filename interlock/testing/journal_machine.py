"""A state machine over journals: what every one of them owes to the gate (T2, T8, T10, T11)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from interlock.errors import Conflict, InterlockError, JournalUnavailable, Tampered
from interlock.model.chain import verify
from interlock.model.digests import content_digest
from interlock.model.entries import Admitted, Entry, Opened, Typed, decode, encode
from interlock.model.labels import Label
from interlock.model.state import State, apply
from interlock.testing.strategies import entries
from interlock.testing.traces import Tally, Traced, lost, shown, told

AT: Final = "2026-11-29T12:00:00.000000Z"
CONVERSATIONS: Final = ("c-1", "c-2")
# What has no canonical bytes, so that no journal can write it.
UNWRITABLE: Final = Admitted(AT, "\ud800", (Label("untrusted:web"),), content_digest("x"), 1)
THREADS: Final = 6
EACH: Final = 20


class JournalMachine(Traced):
    """See :func:`interlock.testing.check_journal`."""

    def __init__(
        self, tally: Tally, factory: Callable[[], Any], reopen: Callable[[Any], Any] | None, key: bytes
    ) -> None:
        super().__init__(tally)
        self._reopen, self._key = reopen, key
        self._told: dict[str, list[Entry]] = {}
        self._folds: dict[str, State] = {}
        self._checked: dict[str, int] = {}
        self._seen: dict[str, set[str]] = {}
        with self.step("a new journal"):
            self.journal = factory()

    def _wrote(self, name: str, whole: Sequence[Entry], state: object) -> None:
        """These entries are on record now."""
        fold = self._folds.get(name, State())
        for entry in whole:
            fold = apply(fold, entry)
        self._folds[name] = fold
        self._told[name] = [*self._told.get(name, []), *whole]
        self.demand(state == fold, "T11", "the fold of what was written", _odd(state, fold))

    def _refused(self, what: str, kind: type[Exception], act: Callable[[], Any]) -> None:
        """It must raise this, and change nothing, which the invariants see."""
        try:
            reply = act()
        except kind:
            return
        except Exception as error:
            self.broken("the port", f"{kind.__name__}, for {what}", f"{type(error).__name__}: {error}")
        self.broken("the port", f"{kind.__name__}, for {what}", f"{type(reply).__name__} as if nothing were wrong")

    @rule(name=st.sampled_from(CONVERSATIONS), more=st.lists(entries(), max_size=2))
    def open(self, name: str, more: list[Entry]) -> None:
        whole = [Opened(AT, name, labels=(Label("untrusted:memory"),)), *_later(more)]
        with self.step(f"{name} was opened with {_words(whole)}"):
            if name in self._told:
                self._refused("a conversation that exists", Conflict, lambda: self.journal.open(tuple(whole)))
                self.note("→ Conflict")
                return
            state = self.journal.open(tuple(whole))
            self._wrote(name, whole, state)

    @rule(name=st.sampled_from(CONVERSATIONS), begins=st.booleans())
    def open_without_a_beginning(self, name: str, begins: bool) -> None:
        if name in self._told:
            return
        whole = (Typed(AT, content_digest("x"), 1),) if begins else ()
        with self.step(f"{name} was opened with {_words(whole)}"):
            self._refused("no `opened` entry", JournalUnavailable, lambda: self.journal.open(whole))
            self.note("→ JournalUnavailable")

    @rule(
        name=st.sampled_from(CONVERSATIONS),
        more=st.lists(entries(), min_size=1, max_size=3),
        expected=st.sampled_from(["any", "right", "older", "newer"]),
    )
    def append(self, name: str, more: list[Entry], expected: str) -> None:
        if name not in self._told:
            return
        whole = tuple(_later(more))
        version = self._folds[name].version
        wanted = {"any": None, "right": version, "older": version - 1, "newer": version + 1}[expected]
        under = "" if wanted is None else f" under version {wanted}, which is {expected}"
        with self.step(f"to {name} was appended {_words(whole)}{under}"):
            if expected in ("older", "newer"):
                self._refused(
                    "another version of the labels",
                    Conflict,
                    lambda: self.journal.append(name, whole, expected=wanted),
                )
                self.note("→ Conflict")
                return
            state = self.journal.append(name, whole, expected=wanted)
            self._wrote(name, whole, state)

    @rule(name=st.sampled_from(CONVERSATIONS), more=st.lists(entries(), min_size=1, max_size=2))
    def append_what_can_not_be_written(self, name: str, more: list[Entry]) -> None:
        """All or nothing: none of a batch is there if one of it can't be."""
        if name not in self._told:
            return
        whole = (*_later(more), UNWRITABLE)
        with self.step(f"to {name} was appended {_words(whole)}, which has no bytes"):
            try:
                self.journal.append(name, whole)
            except Exception as error:
                self.note(f"→ {type(error).__name__}")
                return
            self.broken("the port", "an exception, for an entry that has no bytes", "a state")

    @rule()
    def ask_about_a_stranger(self) -> None:
        with self.step("a conversation that nobody opened was asked about, and written to"):
            self._refused("an unknown conversation", JournalUnavailable, lambda: self.journal.state("c-nobody"))
            one = Typed(AT, content_digest("x"), 1)
            self._refused(
                "an unknown conversation", JournalUnavailable, lambda: self.journal.append("c-nobody", (one,))
            )

    @rule()
    def open_again(self) -> None:
        if self._reopen is None:
            return
        with self.step("the process stopped, and the journal was opened again"):
            self.journal = self._reopen(self.journal)

    @invariant()
    def everything_holds(self) -> None:
        with self.looking():
            for name in self._told:
                state, fold = self.journal.state(name), self._folds[name]
                labels = set(state.exposure)
                missing = lost(self._seen.get(name, ()), state.taint) or lost(fold.exposure, labels)
                self.demand(not missing, "T2", f"{name} has {shown(fold.exposure)}", shown(labels))
                self._seen[name] = set(state.taint)
                self.demand(state == fold, "T11", f"the state of {name} is the fold of its entries", _odd(state, fold))
                self._chain_holds(name)

    def _chain_holds(self, name: str) -> None:
        """If the journal can show its chain and its head."""
        chain, head = getattr(self.journal, "entries", None), getattr(self.journal, "head", None)
        if chain is None or head is None:
            return
        sealed = chain(name)
        if self._checked.get(name) == len(sealed) == len(self._told[name]):
            return  # nothing was written since
        self._checked[name] = len(sealed)
        try:
            verify(sealed, head(name), self._key)
        except Tampered as problem:
            self.broken("T10", f"the chain of {name} fits its head", problem)
        bodies = [one.body for one in sealed]
        self.demand(bodies == list(map(encode, self._told[name])), "T8", "each entry as written", _words_of(bodies))


def check_threads(tally: Tally, journal: Any) -> None:
    """Concurrent appends all survive, and a version is won by one writer only."""
    journal.open((Opened(AT, "c-threads"),))
    errors: list[str] = []

    def appending(number: int) -> None:
        for count in range(EACH):
            text = content_digest(f"{number} {count}")
            entry = Admitted(AT, f"thread {number}", (Label(f"untrusted:thread{number}"),), text, 1)
            journal.append("c-threads", (entry, Typed(AT, text, 1)))

    won: list[int] = []

    def racing(number: int) -> None:
        for _ in range(EACH):
            while True:
                version = journal.state("c-threads").version
                entry = Admitted(AT, f"racer {number}", (Label("private:race"),), content_digest("x"), 1)
                try:
                    journal.append("c-threads", (entry,), expected=version)
                except Conflict:
                    continue
                won.append(version)
                break

    def told_of(work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # whatever ends a thread is told to the one that waits for it
            errors.append(f"{type(error).__name__}: {error}")

    steps = [f"{THREADS} threads appended {EACH} pairs of entries each"]
    with _impatient():
        _together([lambda n=n: told_of(appending, n) for n in range(THREADS)])  # type: ignore[misc]  # bound early
        state = journal.state("c-threads")
        tally.steps += THREADS * EACH
        _demand(not errors, "the port", steps, "no exception", errors[:1])
        _demand(
            len(state.texts) == THREADS * EACH and state.version == 1 + THREADS * EACH,
            "T2, T8",
            steps,
            f"{THREADS * EACH} pairs",
            f"{len(state.texts)} texts, version {state.version}",
        )
        steps.append(f"{THREADS} threads appended {EACH} entries each under the version that they had read")
        _together([lambda n=n: told_of(racing, n) for n in range(THREADS)])  # type: ignore[misc]  # bound early
    tally.steps += THREADS * EACH
    _demand(not errors, "the port", steps, "no exception", errors[:1])
    _demand(len(set(won)) == len(won), "T8", steps, "each version won once", f"{len(won) - len(set(won))} won twice")


def _together(work: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextmanager
def _impatient() -> Iterator[None]:
    """Threads change places as often as they can, so that a missing lock shows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _demand(holds: bool, theorem: str, steps: list[str], expected: str, held: object) -> None:
    if not holds:
        raise AssertionError(told(theorem, steps, expected, held))


def _later(more: list[Entry]) -> list[Entry]:
    """A conversation is opened once, and first."""
    return [entry for entry in more if not isinstance(entry, Opened)] or [Typed(AT, content_digest("again"), 5)]


def _words(whole: Any) -> str:
    return (
        ", ".join(f"`{one.kind}`" + (f" {shown(one.labels)}" if getattr(one, "labels", ()) else "") for one in whole)
        or "nothing"
    )


def _words_of(bodies: list[bytes]) -> str:
    try:
        return _words([decode(body) for body in bodies])
    except InterlockError as error:
        return str(error)


def _odd(state: object, fold: State) -> str:
    """The first field in which two states differ."""
    for name in State.__slots__:
        held, wanted = getattr(state, name, None), getattr(fold, name)
        if held != wanted:
            return f"{name} is {held!r} instead of {wanted!r}"[:300]
    return "something else"
