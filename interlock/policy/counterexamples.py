"""Counterexamples as scenario files, so that what the prover found can be run, read and kept as a test."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from interlock.model.tools import Egress
from interlock.policy.prove import Counterexample, Move

_TYPED = "bob@example.com"
_OTHER = "eve@evil.example"


def as_scenario(example: Counterexample) -> str:
    """A file with one story per state. A damaged document (T6) is no story: ``says`` describes the damage."""
    stories: dict[str, Any] = {}
    if example.law == "T5":
        stories["weaker"] = _story("honest", f"{example.code} gives {example.verdicts[0]} here", example.weaker)
        says = f"{example.code} gives {example.verdicts[1]} here, though more is exposed"
        stories["stronger"] = _story("attack", says, example.stronger, expect=example.verdicts[0])
    else:
        stories["state"] = _story("attack", f"{example.says} {example.damage}".strip(), example.stronger, expect="deny")
    return _yaml(
        {
            "version": 1,
            "title": f"{example.law}: {example.code}: {example.says}",
            "manifest": {"version": 1, "tools": _tools(example.weaker) | _tools(example.stronger)},
            "settings": dict(example.settings),
            "stories": stories,
        }
    )


def leak_scenario(moves: Sequence[Move]) -> str:
    """The shortest sequence of a manifest's tools that leaks, with the verdict that its last call should have had."""
    tools: dict[str, Any] = {}
    steps: list[dict[str, Any]] = [{"user": f"Please write to {_TYPED} when you are done."}]
    for place, move in enumerate(moves):
        spec = move.spec
        sends = spec.egress is not Egress.NONE or bool(spec.destinations)
        if spec.known:
            tools[spec.id.name] = {
                "returns": list(spec.returns),
                "reads": list(spec.reads),
                "opens": list(spec.opens),
                "egress": spec.egress.value,
                "effect": spec.effect.value,
                **({"audience": "closed"} if spec.egress is Egress.BLIND else {}),
                **({"destinations": {"to": "email"}} if sends and spec.egress is not Egress.BLIND else {}),
            }
        last = place == len(moves) - 1
        steps.append(
            {
                "call": spec.id.name,
                "arguments": {"to": _TYPED if move.grounded else _OTHER} if sends else {},
                "expect": "deny" if last else move.verdict.value,
            }
        )
    story = {"kind": "attack", "says": "the last call leaves unasked", "steps": steps}
    return _yaml(
        {
            "version": 1,
            "title": "a sequence of tools that leaks unasked",
            "manifest": {"version": 1, "tools": tools},
            "stories": {"sequence": story},
        }
    )


def _name(state: Mapping[str, Any]) -> str:
    own, opened = state.get("private by this call", ()), state.get("opened by this call", ())
    parts = ["call", state.get("egress", "none"), state.get("effect", ("none",))[0], *own, *opened]
    return "_".join(parts)


def _tools(state: Mapping[str, Any]) -> dict[str, Any]:
    """The tool of a state, and one beside it for what siblings bring."""
    egress = state.get("egress", "none")
    tool: dict[str, Any] = {
        "returns": [],
        "reads": [f"private:{one}" for one in state.get("private by this call", ())],
        "opens": [f"egress:{one}" for one in state.get("opened by this call", ())],
        "egress": egress,
        "effect": state.get("effect", ("none",))[0],
    }
    if egress == "blind":
        tool["audience"] = "closed"
    else:
        tool["destinations"] = {"to": "email"}
    beside = {
        "returns": [f"private:{one}" for one in state.get("private by siblings", ())],
        "opens": [f"egress:{one}" for one in state.get("opened by siblings", ())],
        "egress": "none",
    }
    found = {_name(state): tool} if state.get("known", True) else {}
    return {**found, _beside(state): beside}


def _beside(state: Mapping[str, Any]) -> str:
    return "_".join(["beside", *state.get("private by siblings", ()), *state.get("opened by siblings", ())])


def _story(kind: str, says: str, state: Mapping[str, Any], *, expect: str = "") -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"user": f"Please write to {_TYPED} when you are done."}]
    labels = [
        *(f"untrusted:{one}" for one in state.get("untrusted", ())),
        *(f"private:{one}" for one in state.get("private", ())),
        *(f"egress:{one}" for one in state.get("open channels", ())),
    ]
    if labels:
        steps.append({"admit": "what was there before", "labels": labels})
    arguments: dict[str, Any] = {}
    if state.get("egress") != "blind":
        arguments["to"] = _TYPED if state.get("grounded", True) else _OTHER
    if state.get("unclassified"):
        arguments["header"] = "x"
    call = {"call": _name(state), "arguments": arguments, "expect": expect or "deny"}
    if state.get("private by siblings") or state.get("opened by siblings"):
        steps.append({"batch": [call, {"call": _beside(state), "expect": "allow"}]})
    else:
        steps.append(call)
    return {"kind": kind, "says": says, "steps": steps}


def _yaml(value: dict[str, Any]) -> str:
    out = io.StringIO()
    writer = YAML()
    writer.width = 110
    writer.dump(value, out)
    return out.getvalue()
