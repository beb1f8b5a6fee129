"""An operator's configuration with a workspace's narrowing beside it, for the tests of what a workspace may do.
Proves nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from interlock import Interlock, MemoryJournal
from tests.regressions.stage import control

FINE = control("fine", 'verdict := {"verdict": "allow"} if input.tool.known == true')
OPERATOR = """version = 1
policies = ["rules"]

[tools.calc]
returns = []
egress = "none"

[tools.delete]
returns = []
egress = "none"
effect = "destroy"
destinations = { path = "path" }
"""


def loaded(
    folder: Path, narrowing: str, *, rules: str = FINE, operator: str = OPERATOR, guest: Mapping[str, str] | None = None
) -> Interlock:
    """The operator's files in ``folder/operator``, the workspace's in ``folder/project``, its controls in ``guest``."""
    for place, text in {
        "operator/interlock.toml": operator,
        "operator/rules/fine.rego": rules,
        "project/narrow.toml": f"version = 1\n{narrowing}",
        **{f"project/guest/{name}": text for name, text in (guest or {}).items()},
    }.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    return Interlock.load(
        folder / "operator" / "interlock.toml", workspace=folder / "project" / "narrow.toml", journal=MemoryJournal()
    )
