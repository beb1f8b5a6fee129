"""Case 109: a rule reads a field that only some calls have, throws on the others, and all are refused or none.

Every key of the document is there in every call, so a rule about payments can say which calls are its business, and
names of fields that do not exist are refused at load. What is in its business and lacks the field is not ignored. The
honest twins are the calls that the rule is not about.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Interlock
from interlock.errors import PolicyError
from tests.cases.desk import did, fresh, got, locked, mine

PAY = {
    "pay": {"returns": [], "egress": "none", "effect": "write", "content": ["amount", "payee"]},
    "click": {"returns": ["untrusted:web"], "egress": "none"},
    "calc": {"returns": [], "egress": "none"},
}
LIMIT = """package controls.limit

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if input.tool.name in {"click", "calc"}

verdict := {"verdict": "allow"} if {
	is_number(input.call.arguments.amount)
	input.call.arguments.amount <= 100
}
"""


@pytest.fixture
def lock(tmp_path: Path) -> Interlock:
    (tmp_path / "limit.rego").write_text(LIMIT)
    return locked(PAY, policies=[tmp_path])


@pytest.mark.parametrize(
    "arguments", [{}, {"amount": "50"}, {"amount": None}, {"amount": [50]}, {"amuont": 50}, {"amount": 101}]
)
def test_attack_a_payment_without_its_field_is_not_ignored(lock: Interlock, arguments: dict[str, object]) -> None:
    assert got(did(fresh(lock), "pay", arguments)) == ("deny", "limit")


@pytest.mark.parametrize(
    "path", ["input.mcp.effect", "input.tool.efect", "input.call.tool", "input.call.amount", "input.effect"]
)
def test_attack_a_field_that_no_call_has_is_found_at_load(tmp_path: Path, path: str) -> None:
    with pytest.raises(PolicyError, match="the document has no input"):
        locked(PAY, policies=[mine(tmp_path, f'{path} == "write"')])


def test_honest_other_calls_are_none_of_its_business(lock: Interlock) -> None:
    guard = fresh(lock)
    assert did(guard, "calc", {"expression": "1"}).executed
    assert did(guard, "pay", {"amount": 100, "payee": "kim"}).executed
    assert did(guard, "click", {"x": 1, "y": 2}).executed


def test_honest_every_field_of_the_document_can_be_named(tmp_path: Path) -> None:
    """Neutral values: a call without destinations has an empty list, and so on; none of these throws on any call."""
    body = "\n\t".join(
        [
            "input.call.destinations == []",
            "input.call.siblings == 0",
            'input.conversation.parent == ""',
            "input.tool.opens == []",
            'input.tool.server == ""',
            "input.call.labels.private == []",
        ]
    )
    assert did(fresh(locked(PAY, policies=[mine(tmp_path, body)])), "calc").executed
