"""Proves that the operator's `[journal]` is what is opened: strictly, once, and guarded like everything that decides.

Mutations that it is shown to catch: an unknown key is passed over, a store that is not protected, memory chosen
in silence.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal
from interlock.errors import Misconfigured
from interlock.stores.sqlite import SqliteStore

TOOLS = """
[tools.write]
returns = []
egress = "none"
effect = "write"
destinations = { path = "path" }
content = ["text"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(journal: str) -> Path:
    Path("interlock.toml").write_text(f"version = 1\n{journal}\n{TOOLS}")
    return Path("interlock.toml")


@pytest.mark.parametrize(
    ("journal", "problem"),
    [
        ('[journal]\nkind = "sqlite"', "path: missing"),
        ('[journal]\npath = "a.db"', "kind"),
        ('[journal]\nkind = "redis"', "kind"),
        ('[journal]\nkind = "memory"\npath = "a.db"', "unknown key"),
        ('[journal]\nkind = "sqlite"\npath = ""', "path"),
        ('[journal]\nkind = "sqlite"\npath = "a.db"\ndurability = "none"', "durability"),
        ('[journal]\nkind = "sqlite"\npath = "a.db"\nsynchronous = "off"', "unknown key"),
        ('[journal]\nkind = "postgres"', "dsn"),
        ('[journal]\nkind = "postgres"\ndsn = "x=y"\ndsn_from = "X"', "dsn"),
        ('[journal]\nkind = "postgres"\ndsn_from = "NOT_SET_ANYWHERE"', "NOT_SET_ANYWHERE"),
        ('[journal]\nkind = "postgres"\ndsn = "x"\nconnections = 0', "connections"),
        ('[journal]\nkind = "sqlite"\npath = "a.db"\nkey_file = "gone"', "key_file"),
        ('[journal]\nkind = "sqlite"\npath = "a.db"', "interlock store migrate"),
    ],
)
def test_what_is_wrong_is_an_error_at_once(here: Path, journal: str, problem: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Interlock.load(configured(journal))
    assert problem in str(caught.value)
    assert sorted(one.name for one in here.iterdir()) == ["interlock.toml"], "something was made"


def test_memory_by_name_and_by_silence(
    here: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.assembly._said", [])
    with caplog.at_level(logging.WARNING, logger="interlock"):
        assert isinstance(Interlock.load(configured('[journal]\nkind = "memory"')).journal, MemoryJournal)
        assert not caplog.records, "it was chosen, so nobody is surprised"
        assert isinstance(Interlock.load(configured("")).journal, MemoryJournal)
    assert "in memory" in caplog.text


def test_the_store_is_opened_once_and_guarded(here: Path) -> None:
    (here / "key").write_bytes(b"k" * 32)
    path = configured('[journal]\nkind = "sqlite"\npath = "data/a.db"\nkey_file = "key"')
    SqliteStore.migrate("data/a.db")
    lock = Interlock.load(path)
    store = lock.journal
    assert isinstance(store, SqliteStore)
    assert store.key == b"k" * 32
    guard = lock.guard(Conversation.user("write data/a.db"))
    for place in ("data/a.db", "data/a.db-wal", "data/a.db-shm", "key", str(here / "data" / "a.db")):
        decision = guard.preview(Call("write", {"path": place, "text": "x"}))
        assert decision.code == "control_plane", place
    lock.reload()
    assert lock.journal is store
    store.close()
    given = Interlock(manifest=lock.manifest, journal=SqliteStore("data/a.db", key=b"k" * 32))
    decision = given.guard(Conversation.new()).preview(Call("write", {"path": "data/a.db", "text": "x"}))
    assert decision.code == "control_plane", "a store that is given is guarded as well"
    given.journal.close()  # type: ignore[union-attr]  # the store from above
