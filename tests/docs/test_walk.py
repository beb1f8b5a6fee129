"""Proves that the session in docs/writing-policies.md is what really happens: its files, its commands, its output."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "writing-policies.md"
_BLOCK = re.compile(r"(?:<!-- walk(\+?): (\S+) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


def blocks() -> list[tuple[str, str, str, str]]:
    """(``+`` or nothing, file, language, text) of every block of the walk, in order."""
    section = PAGE.read_text(encoding="utf-8").partition("## Ten minutes")[2].partition("\n## ")[0]
    return _BLOCK.findall(section)


def masked(text: str) -> str:
    """What differs from run to run, taken out."""
    return re.sub(r"revision \w+", "revision …", text).strip()


def test_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = 0
    for more, name, language, text in blocks():
        if name:
            file = Path(name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text((file.read_text() if more else "") + text)
        elif language == "console":
            for command, _, said in (part.partition("\n") for part in text.split("$ ")[1:]):
                words = shlex.split(command)
                if words[0] == "cd":
                    monkeypatch.chdir(words[1])
                    continue
                assert words[0] == "interlock"
                done = CliRunner().invoke(cli, words[1:])
                printed = masked(done.output)
                for piece in masked(said).split("…\n"):  # the page leaves parts out
                    assert piece.strip().replace("revision …", "") in printed.replace("revision …", ""), done.output
                ran += 1
    assert ran >= 6
