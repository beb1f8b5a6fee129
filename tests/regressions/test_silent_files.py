"""Controls that the operator had put in the folder were not loaded, and nothing said so.

The loader looked for ``*.rego`` below real folders: ``strict.REGO``, a dangling link ``strict.rego`` and a folder that
is a link were passed over in silence, and the interlock started without the control that would have denied. Now
whatever looks like a control and can't be loaded is a load error that names the file.
Mutations that this file catches: each of the three checks in ``_directory`` left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PolicyError
from tests.regressions.stage import control, decided, interlock, policies

FINE = control("fine", 'verdict := {"verdict": "allow"} if input.tool.known == true')


@pytest.mark.parametrize("name", ["strict.REGO", "strict.Rego", "below/strict.REGO"])
def test_another_case_is_refused(tmp_path: Path, name: str) -> None:
    mine = policies(tmp_path / "mine", FINE)
    policies((tmp_path / "mine" / name).parent, control("strict"), Path(name).name)
    with pytest.raises(PolicyError, match="would not be loaded"):
        interlock(policies=mine)


@pytest.mark.parametrize("name", ["strict.rego", "settings.schema.json"])
def test_a_dangling_link_is_refused(tmp_path: Path, name: str) -> None:
    mine = policies(tmp_path / "mine", FINE)
    (tmp_path / "mine" / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(PolicyError, match="dangling"):
        interlock(policies=mine)


def test_a_folder_that_is_called_like_a_control_is_refused(tmp_path: Path) -> None:
    mine = policies(tmp_path / "mine", FINE)
    (tmp_path / "mine" / "below").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "mine" / "below" / "strict.rego").symlink_to(tmp_path / "real")
    with pytest.raises(PolicyError):
        interlock(policies=mine)


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    mine = policies(tmp_path / "mine", FINE)
    policies(tmp_path / "team", control("strict"))
    (tmp_path / "mine" / "team").symlink_to(tmp_path / "team", target_is_directory=True)
    with pytest.raises(PolicyError, match="a link to a folder is not followed"):
        interlock(policies=mine)


def test_honest_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    """Mounted configuration looks like this: a hidden folder with the versions, and links into it."""
    policies(tmp_path / "mine" / "..2026_11_29", control("strict"))
    (tmp_path / "mine" / "..data").symlink_to("..2026_11_29", target_is_directory=True)
    (tmp_path / "mine" / "mine.rego").symlink_to("..data/mine.rego")
    decision = decided("calc", {}, policies=[tmp_path / "mine"])
    assert decision.codes == ("strict",)


def test_honest_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    policies(tmp_path / "real", control("strict"))
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert decided("calc", {}, policies=[tmp_path / "link"]).codes == ("strict",)


def test_honest_other_files_may_lie_beside(tmp_path: Path) -> None:
    mine = policies(tmp_path / "mine", FINE)
    for name in ("README.md", "mine_test.rego.txt", "samples.json", "notes.RTF"):
        (tmp_path / "mine" / name).write_text("{}")
    assert decided("calc", {}, policies=mine).codes == ()
