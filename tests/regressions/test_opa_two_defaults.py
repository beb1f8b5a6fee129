"""Of two defaults of one rule the embedded engine took one, and OPA did not load.

A library in two files gave ``default safe := false`` and ``default safe := true``. Which one counted followed from the
order of their texts, nobody was told, and a control that is lifted by ``lib.safe`` allowed or not for no better reason.
OPA refuses such policies as a whole, so the server had no policy at all. Now they don't load here either.
Mutations that this file catches: files looked at one by one; functions or verdicts counted as one name.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from interlock.errors import PolicyError
from interlock.model.settings import parse_settings
from interlock.policy.bundle import assemble
from interlock.policy.sources import Source, shipped_sources

CONTROL = """package controls.mine

import data.lib.team

default verdict := {"verdict": "deny"}

verdict := {"verdict": "allow"} if team.safe
"""


def loaded(*texts: str) -> None:
    mine = [Source(f"{number}.rego", text) for number, text in enumerate((CONTROL, *texts))]
    assemble([*shipped_sources(), *mine], parse_settings({}))


@pytest.mark.parametrize("order", list(permutations(("true", "false"))))
def test_a_second_default_does_not_load(order: tuple[str, ...]) -> None:
    with pytest.raises(PolicyError, match=r"`default safe` stands at .*rego:3 already"):
        loaded(*(f"package lib.team\n\ndefault safe := {value}\n" for value in order))
    with pytest.raises(PolicyError, match="keep one"):
        loaded("package lib.team\n\n" + "\n\n".join(f"default safe := {value}" for value in order) + "\n")


def test_one_default_in_each_of_two_libraries_does() -> None:
    loaded("package lib.team\n\ndefault safe := true\n", "package lib.other\n\ndefault safe := false\n")
