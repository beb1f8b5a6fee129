"""One call's "allow" was given to another call that the control would have denied.

Answers are remembered under the parts of the document that the controls read. A control that bound one name twice in a
rule (``every x in input.call.destinations``, later ``every x in input.call.arguments.cc``) had its first meaning
forgotten, and a chain of more than eight variables was given up: in both cases the receivers were not among the parts,
so a send to anybody looked like the one before. Now a rule with a name for two things reads all that it iterates over,
and chains are followed to their end.
Mutations that this file catches: ``rebound`` never set by ``bind``; ``looks_at`` without ``not rule.rebound``;
``absolute`` giving up after eight variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Conversation, Guard
from tests.regressions.stage import MANIFEST, control, interlock, policies, says

BOB, EVE = ({"to": f"{name}@corp.example", "body": "x"} for name in ("bob", "eve"))
LIFTED = 'verdict := {"verdict": "allow"} if {'
ONLY_BOB = '\tevery x in input.call.destinations { x.value == "bob@corp.example" }'
NOBODY_ELSE = '\tcount([x | some x in input.call.destinations; x.value == "eve@corp.example"]) == 0'
REBOUND = {
    "every, then a comprehension": (
        LIFTED,
        ONLY_BOB,
        '\tcount([x | some x in input.call.arguments.tags; x == "never"]) == 0',
        "}",
    ),
    "every, then every in the next branch": (
        LIFTED,
        ONLY_BOB,
        "}",
        "",
        'else := {"verdict": "ask"} if {',
        '\tevery x in input.call.arguments.cc { x == "boss@corp.example" }',
        "}",
    ),
    "two comprehensions": (
        LIFTED,
        NOBODY_ELSE,
        '\tcount([x | some x in input.call.arguments.tags; x == "never"]) == 0',
        "}",
    ),
    "an assignment, then some": (
        LIFTED,
        '\tcount([1 | x := input.call.destinations[_].value; x != "bob@corp.example"]) == 0',
        '\tcount([1 | some x in input.call.arguments.tags; x == "never"]) == 0',
        "}",
    ),
}


def _nested(inner: str, depth: int) -> Any:
    value: Any = inner
    for _ in range(depth):
        value = [value]
    return value


def _chain(depth: int) -> str:
    lines = [f"\tsome v{place} in {f'v{place - 1}' if place else 'input.call.arguments.l'}" for place in range(depth)]
    return control("mine", LIFTED, *lines, f'\tv{depth - 1} == "good"', "}")


def _everies(depth: int) -> str:
    lines = [
        "\t" * (place + 1) + f"every v{place} in {f'v{place - 1}' if place else 'input.call.arguments.l'} {{"
        for place in range(depth)
    ]
    ends = ["\t" * (place + 1) + "}" for place in reversed(range(depth))]
    return control("mine", LIFTED, *lines, "\t" * (depth + 1) + f'v{depth - 1} == "good"', *ends, "}")


def _guard(folder: Path, text: str) -> Guard:
    return interlock(manifest=MANIFEST, policies=policies(folder, text)).guard(Conversation.new())


def _same_as_alone(folder: Path, text: str, *calls: Call) -> list[str]:
    """What one guard says to the calls, one after the other, and that a new guard would have said the same to each."""
    together = _guard(folder, text)
    found = [says(together.preview(one)) for one in calls]
    assert found == [says(_guard(folder, text).preview(one)) for one in calls]
    return found


@pytest.mark.parametrize("name", REBOUND)
def test_a_name_for_two_things_hides_no_receiver(name: str, tmp_path: Path) -> None:
    calls = [Call("send_email", arguments) for arguments in (BOB, EVE)]
    assert _same_as_alone(tmp_path, control("mine", *REBOUND[name]), *calls) == ["allow", "deny mine"]
    assert _same_as_alone(tmp_path, control("mine", *REBOUND[name]), *reversed(calls)) == ["deny mine", "allow"]


@pytest.mark.parametrize(
    ("written", "depth"),
    # Brackets can't be nested deeper than the last.
    [*((_chain, depth) for depth in (2, 8, 9, 10, 12)), *((_everies, depth) for depth in (2, 8, 9))],
)
def test_a_long_chain_of_variables_hides_no_argument(written: Any, depth: int, tmp_path: Path) -> None:
    calls = [Call("calc", {"l": _nested(inner, depth)}) for inner in ("good", "evil")]
    assert _same_as_alone(tmp_path, written(depth), *calls) == ["allow", "deny mine"]


def test_nothing_is_sent_after_somebody_elses_allow(tmp_path: Path) -> None:
    guard, sent = _guard(tmp_path, control("mine", *REBOUND["every, then every in the next branch"])), []
    for arguments in (BOB, EVE):
        guard.call("send_email", dict(arguments), run=lambda **given: sent.append(given["to"]))
    assert sent == ["bob@corp.example"]


def test_honest_equal_calls_are_still_remembered(tmp_path: Path) -> None:
    guard = _guard(tmp_path, control("mine", *REBOUND["two comprehensions"]))
    for _ in range(3):
        assert says(guard.preview(Call("send_email", dict(BOB)))) == "allow"
    assert len(guard._current().world.remembered) == 1
