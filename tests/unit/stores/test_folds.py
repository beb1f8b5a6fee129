"""Proves that what a process remembers of stored conversations is bounded, and never goes back (T18, T2).

Mutations that it is shown to catch: an older fold replaces a newer one, nothing is ever forgotten.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interlock.model.chain import GENESIS
from interlock.model.digests import Digest
from interlock.model.state import State
from interlock.stores.folds import BEGINNING, Fold, Folds
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import WEB, admitted, begun, labels


def fold(sequence: int, values: int = 0) -> Fold:
    typed = frozenset(Digest(f"{sequence}-{one}") for one in range(values))
    return Fold(replace(State(), typed=typed, version=sequence), sequence, GENESIS)


def test_never_back() -> None:
    folds = Folds()
    folds.remember(("a", "c"), fold(5))
    folds.remember(("a", "c"), fold(4))
    folds.remember(("b", "c"), fold(1))
    assert folds.known(("a", "c")).sequence == 5
    folds.forget(("a", "c"))
    assert folds.known(("a", "c")) is BEGINNING
    assert folds.known(("b", "c")).sequence == 1


def test_bounded_by_what_is_held_and_the_last_one_stays() -> None:
    folds = Folds(limit=1000)
    for number in range(100):
        folds.remember(("a", str(number)), fold(1, 84))
    assert len(folds) == 10
    assert folds.known(("a", "99")).sequence == 1
    assert folds.known(("a", "0")) is BEGINNING
    folds.known(("a", "90"))  # used, so it is not the next one to go
    folds.remember(("a", "new"), fold(1, 84))
    assert folds.known(("a", "90")).sequence == 1
    folds.remember(("a", "vast"), fold(1, 5000))
    assert len(folds) == 1
    assert folds.known(("a", "vast")).sequence == 1
    for number in range(2, 50):
        folds.remember(("a", "vast"), fold(number, 10))
    folds.remember(("a", "other"), fold(1, 10))
    assert len(folds) == 2, "what was replaced still counts"


def test_forgetting_costs_a_reading_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", durability="process")
    store._folds = Folds(limit=1)
    view = store.within("a")
    names = [begun(view) for _ in range(5)]
    for number, name in enumerate(names):
        view.append(name, [admitted(f"untrusted:n{number}"), admitted(WEB)])
    for number, name in enumerate(names):
        state = view.state(name)
        assert labels(state) == {WEB, f"untrusted:n{number}"}
        assert view.append(name, [admitted("private:x")], expected=state.version).version == state.version + 1
    store.close()
