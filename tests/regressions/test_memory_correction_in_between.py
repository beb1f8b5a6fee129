"""T12: a fact that was corrected while somebody recalled it made the reader every leg, and a fact that was corrected
while others were forgotten lost its new text.

A fact's text and its labels are read one after the other. When a correction came in between, the labels were one row
more than the text knew of, which looked like damage: the reader held every leg for ever, though nothing was wrong.
And `forget` chose by what it had read, then deleted whatever stood there by then. A namespace in which everything was
forgotten stayed full, since forgotten facts were counted: that is in `interlock.testing.memory.check_facts_limit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.model.carried import Carried
from interlock.model.facts import Fact, Selection, fact_of
from interlock.model.labels import EVERY_LEG, Label
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sqlite import SqliteStore

WEB, MAIL = Carried((Label("untrusted:web"),)), Carried((Label("private:mail"),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    SqliteStore.migrate(tmp_path / "store.db")
    opened = SqliteStore(tmp_path / "store.db", durability="process")
    yield opened
    opened.close()


def put(facts: SqlFacts, text: str, carried: Carried, expected: int, day: int = 1) -> None:
    fact = fact_of("m", 1, f"2026-11-{day:02}T12:00:00.000000Z", text, "c-1", (0, 0), carried)
    facts.put("n", fact, expected=expected, limit=9, vector=(1.0,))


def meanwhile(facts: SqlFacts, what: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Something happens once, after the first time that a fact was read and before its labels are."""
    read, left = facts._read, [what]

    def slow(ask: Any, space: bytes, row: tuple[Any, ...]) -> Fact:
        if left:
            left.pop()()
        return read(ask, space, row)

    monkeypatch.setattr(facts, "_read", slow)


@pytest.mark.parametrize("way", ["fact", "search", "near"])
def test_t12_a_correction_in_between_is_no_damage(
    way: str, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = SqlFacts(store)
    put(facts, "word one", WEB, 0)
    meanwhile(facts, lambda: put(SqlFacts(store), "word two", MAIL, 1), monkeypatch)
    ways: dict[str, Callable[[], Fact | None]] = {
        "fact": lambda: facts.fact("n", "m"),
        "search": lambda: facts.search("n", ("word",), 9)[0],
        "near": lambda: facts.near("n", (1.0,), 9)[0],
    }
    found = ways[way]()
    assert found is not None
    assert (found.text, found.revision) == ("word one", 1)
    assert found.carried.labels == ("private:mail", "untrusted:web")  # of both: labels only grow
    again = SqlFacts(store).fact("n", "m")
    assert again is not None
    assert again.text == "word two"


def test_t12_a_revision_that_goes_back_is_damage_all_the_same(store: SqliteStore) -> None:
    facts = SqlFacts(store)
    put(facts, "word one", WEB, 0)
    put(facts, "word two", MAIL, 1)
    store.database.transact(lambda cursor: cursor.run("UPDATE interlock_facts SET revision = 1"))
    found = facts.fact("n", "m")
    assert found is not None
    assert {*EVERY_LEG, "private:mail", "untrusted:web"} <= set(found.carried.labels)


def test_what_was_written_since_is_not_forgotten(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = SqlFacts(store)
    put(facts, "old", WEB, 0)
    meanwhile(facts, lambda: put(SqlFacts(store), "new", MAIL, 1, day=9), monkeypatch)
    assert facts.forget("n", Selection(before="2026-11-05")) == 0
    (found,) = SqlFacts(store).search("n", ("new",), 9)
    assert found.text == "new"
    assert SqlFacts(store).near("n", (1.0,), 9) == (found,)
