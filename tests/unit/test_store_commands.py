"""Proves that `interlock store` and `interlock journal` do what they say, on real files and a real server (T2, T10).

Mutations that it is shown to catch: damage that ends with exit code 0, a purge without `--yes` that erases, a head that
is not compared.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock import Interlock
from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.stores.memory import MemoryJournal
from interlock.stores.sql import SCHEMA
from interlock.stores.sql_store import SqlStore
from tests.servers import Server
from tests.worlds import MANIFEST

CONFIGURATION = """
version = 1

[journal]
kind = "sqlite"
path = "data/chats.db"
{more}
[tools.add]
returns = []
egress = "none"
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def told(*arguments: str | Path, code: int = 0) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("interlock.toml").write_text(CONFIGURATION.format(more=""))
    return tmp_path


@pytest.fixture
def ids(here: Path) -> list[str]:
    assert told("store", "migrate") == {"changed": True, "schema": SCHEMA}
    lock = Interlock.load("interlock.toml")
    assert isinstance(lock.journal, SqlStore)
    found = _filled(lock)
    lock.journal.close()
    return found


def _filled(lock: Interlock) -> list[str]:
    found = []
    assert isinstance(lock.journal, SqlStore)
    for name in ("ana", "bob"):
        for text in (f"hello \0 {name}", "there"):
            stored = Conversations(lock.journal, name).new(text)
            guard = lock.guard(stored.conversation)
            guard.call("add", {}, run=lambda: 1)
            guard.admit("x", labels=["private:notes"], source="notes")
            stored.record_turn()
            found.append(stored.id)
    return found


def test_before_anything_is_there(here: Path) -> None:
    for command in ("info", "verify"):
        done = run("store", command)
        assert done.exit_code == 2
        assert "interlock store migrate" in done.stderr
    Path("interlock.toml").write_text("version = 1\n[tools.add]\nreturns = []\negress = 'none'\n")
    done = run("store", "info")
    assert done.exit_code == 2
    assert "in memory" in done.stderr


def test_migrate_and_info(ids: list[str]) -> None:
    assert told("store", "migrate") == {"changed": False, "schema": SCHEMA}
    assert "as it was" in run("store", "migrate").stdout
    counted = told("store", "info")["namespaces"]
    assert [(one["namespace"], one["conversations"], one["messages"]) for one in counted] == [
        ("ana", 2, 2),
        ("bob", 2, 2),
    ]
    assert "bob" in run("store", "info").stdout
    assert told("store", "info", "--store", "data/chats.db")["namespaces"] == counted


def test_verify_and_its_exit_code(ids: list[str]) -> None:
    assert told("store", "verify")["conversations"] == 4
    assert told("store", "verify", "--namespace", "ana")["conversations"] == 2
    assert told("store", "verify", "--namespace", "ana", "--conversation", ids[0])["conversations"] == 1
    assert run("store", "verify", "--conversation", ids[0]).exit_code == 2
    assert run("store", "verify", "--namespace", "bob", "--conversation", ids[0]).exit_code == 2
    with sqlite3.connect("data/chats.db") as connection:
        connection.execute(
            "UPDATE interlock_entries SET body = X'00' WHERE sequence = 3 AND conversation = ?", (ids[0].encode(),)
        )
    connection.close()
    (damaged,) = told("store", "verify", code=1)["damaged"]
    assert (damaged["namespace"], damaged["conversation"]) == ("ana", ids[0])
    assert damaged["problem"].startswith("entry 3:")
    assert ids[0] in run("store", "verify").stdout
    assert told("journal", "verify", code=1)["broken"] == [damaged]
    assert run("store", "export", ids[0], "--namespace", "ana").exit_code == 2


def test_heads_that_were_kept(ids: list[str]) -> None:
    Path("key").write_bytes(b"k" * 32)
    # Signing what is printed needs no key in the store.
    done = run("journal", "verify", "--heads", "heads.jsonl")
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(Path("heads.jsonl").stat().st_mode) == 0o600
    assert run("journal", "verify", "--heads", "heads.jsonl").exit_code == 2, "a file that is there is not overwritten"
    assert told("journal", "verify", "--against", "heads.jsonl")["broken"] == []
    with sqlite3.connect("data/chats.db") as connection:
        for statement in ("entries", "messages", "heads"):
            connection.execute(f"DELETE FROM interlock_{statement} WHERE conversation = ?", (ids[3].encode(),))
    connection.close()
    assert told("journal", "verify")["broken"] == [], "nothing in the store says that there was more"
    (gone,) = told("journal", "verify", "--against", "heads.jsonl", code=1)["broken"]
    assert gone["conversation"] == ids[3]
    Path("heads.jsonl").write_text("[]\n")
    assert run("journal", "verify", "--against", "heads.jsonl").exit_code == 2


def test_a_key_signs(here: Path) -> None:
    Path("key").write_bytes(b"k" * 32)
    Path("other").write_bytes(b"o" * 32)
    Path("short").write_bytes(b"s")
    Path("interlock.toml").write_text(CONFIGURATION.format(more='key_file = "key"'))
    told("store", "migrate")
    lock = Interlock.load("interlock.toml")
    _filled(lock)
    assert isinstance(lock.journal, SqlStore)
    lock.journal.close()
    heads = told("journal", "verify", "--heads", "heads.jsonl")["heads"]
    assert all(len(one["signature"]) == 64 for one in heads)
    assert told("journal", "verify", "--against", "heads.jsonl")["broken"] == []
    lines = Path("heads.jsonl").read_text().splitlines()
    Path("heads.jsonl").write_text(lines[0].replace('"sequence": ', '"sequence": 1') + "\n")
    assert "signed" in told("journal", "verify", "--against", "heads.jsonl", code=1)["broken"][0]["problem"]
    assert len(told("journal", "verify", "--key-file", "other", code=1)["broken"]) == 4
    assert "too few" in run("journal", "verify", "--key-file", "short").stderr
    # Without the key nothing that is stored can be believed by whoever has it.
    assert len(told("store", "verify", "--store", "data/chats.db", code=1)["damaged"]) == 4


def test_a_journal_that_was_saved(here: Path) -> None:
    journal = MemoryJournal()
    lock = Interlock(manifest=MANIFEST, journal=journal)
    from interlock import Conversation

    conversation = Conversation.user("hello")
    lock.guard(conversation).call("now", {}, run=lambda: "noon")
    journal.save(conversation.id, "saved.jsonl")
    assert told("journal", "verify", "saved.jsonl")["entries"] == 4
    text = Path("saved.jsonl").read_text()
    Path("saved.jsonl").write_text(text.replace("allow", "deny", 1))
    assert told("journal", "verify", "saved.jsonl", code=1)["broken"][0]["problem"].startswith("entry 3")


def test_export_of_a_conversation(ids: list[str]) -> None:
    done = run("store", "export", ids[0], "--namespace", "ana", "--out", "one.jsonl.gz")
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(Path("one.jsonl.gz").stat().st_mode) == 0o600
    lines = [json.loads(line) for line in gzip.decompress(Path("one.jsonl.gz").read_bytes()).splitlines()]
    assert lines[0]["head"]["sequence"] == len([one for one in lines if "entry" in one and "place" not in one])
    assert [one["message"]["blocks"] for one in lines if "place" in one] == [[{"text": "hello \0 ana"}]]
    plain = run("store", "export", ids[0], "--namespace", "ana", "--no-content").stdout
    assert "hello" not in plain
    missing = run("store", "export", ids[0], "--namespace", "bob")
    assert missing.exit_code == 2
    assert "no conversation" in missing.stderr


def test_export_of_decisions(ids: list[str]) -> None:
    lines = [json.loads(line) for line in run("journal", "export").stdout.splitlines()]
    assert len(lines) == 4
    event = lines[0]
    assert event["path"] == "interlock/entrypoint/answers"
    assert event["result"] == {"verdict": "allow", "codes": [], "enforced": True, "labels": []}
    assert event["input"]["tool"] == {"server": "", "name": "add"}
    assert len({one["decision_id"] for one in lines}) == 4
    out = run(
        "journal", "export", "--namespace", "ana", "--erase", "/input/call/id", "--erase", "/input/nothing"
    ).stdout
    assert [json.loads(line)["erased"] for line in out.splitlines()] == [["/input/call/id"]] * 2
    assert "call_1" not in out
    assert run("journal", "export", "--erase", "timestamp").exit_code == 2


def test_purge(ids: list[str]) -> None:
    would = told("store", "purge", "--namespace", "ana")
    assert would == {
        "erased": False,
        "conversations": sorted(ids[:2]),
        "messages": 2,
        "remains": {"entries": 12, "labels": ["private:notes"]},
    }
    assert "what remains: 12 entries" in run("store", "purge", "--namespace", "ana").stdout
    assert told("store", "info")["namespaces"][0]["messages"] == 2
    assert told("store", "purge", "--namespace", "ana", "--older-than", "1h", "--yes")["conversations"] == []
    done = told("store", "purge", "--namespace", "ana", "--conversation", ids[0], "--yes")
    assert done == {
        "erased": True,
        "conversations": [ids[0]],
        "messages": 1,
        "remains": {"entries": 7, "labels": ["private:notes"]},
    }
    again_nothing = told("store", "purge", "--namespace", "ana", "--conversation", ids[0], "--yes")
    assert again_nothing["messages"] == 0
    left = b"".join(one.read_bytes() for one in Path("data").iterdir())
    assert b"hello \\u0000 bob" in left
    assert b"hello \\u0000 ana" not in left, "erased content is still on the disk"
    assert told("store", "info")["namespaces"][0]["messages"] == 1
    assert told("store", "verify")["damaged"] == []
    lock = Interlock.load("interlock.toml")
    assert isinstance(lock.journal, SqlStore)
    again = Conversations(lock.journal, "ana").load(ids[0])
    assert tuple(again.conversation.taint) == ("private:notes",)
    assert again.conversation.is_empty()
    lock.journal.close()
    assert run("store", "purge", "--namespace", "ana", "--older-than", "soon").exit_code == 2


@pytest.mark.postgres
def test_the_same_on_a_server(postgres_server: Server, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATS_DSN", postgres_server.empty())
    text = CONFIGURATION.format(more="plaintext = true").replace('kind = "sqlite"', 'kind = "postgres"')
    Path("interlock.toml").write_text(text.replace('path = "data/chats.db"', 'dsn_from = "CHATS_DSN"'))
    assert run("store", "info").exit_code == 2
    assert told("store", "migrate")["changed"]
    lock = Interlock.load("interlock.toml")
    ids = _filled(lock)
    assert isinstance(lock.journal, SqlStore)
    lock.journal.close()
    assert [one["conversations"] for one in told("store", "info")["namespaces"]] == [2, 2]
    assert told("journal", "verify")["broken"] == []
    assert len(run("journal", "export").stdout.splitlines()) == 4
    assert told("store", "purge", "--namespace", "bob", "--yes")["conversations"] == sorted(ids[2:])
    assert told("store", "verify")["damaged"] == []
    monkeypatch.delenv("CHATS_DSN")
    assert "CHATS_DSN is not set" in run("store", "info").stderr
