"""A typed file name vouched for a file in another folder.

The person asked to delete ``notes.txt``; the call named ``link/../notes.txt``. The text was normalised to
``notes.txt``, which the person had typed, but the file system follows ``link`` first, and the notes of another folder
were deleted. Now a path with ``..`` in it has no normal form by text and is never grounded.
Mutation that this file catches: the test for ``..`` in ``_path`` left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Verdict
from tests.regressions.stage import decided, guarded

WEB = ["untrusted:web"]


def test_a_link_then_dots_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    (other / "below").mkdir(parents=True)
    for folder in (work, other):
        (folder / "notes.txt").write_text("notes")
    (work / "link").symlink_to(other / "below")
    monkeypatch.chdir(work)

    guard = guarded("delete notes.txt", WEB)
    outcome = guard.call("delete", {"path": "link/../notes.txt"}, run=lambda path: Path(path).unlink())
    assert outcome.verdict is Verdict.ASK
    assert (other / "notes.txt").exists()

    outcome = guard.call("delete", {"path": "notes.txt"}, run=lambda path: Path(path).unlink())
    assert outcome.executed
    assert not (work / "notes.txt").exists()


@pytest.mark.parametrize(
    "path",
    ["a/../notes.txt", "../notes.txt", "x/y/..", "~/../notes.txt", "$HOME/../notes.txt", "a\\..\\notes.txt"],
)
def test_dots_are_not_resolved_by_text(path: str) -> None:
    assert decided("delete", {"path": path}, typed="delete notes.txt", labels=WEB).verdict is not Verdict.ALLOW


@pytest.mark.parametrize("path", ["notes.txt", "./notes.txt"])
def test_honest_a_path_without_dots_is_the_typed_one(path: str) -> None:
    assert decided("delete", {"path": path}, typed="delete notes.txt", labels=WEB).verdict is Verdict.ALLOW


@pytest.mark.parametrize("name", ["a..b.txt", "..notes.txt", "notes...txt"])
def test_honest_dots_inside_a_name_are_part_of_it(name: str) -> None:
    typed = f"delete ./{name}"
    assert decided("delete", {"path": f"./{name}"}, typed=typed, labels=WEB).verdict is Verdict.ALLOW
