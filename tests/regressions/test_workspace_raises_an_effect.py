"""A workspace loosened the protection of folders by making a tool stricter.

Effects have an order, and ``control`` is above ``destroy``; but only tools that destroy were asked about the folders
above the rules. A workspace that raised ``delete`` from ``destroy`` to ``control``, which is a narrowing, made the
removal of those folders an ordinary call. Now whatever is above ``destroy`` counts as destroying too.
Mutation that this file catches: ``CONTROL`` left out of the effects in ``targets``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation
from tests.regressions.stage import says
from tests.regressions.workspaces import OPERATOR, loaded


@pytest.mark.parametrize("before", ["write", "destroy", "control"])
@pytest.mark.parametrize("after", ["destroy", "control"])
def test_folders_above_the_rules_stay_protected(before: str, after: str, tmp_path: Path) -> None:
    operator = OPERATOR.replace("destroy", before)
    guard = loaded(tmp_path, f'[tools.delete]\neffect = "{after}"\n', operator=operator).guard(Conversation.new())
    for path in (tmp_path, tmp_path / "operator", tmp_path / "operator" / "rules"):
        assert "control_plane" in guard.preview(Call("delete", {"path": str(path)})).codes
        assert says(guard.preview(Call("delete", {"path": str(path)}))).startswith("deny")


def test_honest_other_folders_may_be_removed(tmp_path: Path) -> None:
    for effect in ("destroy", "control"):
        guard = loaded(tmp_path, f'[tools.delete]\neffect = "{effect}"\n').guard(Conversation.new())
        found = guard.preview(Call("delete", {"path": str(tmp_path / "work")}))
        assert says(found) == ("allow" if effect == "destroy" else "ask control_plane"), effect
