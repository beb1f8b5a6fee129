"""Proves that the guide to stores holds against a real PostgreSQL as well: the same blocks print the same.

`test_code_blocks.py` runs the page as it stands, on SQLite. Here its configuration names a server, and nothing else
changes.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT, blocks_of
from tests.servers import Server

DOCS_STORES = ROOT / "docs" / "stores.md"
SQLITE = 'kind = "sqlite"\npath = "data/chats.db"\n'
POSTGRES = 'kind = "postgres"\ndsn_from = "CHATS_DSN"\nplaintext = true\n'


@pytest.mark.postgres
def test_every_block_on_a_server(postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHATS_DSN", postgres_server.empty())
    (configuration,) = [one for one in blocks_of(DOCS_STORES) if one.file == "interlock.toml"]
    assert SQLITE in configuration.body
    Path("interlock.toml").write_text(configuration.body.replace(SQLITE, POSTGRES))
    printed, ran = "", 0
    for block in blocks_of(DOCS_STORES):
        if block.note == "output":
            assert block.body == printed, f"{block}: prints something else on PostgreSQL"
        elif block.language == "python":
            body = block.body.replace(
                "from interlock.stores.sqlite import SqliteStore",
                "import os\nfrom interlock.stores.postgres import PostgresStore",
            ).replace('SqliteStore.migrate("data/chats.db")', 'PostgresStore.migrate(os.environ["CHATS_DSN"])')
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(block), "exec"), {"__name__": "__main__"})
            printed, ran = out.getvalue(), ran + 1
    assert ran >= 6
