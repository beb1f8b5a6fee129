"""A reload after a change of folder read a stranger's files.

``Interlock.load("interlock.toml")`` and ``policies=["rules"]`` kept the relative path, and ``reload()`` resolved it
anew: an agent that had changed into a project with an ``interlock.toml`` of its own was from then on governed by the
project. Now every path is made absolute once, when it is given.
Mutations that this file catches: ``abspath`` left out of ``load`` for the configuration or for the workspace, or out of
``_paths``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal
from tests.regressions.stage import control, interlock, policies, says
from tests.regressions.workspaces import FINE

CALC = 'version = 1\n[tools.calc]\nreturns = []\negress = "none"\n'
MORE = CALC + '[tools.send_email]\nreturns = []\negress = "none"\n'


def _says(interlock: Interlock, name: str) -> str:
    return says(interlock.guard(Conversation.new()).preview(Call(name, {})))


def _written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_configuration_stays_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_written(tmp_path / "operator", "interlock.toml", CALC))
    loaded = Interlock.load("interlock.toml", journal=MemoryJournal())
    before = _says(loaded, "send_email")
    assert before.startswith(("ask", "deny"))
    monkeypatch.chdir(_written(tmp_path / "project", "interlock.toml", MORE))
    loaded.reload()
    assert _says(loaded, "send_email") == before


def test_so_does_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = _written(tmp_path / "operator", "interlock.toml", CALC) / "interlock.toml"
    monkeypatch.chdir(_written(tmp_path / "strict", "narrow.toml", 'version = 1\ndeny = ["calc"]\n'))
    loaded = Interlock.load(operator, workspace="narrow.toml", journal=MemoryJournal())
    monkeypatch.chdir(_written(tmp_path / "loose", "narrow.toml", "version = 1\n"))
    loaded.reload()
    assert _says(loaded, "calc") == "deny unavailable"


def test_so_do_the_controls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policies(tmp_path / "operator" / "rules", control("strict"))
    policies(tmp_path / "project" / "rules", FINE)
    monkeypatch.chdir(tmp_path / "operator")
    built = interlock(policies=["rules"])
    monkeypatch.chdir(tmp_path / "project")
    # The parts of an Interlock that was not loaded are fixed, so only the files are read again.
    built.reload()
    assert _says(built, "calc") == "deny strict"


def test_so_do_protected_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path)
    built = interlock(protected=["secrets"])
    monkeypatch.chdir(tmp_path / "project")
    built.reload()
    call = Call("write", {"path": str(tmp_path / "secrets" / "x"), "text": ""})
    assert says(built.guard(Conversation.new()).preview(call)) == "deny control_plane"


def test_honest_a_reload_reads_the_operators_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = _written(tmp_path / "operator", "interlock.toml", CALC)
    monkeypatch.chdir(operator)
    loaded = Interlock.load("interlock.toml", journal=MemoryJournal())
    monkeypatch.chdir(tmp_path)
    _written(operator, "interlock.toml", MORE)
    loaded.reload()
    assert _says(loaded, "send_email") == "allow"
