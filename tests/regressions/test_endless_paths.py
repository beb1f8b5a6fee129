"""One path stalled the gate for minutes.

``realpath`` looks at the disk once for every segment, and each look takes longer the deeper it is: a path of 500,000
segments in an argument kept the gate busy for minutes. Now what is too long, too many or too much together is not
resolved; it counts as a protected file, so that length opens nothing either.
Mutations that this file catches: one of the three bounds left out of ``candidates``; what is beyond a bound passed over
without ``TOO_MANY``; ``targets`` without the bound on a length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from interlock.assembly import LocalFiles
from interlock.model.control_plane import MAX_LENGTH, MAX_PIECES, MAX_TOGETHER
from tests.regressions.stage import decided, says


class _Counting:
    """Files that note what they are asked to resolve."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        self.asked += paths
        return LocalFiles().resolve(paths)


def _asked(name: str, arguments: dict[str, Any]) -> str:
    """What the gate says; that it resolved little is asserted here."""
    files = _Counting()
    said = says(decided(name, arguments, files=files))
    assert all(len(one) <= MAX_LENGTH for one in files.asked)
    assert sum(map(len, files.asked)) <= 4 * MAX_TOGETHER
    assert len(files.asked) <= 4 * (MAX_PIECES + 1)
    return said


# The whole of the arguments has a bound as well, and beyond it the call is denied before anybody reads a path.
SEGMENTS = [2100, 64_000, 250_000]


@pytest.mark.parametrize("segments", [*SEGMENTS, 500_000])
@pytest.mark.parametrize("name", ["write", "delete", "bash", "write_uri"])
def test_a_long_path_is_a_protected_file(name: str, segments: int) -> None:
    argument = {"write": "path", "delete": "path", "bash": "command", "write_uri": "uri"}[name]
    said = _asked(name, {argument: "a/" * segments})
    assert said.split()[0] in ("ask", "deny")
    if segments in SEGMENTS:
        assert "control_plane" in said


def test_so_are_many_paths_together() -> None:
    for paths in (
        ["a/" * 1000 + str(number) for number in range(500)],
        [f"notes/{number}" for number in range(MAX_PIECES + 1)],
        ["a/" * 2000 + str(number) for number in range(40)],
    ):
        for name, argument in (("write", "path"), ("write_uri", "uri"), ("bash", "files")):
            said = _asked(name, {argument: paths})
            assert said == "deny engine_error" or "control_plane" in said, (name, len(paths))


def test_a_protected_file_among_many_is_one() -> None:
    paths = [*(f"notes/{number}" for number in range(2000)), "interlock.toml", "a/" * 5000]
    assert _asked("write", {"path": paths}).split()[0] in ("ask", "deny")
    assert "control_plane" in _asked("write", {"path": paths})


def test_honest_long_texts_that_name_no_path() -> None:
    assert _asked("write", {"path": "notes/" + "a" * 200, "text": "a/" * 50_000}) == "allow"
    assert _asked("write", {"path": "a/" * 100 + "notes"}) == "allow"
    assert _asked("write", {"path": [f"notes/{number}" for number in range(200)]}) == "allow"
    assert _asked("bash", {"command": "ls " + " ".join(f"notes/{number}.md" for number in range(200))}) == "allow"
