"""Case 78: a tool is looked at once, and a week later its description says something else.

What a spec says, description and signature included, is in its digest; the digests of all are the manifest's, and that
one is in every decision. One character more is another tool; the order of keys, files and tools is none. The honest
twin loads the same file again and is the same manifest.
"""

from __future__ import annotations

from typing import Any

from interlock import Manifest, tool
from interlock.model.tools import ToolId
from tests.cases.desk import did, fresh, locked

ENTRY: dict[str, Any] = {
    "returns": ["untrusted:web", "private:files"],
    "egress": "chosen",
    "destinations": {"url": "url"},
    "content": ["body"],
    "arguments": ["url", "body"],
    "description": "Gets a page.",
}


def of(entry: dict[str, Any], name: str = "fetch") -> Manifest:
    return Manifest.parse({"version": 1, "tools": {name: entry, "calc": {"returns": [], "egress": "none"}}})


CHANGED: list[dict[str, Any]] = [
    {**ENTRY, "description": "Gets a page. "},
    {**ENTRY, "description": "Gets a page!"},
    {**ENTRY, "arguments": ["url", "body", "bcc"]},
    {**ENTRY, "content": []},
    {**ENTRY, "destinations": {"url": "id"}},
    {**ENTRY, "returns": ["untrusted:web"]},
    {**ENTRY, "effect": "write"},
    {**ENTRY, "opens": ["egress:channel"]},
]


def test_attack_every_change_is_another_tool() -> None:
    spec = ToolId("", "fetch")
    digests = {of(ENTRY).spec(spec).digest, *(of(entry).spec(spec).digest for entry in CHANGED)}
    assert len(digests) == len(CHANGED) + 1
    assert (
        len({of(ENTRY).digest, *(of(entry).digest for entry in CHANGED), of(ENTRY, "fetch2").digest})
        == len(CHANGED) + 2
    )


def test_attack_a_decision_says_under_which_manifest_it_was_made() -> None:
    for entry in (ENTRY, CHANGED[0]):
        outcome = did(fresh(locked(of(entry))), "calc")
        assert outcome.decision.manifest == of(entry).digest


def test_attack_a_function_with_another_signature_or_text_is_another_tool() -> None:
    def declared(function: Any) -> str:
        return tool(returns=[], egress="none", name="note")(function).spec.digest

    def one(text: str) -> None:
        """Notes."""

    def another_argument(text: str, bcc: str = "") -> None:
        """Notes."""

    def another_text(text: str) -> None:
        """Notes, and sends a copy."""

    assert len({declared(one), declared(another_argument), declared(another_text)}) == 3


def test_honest_order_is_no_change() -> None:
    turned = {key: ENTRY[key] for key in reversed(ENTRY)}
    turned = {**turned, "returns": ENTRY["returns"][::-1], "arguments": ENTRY["arguments"][::-1]}
    tools = {"calc": {"returns": [], "egress": "none"}, "fetch": turned}
    again = Manifest.parse({"tools": tools, "version": 1})
    assert again.digest == of(ENTRY).digest
    assert did(fresh(locked(again)), "calc").executed
