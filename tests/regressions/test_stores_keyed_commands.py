"""`store export` called every conversation of a store with a key tampered with, and `verify --key-file` did too.

Exporting verified without the key. Verifying with a key that was given on the command line read the messages with that
of the configuration. So whoever followed the advice to use a key could export nothing.
Mutations that this file catches: the key is left out of the export; the key of the command is used for heads only.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli
from interlock.conversations import Conversations
from interlock.errors import Tampered
from interlock.stores import audit
from interlock.stores.sqlite import SqliteStore

KEY = b"k" * 32


def test_a_store_with_a_key(tmp_path: Path) -> None:
    (tmp_path / "heads.key").write_bytes(KEY)
    (tmp_path / "interlock.toml").write_text(
        'version = 1\n[journal]\nkind = "sqlite"\npath = "store.db"\nkey_file = "heads.key"\n'
    )
    SqliteStore.migrate(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", key=KEY)
    name = Conversations(store, "ana").new("hello").id
    config = ["--config", str(tmp_path / "interlock.toml")]
    done = CliRunner().invoke(cli, ["store", "export", name, "--namespace", "ana", *config])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["message"]["blocks"] == [{"text": "hello"}]
    audit.reaches(store.within("ana"), lines[0]["head"], KEY)  # signed with it, too
    with pytest.raises(Tampered):
        audit.reaches(store.within("ana"), {**lines[0]["head"], "sequence": 1}, KEY)
    named = ["--store", str(tmp_path / "store.db")]
    done = CliRunner().invoke(cli, ["store", "verify", *named, "--key-file", str(tmp_path / "heads.key")])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(cli, ["store", "verify", *named]).exit_code == 1
    store.close()
