"""An archive lost a folder of controls behind a link with a dot in its name, and files that it holds twice were merged.

A link without an ending was refused, since it may lead to a folder; one that is called ``team.v2`` was passed over in
silence, and with it every control in that folder. And of two files with one name tar keeps the last, while here both
were read: an archive that was checked by unpacking it was not the one that was loaded.
Mutations that this file catches: links with an ending passed over; names not remembered; ``..`` in names.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from interlock.errors import PolicyError
from tests.regressions.stage import control, decided
from tests.regressions.test_archives import _tar
from tests.regressions.workspaces import FINE

STRICT = control("strict")


def _refused(folder: Path, data: bytes, why: str) -> None:
    (folder / "rules.tar").write_bytes(data)
    with pytest.raises(PolicyError, match=why):
        decided("calc", {}, policies=[folder / "rules.tar"])


@pytest.mark.parametrize("name", ["team.v2", "deep/team.d", "strict.json"])
def test_a_link_with_an_ending_is_refused(name: str, tmp_path: Path) -> None:
    _refused(tmp_path, _tar(("fine.rego", FINE), (name, tarfile.SYMTYPE, "../team")), "no ordinary file")


@pytest.mark.parametrize("again", ["strict.rego", "./strict.rego", "/strict.rego"])
def test_a_file_that_stands_twice_is_refused(again: str, tmp_path: Path) -> None:
    _refused(tmp_path, _tar(("strict.rego", STRICT), (again, FINE)), "twice")


def test_a_name_that_leads_out_is_refused(tmp_path: Path) -> None:
    _refused(tmp_path, _tar(("a/../strict.rego", STRICT)), "leads out")
