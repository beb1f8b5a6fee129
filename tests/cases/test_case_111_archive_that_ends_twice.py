"""Case 111: an archive that was damaged in the middle, or glued from two, ends there without a word.

A reader takes a header that it can't read, or one that is empty, for the end of the archive, though more follows; the
controls behind it would be missing, and their denials with them. Nothing of such an archive is loaded. The honest twin
is the whole archive.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.errors import Misconfigured
from tests.cases.desk import locked
from tests.cases.test_case_111_part_of_an_archive import THIRD, add, archive

# A plain tar of two small files: header, content, header, content, end; 512 bytes each.
DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "a flipped bit in the second header": lambda data: data[:1174] + bytes([data[1174] ^ 1]) + data[1175:],
    "an empty second header": lambda data: data[:1024] + bytes(512) + data[1536:],
    "two archives, one after the other": lambda data: data[:1024] + bytes(1024) + data[1024:],
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_attack_what_follows_the_end_is_not_passed_over(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = archive(tmp_path / "controls.tar", lambda tar: add(tar, "third.rego", THIRD), "w")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Misconfigured):
        locked(policies=[path])


def test_honest_a_whole_archive(tmp_path: Path) -> None:
    path = archive(tmp_path / "controls.tar", lambda tar: add(tar, "third.rego", THIRD), "w")
    assert {"first", "third"} <= set(locked(policies=[path]).engine.controls)
