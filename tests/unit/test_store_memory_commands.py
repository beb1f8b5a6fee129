"""Proves that `interlock store artifacts` and `forget` do what they say, and that an Interlock over a store keeps its
record of artifacts there (T2, T12).

Mutations that it is shown to catch: a damaged record that ends with exit code 0, an empty selection that forgets
everything, an Interlock that keeps its artifacts in memory beside a store.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock import Conversation, Interlock
from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.memory import Memory
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sql_store import SqlStore

CONFIGURATION = """
version = 1

[journal]
kind = "sqlite"
path = "chats.db"

[tools.save]
returns = []
egress = "none"
writes_to = { path = "path" }

[tools.load]
returns = []
egress = "none"
reads_from = { path = "path" }
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["store", *arguments])


def told(*arguments: str, code: int = 0) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("interlock.toml").write_text(CONFIGURATION)
    assert run("migrate").exit_code == 0
    opened = Interlock.load("interlock.toml")
    yield opened
    assert isinstance(opened.journal, SqlStore)
    opened.journal.close()


def story(lock: Interlock) -> Conversation:
    """One conversation writes under a label, another one reads."""
    assert isinstance(lock.journal, SqlStore)
    place = Conversations(lock.journal, "ana")
    one, other = place.new().conversation, place.new().conversation
    lock.guard(one).admit("x", labels=["untrusted:web"], source="page")
    assert lock.guard(one).call("save", {"path": "a"}, run=lambda path: "ok").executed
    lock.guard(other).call("load", {"path": "a"}, run=lambda path: "x")
    return other


def test_a_record_that_is_lost_stays_lost(lock: Interlock) -> None:
    """A backup that was put back knows nothing of what was written since, and its chain is as whole as ever."""
    lost = {"whole": False, "damage": "the operator said that a part of the record of artifacts is lost"}
    assert told("artifacts", "--begin")["whole"]
    assert run("artifacts", "--begin", "--lost").exit_code != 0
    assert told("artifacts", "--lost", code=1) == lost
    assert told("artifacts", "--begin", code=1) == lost
    assert isinstance(lock.journal, SqlStore)
    assert not SqlArtifacts(lock.journal).carried(["path:/never"], namespace="ana").heard
    assert "untrusted:unknown" in SqlArtifacts(lock.journal).carried(["path:/never"], namespace="ana").labels


def test_a_record_that_was_never_begun_can_be_lost(lock: Interlock) -> None:
    assert told("artifacts", "--lost", code=1) == told("artifacts", "--begin", code=1)


def test_a_record_is_begun_once_by_the_operator(lock: Interlock) -> None:
    assert told("artifacts", code=1) == {"whole": False, "damage": "the record of artifacts was never begun"}
    assert told("artifacts", "--begin") == {"whole": True, "damage": ""}
    assert "is whole" in run("artifacts").stdout
    assert isinstance(lock.journal, SqlStore)
    again = Interlock.load("interlock.toml")
    assert set(story(again).taint) == {"untrusted:web"}
    assert isinstance(again.journal, SqlStore)
    again.journal.close()
    assert told("artifacts")["whole"]
    with sqlite3.connect("chats.db") as connection:
        connection.execute("UPDATE interlock_artifacts SET labels = X'00'")
    connection.close()
    assert "row 1" in told("artifacts", code=1)["damage"]


def test_begun_too_late(lock: Interlock) -> None:
    assert not story(lock).taint  # the read was refused: its record was lost
    assert told("artifacts", "--begin", code=1)["damage"] == "artifacts were written before their record was begun"


def test_a_record_of_your_own_comes_first(lock: Interlock) -> None:
    assert isinstance(lock.journal, SqlStore)
    begun = SqlArtifacts.begin(lock.journal)
    other = Interlock(manifest=lock.manifest, journal=lock.journal, artifacts=begun)
    assert set(story(other).taint) == {"untrusted:web"}


def test_forget(lock: Interlock) -> None:
    assert isinstance(lock.journal, SqlStore)
    memory = Memory(SqlFacts(lock.journal))
    conversation = Conversations(lock.journal, "ana").new().conversation
    for number in range(4):
        memory.remember(conversation, f"word {number}", id=f"m-{number}")
    assert run("forget", "--namespace", "ana").exit_code == 2
    assert told("forget", "--namespace", "ben", "--everything") == {"forgotten": 0}
    assert told("forget", "m-0", "m-9", "--namespace", "ana") == {"forgotten": 1}
    assert told("forget", "--namespace", "ana", "--before", "2000-01-01") == {"forgotten": 0}
    assert told("forget", "m-1", "--namespace", "ana", "--conversation", conversation.id) == {"forgotten": 1}
    assert "2 facts" in run("forget", "--namespace", "ana", "--everything").stdout
    gone = memory.fact("ana", "m-0")
    assert gone is not None
    assert gone.text is None
