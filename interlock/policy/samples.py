"""Documents that every control must be able to answer, asked once when a bundle is loaded."""

from __future__ import annotations

from typing import Any, Final

_DIGEST: Final = "sha256:" + "0" * 64
_ALL: Final = {"receivers": True, "objects": True, "parties": True, "links": True, "targets": True}
_NOBODY: Final = {"argument": "x", "kind": "unknown", "noun": "", "value": "", "origin": "unseen"}


def _sample(untrusted: list[str], private: list[str], egress: list[str], **changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "now": "2026-11-29T12:00:00Z",
        "conversation": {"id": "c-0", "namespace": "default", "parent": ""},
        "exposure": {"untrusted": untrusted, "private": private, "egress": egress},
        "forecast": {
            "untrusted": untrusted,
            "private": private,
            "egress": egress,
            "credentials": "unknown" in private,
        },
        "tool": {
            "server": "",
            "name": "send_email",
            "known": True,
            "digest": _DIGEST,
            "returns": [],
            "reads": [],
            "opens": [],
            "egress": "chosen",
            "effect": "none",
            "audience": "",
            **changes.get("tool", {}),
        },
        "call": {
            "digest": _DIGEST,
            "arguments": {"to": "bob@example.com", "subject": "hello", "body": "…"},
            "siblings": 0,
            "destinations": [
                {"argument": "to", "kind": "email", "value": "bob@example.com", "origin": "user", "talks_back": False}
            ],
            "grounded": True,
            "unclassified": [],
            "labels": {"untrusted": [], "private": [], "egress": []},
            "control": "none",
            "objects": [],
            "parties": [],
            "links": [],
            "vouched": dict(_ALL),
            "credentials": False,
            "drip": False,
            **changes.get("call", {}),
        },
        "mode": "enforce",
    }


SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "clean send": _sample([], [], []),
    "quiet tool": _sample(
        [],
        [],
        [],
        tool={"egress": "none"},
        call={"destinations": [], "grounded": False, "arguments": {}, "vouched": {**_ALL, "targets": False}},
    ),
    "every leg": _sample(
        ["unknown"],
        ["unknown"],
        ["unknown"],
        tool={"known": False, "effect": "control", "returns": ["private:unknown", "untrusted:unknown"]},
        call={
            "destinations": [
                {"argument": "", "kind": "unknown", "value": "", "origin": "unseen", "talks_back": True},
            ],
            "grounded": False,
            "unclassified": ["x"],
            "arguments": {"x": [1, None, True, {"y": "z"}]},
            "control": "interlock",
            "siblings": 3,
            "objects": [dict(_NOBODY)],
            "parties": [dict(_NOBODY)],
            "links": [dict(_NOBODY)],
            "vouched": dict.fromkeys(_ALL, False),
            "credentials": True,
            "drip": True,
        },
    ),
}
