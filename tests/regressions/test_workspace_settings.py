"""A workspace could widen one of the operator's controls by declaring a setting that it reads.

``object.get(data.settings.controls, "max_siblings", 0)`` is a control's way to read a setting that may be missing. A
``settings.schema.json`` beside the workspace's own control declared that setting with a default of its own, and the
operator's control read it. Now a workspace can't declare settings at all.
Mutation that this file catches: the refusal of ``folder.schemas`` of a guest left out of ``bundled``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation
from interlock.errors import PolicyError
from tests.regressions.stage import control, policies, says
from tests.regressions.workspaces import FINE, loaded

OPTIONAL = control(
    "fine",
    'verdict := {"verdict": "allow"} if input.call.siblings <= object.get(data.settings.controls, "max_siblings", 0)',
)
GUEST = control("guest", 'verdict := {"verdict": "allow"}')
SCHEMA = '{"type": "object", "properties": {"max_siblings": {"default": 1000}}}'
CALLS = [Call("calc", {}), Call("calc", {})]


@pytest.mark.parametrize("rules", [OPTIONAL, FINE])
@pytest.mark.parametrize("name", ["settings.schema.json", "deep/settings.schema.json"])
def test_a_workspace_declares_no_settings(name: str, rules: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="a workspace can't declare settings"):
        loaded(tmp_path, 'policies = ["guest"]\n', rules=rules, guest={"guest.rego": GUEST, name: SCHEMA})


def test_honest_a_workspaces_control_narrows_beside_it(tmp_path: Path) -> None:
    guest = {"guest.rego": GUEST, "notes.json": SCHEMA}
    built = loaded(tmp_path, 'policies = ["guest"]\n', rules=OPTIONAL, guest=guest)
    assert says(built.guard(Conversation.new()).preview(*CALLS)) == "deny fine"


def test_honest_the_operator_declares_settings(tmp_path: Path) -> None:
    policies(tmp_path / "operator" / "rules", SCHEMA, "settings.schema.json")
    built = loaded(tmp_path, 'policies = ["guest"]\n', rules=OPTIONAL, guest={"guest.rego": GUEST})
    assert says(built.guard(Conversation.new()).preview(*CALLS)) == "allow"
