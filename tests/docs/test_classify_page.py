"""Proves that the sessions in docs/classify.md are what really happens: each line that it shows is printed, in order.

Mutation that it is shown to catch: a leg or a count changed in any line of the page.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock import Manifest
from interlock.cli import cli
from tests.docs.test_code_blocks import blocks_of, lay_out

PAGE = Path(__file__).parents[2] / "docs" / "classify.md"


def test_the_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = 0
    for block in (one for one in blocks_of(PAGE) if one.language == "console"):
        line, _, said = block.body.partition("\n")
        words = shlex.split(line.removeprefix("$ "))
        done = CliRunner().invoke(cli, words[1:])
        assert done.exit_code in (0, 1), done.output
        printed = [" ".join(one.split()) for one in done.stdout.splitlines()]
        at = 0
        for wanted in (" ".join(one.split()) for one in said.splitlines() if one != "…"):
            found = next((place for place in range(at, len(printed)) if printed[place].startswith(wanted)), None)
            assert found is not None, f"{block}: {wanted!r} is not printed after line {at}\n{done.stdout}"
            at = found + 1
        ran += 1
    assert ran == 3
    shown = next(one for one in blocks_of(PAGE) if one.language == "toml").body
    written = (tmp_path / "notes.toml").read_text(encoding="utf-8")
    assert shown.partition("\n\n")[2] in written
    assert len(Manifest.loads(written)) == 2
