"""Proves that an operator can shorten journals and still hold everything against what was kept (T2, T10, T11).

Mutations that it is shown to catch: a signature that is not looked at, an archive that need not fit, a kept head behind
the beginning that counts as whole, a damaged journal that is shortened.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from interlock import Conversation, Interlock
from interlock.conversations import Conversations
from interlock.stores.memory import MemoryJournal
from interlock.stores.sql_store import SqlStore
from interlock.stores.sqlite import SqliteStore
from tests.servers import Server
from tests.unit.test_store_commands import CONFIGURATION, run, told
from tests.worlds import MANIFEST


class Dated:
    """A clock that somebody sets."""

    day = 1

    def now(self) -> datetime:
        return datetime(2026, 1, self.day, tzinfo=UTC)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("interlock.toml").write_text(CONFIGURATION.format(more='key_file = "key"'))
    Path("key").write_bytes(b"k" * 32)
    return tmp_path


def filled(days: int = 3) -> str:
    """A conversation with a turn on each day, whose last entries are of now."""
    clock = Dated()
    lock = Interlock.load("interlock.toml", clock=clock)
    assert isinstance(lock.journal, SqlStore)
    stored = Conversations(lock.journal, "ana", clock=clock).new("hello")
    guard = lock.guard(stored.conversation)
    for day in range(1, days + 1):
        clock.day = day
        guard.call("add", {}, run=lambda: 1)
        guard.admit("x", labels=[f"private:day{day}"], source="notes")
        stored.record_turn()
    lock.journal.close()
    lock = Interlock.load("interlock.toml")
    assert isinstance(lock.journal, SqlStore)
    again = Conversations(lock.journal, "ana").load(stored.id)
    lock.guard(again.conversation).call("add", {}, run=lambda: 1)
    lock.journal.close()
    return stored.id


def entries_of(name: str) -> list[dict[str, Any]]:
    lines = run("store", "export", name, "--namespace", "ana", "--no-content").stdout.splitlines()
    return [json.loads(line) for line in lines[1:]]


def everything(here: Path) -> None:
    told("store", "migrate")
    name = filled()
    before = entries_of(name)
    told("journal", "verify", "--heads", "before.jsonl")
    would = told("journal", "trim", "--older-than", "30d")
    assert would["dropped"] is False
    (one,) = would["journals"]
    assert (one["namespace"], one["conversation"]) == ("ana", name)
    assert 10 < one["entries"] < len(before)
    assert entries_of(name) == before, "it was only asked what would be dropped"
    assert "--yes does it" in run("journal", "trim", "--older-than", "30d").stdout
    assert told("journal", "trim", "--older-than", "9999d")["journals"] == []

    done = told("journal", "trim", "--older-than", "30d", "--export", "old.jsonl.gz", "--yes")
    assert (done["dropped"], done["journals"]) == (True, [one])
    assert stat.S_IMODE(Path("old.jsonl.gz").stat().st_mode) == 0o600
    after = entries_of(name)
    assert [line["digest"] for line in after[:-1]] == [line["digest"] for line in before[one["entries"] :]]
    assert after[-1]["entry"]["kind"] == "trimmed"
    archived = [json.loads(line) for line in gzip.decompress(Path("old.jsonl.gz").read_bytes()).splitlines()]
    assert [line["digest"] for line in archived] == [line["digest"] for line in before[: one["entries"]]]
    assert [json.loads(line["body"]) for line in archived] == [line["entry"] for line in before[: one["entries"]]]

    assert told("store", "verify")["damaged"] == []
    info = told("store", "info")["namespaces"][0]
    assert (info["entries"], info["dropped"]) == (len(after), one["entries"])
    lock = Interlock.load("interlock.toml")
    assert isinstance(lock.journal, SqlStore)
    again = Conversations(lock.journal, "ana").load(name).conversation
    assert tuple(again.taint) == ("private:day1", "private:day2", "private:day3")
    assert [source.tool for _, source in again.taint.items] == ["notes"] * 3, "the first sources are gone"
    lock.journal.close()

    # The head from before can be compared: behind the beginning it is there still, as its own entry.
    assert told("journal", "verify", "--against", "before.jsonl", "--archive", "old.jsonl.gz")["broken"] == []
    # Nothing is left to drop, and saying so again changes nothing.
    assert told("journal", "trim", "--older-than", "30d", "--yes")["journals"] == []
    assert entries_of(name) == after


def test_everything(here: Path) -> None:
    everything(here)


@pytest.mark.postgres
def test_everything_on_a_server(postgres_server: Server, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATS_DSN", postgres_server.empty())
    text = CONFIGURATION.format(more='plaintext = true\nkey_file = "key"').replace('"sqlite"', '"postgres"')
    Path("interlock.toml").write_text(text.replace('path = "data/chats.db"', 'dsn_from = "CHATS_DSN"'))
    everything(here)


def test_heads_behind_the_beginning(here: Path) -> None:
    told("store", "migrate")
    name = filled()
    lock = Interlock.load("interlock.toml")
    told("journal", "verify", "--heads", "whole.jsonl")
    (head,) = [json.loads(line) for line in Path("whole.jsonl").read_text().splitlines()]
    # A head that was kept early on, as it was then.
    from interlock.model.chain import Head
    from interlock.model.digests import Digest
    from interlock.stores.audit import signed_head

    early = entries_of(name)[4]
    kept = signed_head(Head(5, Digest(early["digest"]), ()), "ana", name, b"k" * 32)
    Path("early.jsonl").write_text(json.dumps(kept) + "\n")
    wrong = signed_head(Head(5, Digest(head["digest"]), ()), "ana", name, b"k" * 32)
    Path("wrong.jsonl").write_text(json.dumps(wrong) + "\n")
    lock.journal.close()  # type: ignore[union-attr]
    assert told("journal", "verify", "--against", "early.jsonl")["broken"] == []
    told("journal", "trim", "--older-than", "30d", "--export", "old.jsonl", "--yes")
    (bad,) = told("journal", "verify", "--against", "early.jsonl", code=1)["broken"]
    assert "archive" in bad["problem"], "a head that can't be compared counts as whole"
    assert told("journal", "verify", "--against", "early.jsonl", "--archive", "old.jsonl")["broken"] == []
    (bad,) = told("journal", "verify", "--against", "wrong.jsonl", "--archive", "old.jsonl", code=1)["broken"]
    assert "not the entry" in bad["problem"]
    # The archive is a chain too, and ends where the journal begins.
    lines = Path("old.jsonl").read_text().splitlines()
    for damaged in (lines[:3] + lines[4:], lines[:-1], [lines[0].replace("opened", "opaned"), *lines[1:]], ["{}"]):
        Path("bad.jsonl").write_text("\n".join(damaged) + "\n")
        assert told("journal", "verify", "--archive", "bad.jsonl", code=1)["broken"]
    Path("bad.jsonl").write_text("no json\n")
    assert run("journal", "verify", "--archive", "bad.jsonl").exit_code == 2
    assert run("journal", "verify", "--archive", "missing.jsonl").exit_code == 2


def test_what_is_damaged_is_not_shortened(here: Path) -> None:
    told("store", "migrate")
    name, other = filled(), filled()
    with sqlite3.connect("data/chats.db") as connection:
        connection.execute(
            "UPDATE interlock_entries SET body = X'00' WHERE sequence = 3 AND conversation = ?", (name.encode(),)
        )
    connection.close()
    done = told("journal", "trim", "--older-than", "30d", "--yes", code=1)
    assert [one["conversation"] for one in done["journals"]] == [other]
    assert done["broken"][0]["problem"].startswith("entry 3:")
    with sqlite3.connect("data/chats.db") as connection:
        ((count,),) = connection.execute(
            "SELECT COUNT(*) FROM interlock_entries WHERE sequence < 4 AND conversation = ?", (name.encode(),)
        )
    connection.close()
    assert count == 3
    assert name in run("journal", "trim", "--older-than", "30d").stdout


def pair(folder: Path, kind: str) -> tuple[Path, Path]:
    """A private key and its public one, as PEM files."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    made = ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{kind}.pem", folder / f"{kind}.pub"
    private.write_bytes(made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    public.write_bytes(made.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.mark.parametrize("kind", ["ed25519", "p256"])
def test_heads_are_signed(here: Path, kind: str) -> None:
    told("store", "migrate")
    filled()
    private, public = pair(here, kind)
    _, stranger = pair(here / "..", "ed25519")
    assert run("journal", "head", "--sign", private).exit_code == 2, "what would be signed?"
    done = run("journal", "head", "--sign", private, "--out", "heads.jsonl")
    assert done.exit_code == 0, done.output
    assert run("journal", "head").stdout == Path("heads.jsonl").read_text()
    for key in (public, private):
        assert told("journal", "verify", "--head", "heads.jsonl", "--key", key)["broken"] == []
    assert run("journal", "verify", "--key", public).exit_code == 2
    (bad,) = told("journal", "verify", "--head", "heads.jsonl", "--key", stranger, code=1)["broken"]
    assert "signed" in bad["problem"]
    data, signature = Path("heads.jsonl").read_bytes(), Path("heads.jsonl.jws").read_text()
    for place in range(0, len(data), 40):
        Path("heads.jsonl").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert told("journal", "verify", "--head", "heads.jsonl", "--key", public, code=1)["broken"]
        break_there = signature[:place] + "A" + signature[place + 1 :]
        Path("heads.jsonl").write_bytes(data)
        if place < len(signature) - 2 and break_there != signature:
            Path("heads.jsonl.jws").write_text(break_there)
            assert told("journal", "verify", "--head", "heads.jsonl", "--key", public, code=1)["broken"]
        Path("heads.jsonl.jws").write_text(signature)
    Path("heads.jsonl.jws").unlink()
    assert run("journal", "verify", "--head", "heads.jsonl", "--key", public).exit_code == 2


def test_what_is_no_key(here: Path) -> None:
    told("store", "migrate")
    Path("no.pem").write_text("secret")
    done = run("journal", "head", "--sign", "no.pem", "--out", "heads.jsonl")
    assert done.exit_code == 2
    assert "Ed25519 or P-256" in done.stderr
    assert not Path("heads.jsonl").exists()
    _, public = pair(here, "ed25519")
    assert "private" in run("journal", "head", "--sign", public, "--out", "heads.jsonl").stderr


def test_a_head_of_what_is_broken_is_not_printed(here: Path) -> None:
    told("store", "migrate")
    name = filled()
    with sqlite3.connect("data/chats.db") as connection:
        connection.execute("DELETE FROM interlock_entries WHERE sequence > 6")
    connection.close()
    done = run("journal", "head", "--out", "heads.jsonl")
    assert done.exit_code == 1
    assert name in done.stdout
    assert not Path("heads.jsonl").exists()


def test_heads_of_a_saved_journal(here: Path) -> None:
    journal = MemoryJournal()
    conversation = Conversation.user("hello")
    guard = Interlock(manifest=MANIFEST, journal=journal).guard(conversation)
    guard.call("now", {}, run=lambda: "noon")
    journal.save(conversation.id, "early.jsonl")
    guard.call("now", {}, run=lambda: "noon")
    journal.save(conversation.id, "late.jsonl")
    for name in ("early", "late"):
        assert run("journal", "head", f"{name}.jsonl", "--out", f"{name}.heads").exit_code == 0
    assert told("journal", "verify", "late.jsonl", "--head", "early.heads")["broken"] == []
    (bad,) = told("journal", "verify", "early.jsonl", "--head", "late.heads", code=1)["broken"]
    assert "is missing" in bad["problem"]


def test_shortening_does_not_make_a_conversation_younger(here: Path) -> None:
    """`store purge --older-than` goes by the last use, which shortening is not."""
    told("store", "migrate")
    clock = Dated()
    store = SqliteStore("data/chats.db", key=b"k" * 32)
    stored = Conversations(store, "ana", clock=clock).new("hello")
    stored.record_turn()
    store.close()
    assert told("journal", "trim", "--older-than", "30d", "--yes")["journals"]
    assert told("store", "purge", "--namespace", "ana", "--older-than", "30d")["conversations"] == [stored.id]
