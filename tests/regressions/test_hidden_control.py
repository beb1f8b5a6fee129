"""A control in a file called ``.rego`` was not loaded.

``Path(".rego").suffix`` is empty, so the file was passed over, and what the control would have denied was allowed. Now
the end of the name counts, in folders and in archives.
Mutation that this file catches: ``Path(name).suffix`` in place of ``endswith`` in ``_is_read``.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from interlock.errors import PolicyError
from tests.regressions.stage import control, decided, interlock, policies, says
from tests.regressions.workspaces import FINE


@pytest.mark.parametrize("name", [".rego", ".strict.rego", "deep/.rego"])
def test_it_is_loaded(name: str, tmp_path: Path) -> None:
    mine = policies(tmp_path / "rules", FINE)
    policies((tmp_path / "rules" / name).parent, control("strict"), Path(name).name)
    assert says(decided("calc", {}, policies=mine)) == "deny strict"
    with tarfile.open(tmp_path / "rules.tar", "w") as archive:
        for inside, text in (("fine.rego", FINE), (name, control("strict"))):
            info = tarfile.TarInfo(inside)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    assert says(decided("calc", {}, policies=[tmp_path / "rules.tar"])) == "deny strict"


def test_one_in_capitals_is_refused(tmp_path: Path) -> None:
    policies(tmp_path, FINE)
    with pytest.raises(PolicyError, match="lower case"):
        interlock(policies=policies(tmp_path, control("strict"), ".REGO"))


def test_honest_what_only_looks_alike_is_no_control(tmp_path: Path) -> None:
    for name in ("rego", "strict.rego.bak", "strict.regos"):
        policies(tmp_path, control("strict"), name)
    assert says(decided("calc", {}, policies=policies(tmp_path, FINE))) == "allow"
