"""T10: a head that was damaged in an odd way raised `TypeError` where it is `Tampered`.

`hmac.compare_digest` takes ASCII text only, and the JSON library refuses lone surrogates: a head file with a changed
byte in its `mac` or in a label came out as a foreign error, which callers that look for `Tampered` do not handle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from interlock.errors import Tampered
from interlock.model.chain import GENESIS, head, seal, verify
from interlock.model.labels import Label

ENTRY = seal(1, GENESIS, b"{}")


@pytest.mark.parametrize("key", [b"", b"key"], ids=["plain", "keyed"])
@pytest.mark.parametrize(
    "damage",
    [
        {"mac": "\u00e9"},
        {"mac": "\ud800"},
        {"labels": (Label("\ud800"),), "mac": "x"},
        {"digest": "\ud800", "mac": "x"},
    ],
    ids=ascii,
)
def test_t10_any_damage_to_a_head_is_tampered(key: bytes, damage: dict[str, Any]) -> None:
    held = replace(head(1, ENTRY.digest, (Label("private:mail"),), key), **damage)
    with pytest.raises(Tampered):
        verify([ENTRY], held, key)
