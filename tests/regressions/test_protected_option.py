"""``protected="/srv/policies"`` protected the files ``/``, ``s``, ``r``, ``v`` and so on, and not ``/srv/policies``.

A text is an iterable of its letters, so one path without brackets was taken apart in silence; ``~`` stayed a letter,
so ``["~/policies"]`` protected a folder called ``~``; and ``/`` in the list made every write a change of Interlock's
rules only because the first letter of a path is ``/``. Now one path where a list belongs is a load error, ``~`` is
opened, and the root of the file system is refused by name.
Mutations that this file catches: the check for one text in ``_paths`` left out; ``expanduser`` left out; the check for
the root left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Verdict
from interlock.errors import Misconfigured
from tests.regressions.stage import decided, interlock, says


@pytest.mark.parametrize("option", ["protected", "policies"])
@pytest.mark.parametrize("given", ["/srv/policies", b"/srv/policies", Path("/srv/policies"), ""])
def test_one_path_is_not_a_list_of_paths(option: str, given: Any) -> None:
    with pytest.raises(Misconfigured, match=f"{option} takes a list of paths"):
        interlock(**{option: given})


def test_the_home_folder_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("~/rules/x.rego", f"{tmp_path}/rules/x.rego", f"{tmp_path}/rules"):
        assert says(decided("write", {"path": path, "text": "x"}, protected=["~/rules"])) == "deny control_plane", path
    assert decided("write", {"path": "~/other/x.rego", "text": "x"}, protected=["~/rules"]).verdict is Verdict.ALLOW


@pytest.mark.parametrize("root", ["/", "//", "/srv/.."])
def test_the_root_is_refused(root: str) -> None:
    with pytest.raises(Misconfigured, match="the root of the file system"):
        interlock(protected=[root])


@pytest.mark.parametrize("given", [["/srv/rules"], ("/srv/rules",), [Path("/srv/rules")], {"/srv/rules"}])
def test_honest_a_list_protects_what_is_in_it(given: Any) -> None:
    assert says(decided("write", {"path": "/srv/rules/x", "text": "x"}, protected=given)) == "deny control_plane"
    assert decided("write", {"path": "/srv/other", "text": "x"}, protected=given).verdict is Verdict.ALLOW


def test_honest_a_relative_path_is_relative_to_the_folder_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "rules" / "x")
    assert says(decided("write", {"path": path, "text": "x"}, protected=["rules"])) == "deny control_plane"
