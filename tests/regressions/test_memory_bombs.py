"""One short control, or one number in a call's arguments, could end the process.

``sprintf("%2000000000d", …)``, ``numbers.range(1, n)``, ``concat`` and ``replace`` stood on the allow-list. The
embedded engine has no limits, so a result of gigabytes ended the process, and with ``n`` out of the arguments the
model could do it at any time. Now what can make a result far larger than its arguments is off the list, and a control
that calls it does not load.
Mutation that this file catches: any of them put back on the list.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PolicyError
from interlock.policy.builtins import ALLOWED, RESERVED
from tests.regressions.stage import control, decided, interlock, policies

BOMBS = {
    "sprintf": 'count(sprintf("%2000000000d", [1])) > 1',
    "numbers.range": 'count(numbers.range(1, object.get(input.call.arguments, "n", 1))) > 1',
    "numbers.range_step": "count(numbers.range_step(1, 1000000000, 1)) > 1",
    "concat": 'count(concat("", ["aaaa", "aaaa"])) > 1',
    "replace": 'count(replace("aaaa", "a", "aaaa")) > 1',
    "strings.replace_n": 'count(strings.replace_n({"a": "aaaa"}, "aaaa")) > 1',
    "strings.render_template": 'count(strings.render_template("{{.}}", {})) > 1',
    "bits.lsh": "bits.lsh(1, 1000000000) > 1",
    "json.patch": "json.patch({}, []) == {}",
    "base64.encode": 'base64.encode("a") == "YQ=="',
    "graph.reachable": 'graph.reachable({}, ["a"]) == set()',
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_can_grow_is_not_allowed(name: str, tmp_path: Path) -> None:
    assert name not in ALLOWED
    text = control("mine", f'verdict := {{"verdict": "allow"}} if {BOMBS[name]}')
    with pytest.raises(PolicyError, match="is not allowed in controls"):
        interlock(policies=policies(tmp_path, text))


@pytest.mark.parametrize("name", ["sprintf", "concat", "replace"])
def test_they_may_not_come_back_as_a_name_of_ones_own(name: str) -> None:
    assert name in RESERVED


def test_honest_text_is_compared_without_them(tmp_path: Path) -> None:
    rule = 'verdict := {"verdict": "allow"} if regex.match(`^[a-z]+$`, trim_space(lower(input.tool.name)))'
    assert decided("calc", {"n": 9_000_000_000}, policies=policies(tmp_path, control("mine", rule))).codes == ()
