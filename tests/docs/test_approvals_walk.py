"""Proves that the walk in docs/approvals.md is what really happens: a person at a terminal, and nobody at one.

The page's files are laid out and its commands are run, the agent on a real pseudo-terminal; what was typed there is
typed again. Everything must be as recorded, but for times, ids and digests.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "approvals.md"
_BLOCK = re.compile(r"^<!-- walk(?:: (\S+))? -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"Approve\? \[[^\]]*\] ")


def masked(text: str) -> list[str]:
    """What differs from run to run, taken out."""
    for pattern, word in (
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?", "TIME"),
        (r"\b(q-|sha256:)[0-9a-f]{16,64}\b", "ID"),
        (r"\b\d+\.\d s\b", "SECONDS"),
    ):
        text = re.sub(pattern, word, text)
    # Columns are as wide as what stands in them.
    return [re.sub(r"  +", "  ", line).strip() for line in text.strip().splitlines()]


def at_a_terminal(answers: list[str]) -> str:
    """The agent on a pseudo-terminal, with what a person types at each question."""
    master, slave = pty.openpty()
    command = [sys.executable, "agent.py"]
    started = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    seen, waiting = "", list(answers)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece.decode()
        if waiting and len(_PROMPT.findall(seen)) > len(answers) - len(waiting):
            os.write(master, f"{waiting.pop(0)}\n".encode())
    assert started.wait(30) == 0, seen
    os.close(master)
    return seen.replace("\r\n", "\n")


def headless() -> str:
    done = subprocess.run(
        [sys.executable, "agent.py"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(PAGE.parents[1]))
    ran = []
    for name, text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if name:
            Path(name).write_text(text)
            continue
        for command, _, said in (part.partition("\n") for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]):
            if command == "python agent.py":
                printed = at_a_terminal(re.findall(_PROMPT.pattern + r"(\w+)", said))
            elif command == "python agent.py < /dev/null":
                printed = headless()
            else:
                words = shlex.split(command)
                assert words[0] == "interlock"
                printed = CliRunner().invoke(cli, words[1:]).output
            assert masked(printed) == masked(said), command
            ran.append(command)
    assert ran[0] == "python agent.py"
    assert ran[-1] == "python agent.py < /dev/null"
    assert len(ran) == 4
