"""Calls could rewrite the files that decide about them.

Only the user's own policy folders were protected. A write to Interlock's package, to the shipped Rego files, to a
loaded manifest under any name or to ``interlock.yml`` counted as an ordinary write, and a destroying call could remove
or move a folder above a protected one. Now all of them are on the control plane: such a call is denied, whoever asks
for it.
Mutations that this file catches: package, shipped directory or manifest left out of ``_protected``; ``interlock.yml``
left out of the table; ``removed`` left out of ``touched``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import interlock as package
from interlock import Interlock, Manifest, MemoryJournal, Verdict
from interlock.policy.sources import shipped_directory
from tests.regressions.stage import MANIFEST, control, decided, policies, says

DENIED = "deny control_plane"
PACKAGE = Path(package.__file__).resolve().parent


@pytest.mark.parametrize(
    "path",
    [
        PACKAGE / "gate" / "steps.py",
        PACKAGE / "errors.py",
        PACKAGE / "new_file.py",
        shipped_directory() / "interlock" / "controls" / "trifecta" / "trifecta.rego",
        shipped_directory() / "interlock" / "controls" / "new" / "new.rego",
        "interlock.toml",
        "interlock.yaml",
        "interlock.yml",
        "/srv/agent/Interlock.YML",
        "/srv/agent/.interlock/journal",
    ],
)
def test_interlocks_own_files_are_on_the_control_plane(path: object) -> None:
    assert says(decided("write", {"path": str(path), "text": "x"})) == DENIED
    assert decided("bash", {"command": f"tee {path}"}).codes[0] == "control_plane"


def test_a_loaded_manifest_is_protected_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "what_tools_do.toml"
    file.write_text(
        'version = 1\n[tools.write]\nreturns = []\negress = "none"\neffect = "write"\n'
        'destinations = { path = "path" }\ncontent = ["text"]\n'
    )
    manifest = Manifest.load(file)
    assert says(decided("write", {"path": str(file), "text": "x"}, manifest=manifest)) == DENIED
    assert decided("write", {"path": str(tmp_path / "notes"), "text": "x"}, manifest=manifest).verdict is Verdict.ALLOW


def test_so_are_all_files_of_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("version: 1\ntools: {write: {returns: [], egress: none, effect: write}}\n")
    (tmp_path / "agent.toml").write_text('version = 1\nmanifest = ["tools.yaml"]\npolicies = ["mine"]\n')
    (tmp_path / "project.toml").write_text("version = 1\n")
    policies(tmp_path / "mine", control("mine", 'verdict := {"verdict": "allow"} if input.tool.known == true'))
    loaded = Interlock.load(tmp_path / "agent.toml", workspace=tmp_path / "project.toml", journal=MemoryJournal())
    guard = loaded.guard(package.Conversation.new())
    for name, verdict in {
        "tools.yaml": Verdict.DENY,
        "agent.toml": Verdict.DENY,
        "project.toml": Verdict.DENY,
        "mine/mine.rego": Verdict.DENY,
        "mine/more.rego": Verdict.DENY,
        "notes.txt": Verdict.ALLOW,
    }.items():
        outcome = guard.preview(package.Call("write", {"path": str(tmp_path / name)}))
        assert outcome.verdict is verdict, name


def test_a_folder_above_a_protected_one_goes_with_it(tmp_path: Path) -> None:
    mine = policies(tmp_path / "etc" / "policies", control("mine"))
    for path in (tmp_path / "etc" / "policies", tmp_path / "etc", tmp_path, Path("/")):
        assert "control_plane" in decided("delete", {"path": str(path)}, policies=mine).codes, path
    assert "control_plane" not in decided("delete", {"path": str(tmp_path / "other")}, policies=mine).codes


def test_a_link_to_a_protected_file_is_that_file(tmp_path: Path) -> None:
    mine = policies(tmp_path / "policies", control("mine", 'verdict := {"verdict": "allow"}'))
    (tmp_path / "link").symlink_to(tmp_path / "policies", target_is_directory=True)
    (tmp_path / "way").symlink_to(tmp_path / "policies" / "mine.rego")
    for path in (tmp_path / "link" / "mine.rego", tmp_path / "way", tmp_path / "x" / ".." / "policies" / "mine.rego"):
        assert says(decided("write", {"path": str(path), "text": "x"}, policies=mine)) == DENIED


@pytest.mark.parametrize("path", ["notes.txt", "interlock.md", "docs/interlock/notes.txt", "/srv/policies/mine.rego"])
def test_honest_other_files_are_nobodys_rules(path: str) -> None:
    assert decided("write", {"path": path, "text": "x"}).verdict is Verdict.ALLOW


def test_honest_reading_them_changes_nothing() -> None:
    assert decided("read_file", {"path": str(PACKAGE / "errors.py")}, manifest=MANIFEST).verdict is Verdict.ALLOW
