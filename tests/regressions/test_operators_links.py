"""Operator's files that were reached through links were not protected.

Only what a path resolved to was protected, and only whole folders: the target of a control that was a link, the folder
that held the link to a manifest or to the rules, and the files of joined manifests could be written and removed. Now
each of them is protected both as it is named and as the file system resolves it, every control's file for itself.
Mutations that this file catches: ``abspath`` or ``realpath`` left out of ``_protected``; the files in the folders left
out; ``joined`` keeping the paths of one manifest only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation, Manifest
from tests.regressions.stage import control, decided, interlock, policies, says
from tests.regressions.workspaces import FINE

DENIED = "deny control_plane"
DELETE = 'version = 1\n[tools.delete]\nreturns = []\negress = "none"\neffect = "destroy"\n'
DELETES = DELETE + 'destinations = { path = "path" }\n'
WRITES = DELETES.replace("delete", "write").replace("destroy", "write")


def _folders(root: Path, *names: str) -> list[Path]:
    found = [root / name for name in names]
    for one in found:
        one.mkdir()
    return found


def test_the_target_of_a_linked_control_is_protected(tmp_path: Path) -> None:
    rules, team = _folders(tmp_path, "rules", "team")
    text = control("strict", 'verdict := {"verdict": "allow"} if input.tool.name == "write"')
    (team / "s.rego").write_text(text)
    (rules / "s.rego").symlink_to(team / "s.rego")
    built = interlock(policies=[rules])
    guard = built.guard(Conversation.new())
    harmless = FINE.replace("fine", "strict")

    def run(path: str, text: str) -> None:
        Path(path).write_text(text)

    outcome = guard.call("write", {"path": str(team / "s.rego"), "text": harmless}, run=run)
    assert says(outcome.decision) == DENIED
    built.reload()
    assert says(guard.preview(Call("calc", {}))) == "deny strict"
    for path in (team, rules, rules / "s.rego"):
        assert "control_plane" in decided("delete", {"path": str(path)}, policies=[rules]).codes


def test_a_linked_manifest_is_protected_at_both_ends(tmp_path: Path) -> None:
    named, real = _folders(tmp_path, "a", "b")
    (real / "tools.toml").write_text(DELETES)
    (named / "tools.toml").symlink_to(real / "tools.toml")
    manifest = Manifest.load(named / "tools.toml")
    for path in (named / "tools.toml", real / "tools.toml", named, real):
        assert says(decided("delete", {"path": str(path)}, manifest=manifest)) == DENIED


def test_a_linked_folder_of_controls_is_protected_at_both_ends(tmp_path: Path) -> None:
    named, real = _folders(tmp_path, "x", "real")
    (real / "fine.rego").write_text(FINE)
    (named / "rules").symlink_to(real)
    for path in (named / "rules", real, named, real / "fine.rego", named / "rules" / "new.rego"):
        assert says(decided("delete", {"path": str(path)}, policies=[named / "rules"])) == DENIED


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_every_file_of_joined_manifests_is_protected(order: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WRITES)
    (tmp_path / "b.toml").write_text('version = 1\n[tools.calc]\nreturns = []\negress = "none"\n')
    first, second = (Manifest.load(tmp_path / f"{name}.toml") for name in order)
    for manifest in (first.joined(second), Manifest({}).joined(first).joined(second)):
        for name in order:
            assert says(decided("write", {"path": str(tmp_path / f"{name}.toml")}, manifest=manifest)) == DENIED


def test_a_file_url_through_a_link_is_the_file(tmp_path: Path) -> None:
    policies(tmp_path / "rules", FINE)
    (tmp_path / "link").symlink_to(tmp_path / "rules")
    for uri in (
        "file://{}/rules/mine.rego",
        "file://{}/link/mine.rego",
        "{}/link/mine.rego",
        "file://{}/l%69nk/m.rego",
    ):
        arguments = {"uri": uri.format(tmp_path), "text": "x"}
        assert says(decided("write_uri", arguments, policies=[tmp_path / "rules"])) == DENIED


def test_honest_files_beside_them_may_be_written(tmp_path: Path) -> None:
    rules, team, work = _folders(tmp_path, "rules", "team", "work")
    (team / "s.rego").write_text(FINE)
    (rules / "s.rego").symlink_to(team / "s.rego")
    for path in (team / "notes.txt", work / "a.txt"):
        assert says(decided("write", {"path": str(path), "text": "x"}, policies=[rules])) == "allow"
    assert says(decided("delete", {"path": str(work)}, policies=[rules])) == "allow"
