"""`interlock store export` verified without the key of the heads, so a store with a key could not be exported at all.

Found when the commands for retention were first tried on a store that has a key.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock import Interlock
from tests.unit.test_store_commands import CONFIGURATION, _filled, run, told


def test_a_store_with_a_key_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("interlock.toml").write_text(CONFIGURATION.format(more='key_file = "key"'))
    Path("key").write_bytes(b"k" * 32)
    told("store", "migrate")
    lock = Interlock.load("interlock.toml")
    name = _filled(lock)[0]
    lock.journal.close()  # type: ignore[union-attr]
    done = run("store", "export", name, "--namespace", "ana")
    assert done.exit_code == 0, done.output
    head = json.loads(done.stdout.splitlines()[0])["head"]
    assert len(head["signature"]) == 64
    Path("key").write_bytes(b"o" * 32)
    assert run("store", "export", name, "--namespace", "ana").exit_code == 2
