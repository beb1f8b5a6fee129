"""Proves that the page about OPA servers holds with a real one: where it was out, it answers; what is printed follows.

`test_code_blocks.py` runs the page as it stands, where nobody listens. Here a server is at that address.

Mutation that it is shown to catch: a fallback that speaks although the server answers.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

pytest.importorskip("opa_client")

from interlock.assembly import bundled, read_parts
from tests.docs.test_code_blocks import ROOT, blocks_of
from tests.opa_worlds import written
from tests.servers import opa

PAGE = ROOT / "docs" / "opa.md"
NOBODY = "http://localhost:8189"


@pytest.mark.opa
def test_every_block_with_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [one for one in blocks_of(PAGE) if one.file]
    for one in files:
        assert NOBODY in one.body
        Path(one.file).write_text(one.body)
    _, bundle = bundled(read_parts("interlock.toml"))
    with opa("-b", str(written(bundle, tmp_path / "bundle"))) as server:
        for one in files:
            Path(one.file).write_text(one.body.replace(NOBODY, server.url))
        printed = []
        for block in blocks_of(PAGE):
            if block.language == "python":
                body = block.body.replace(
                    "print(outcome.decision.reasons[0]", "print('' and outcome.decision.reasons[0]"
                )
                body = body.replace('dict(lock.engine.counts)["refused"]', "dict(lock.engine.counts)")
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(body, str(block), "exec"), {"__name__": "__main__"})
                printed.append(out.getvalue())
    assert printed == ["allow allowed\n\n{'answered': 1}\n", "allow opa\n"]
