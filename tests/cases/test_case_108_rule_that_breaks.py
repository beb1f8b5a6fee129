"""Case 108: a rule throws, or answers something that is neither yes nor no, and that counts as "does not apply".

Controls that fail for some arguments only, so that the loader can't know, and controls that answer a word, a number, a
list or nothing of use. The first deny when they fail, and only then; the second do not load. The honest twin is the
same control given what it can read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Interlock
from interlock.errors import PolicyError
from tests.cases.desk import CONTROL, did, fresh, got, locked, mine

BREAKS = {
    "a builtin on another type": 'startswith(input.call.arguments.path, "notes/")',
    "contains": 'contains(lower(input.call.arguments.path), "notes")',
    "a division": "1 / input.call.arguments.path > 1",
    "a time": "time.parse_rfc3339_ns(input.call.arguments.path) > 0",
    "a pattern": "regex.match(input.call.arguments.path, input.call.arguments.path)",
}
OTHER: dict[str, object] = {"number": 0, "list": ["notes/"], "object": {"notes/": 1}, "null": None, "truth": True}


@pytest.mark.parametrize("body", BREAKS.values(), ids=BREAKS)
def test_attack_a_rule_that_fails_for_these_arguments_denies(tmp_path: Path, body: str) -> None:
    lock = locked(policies=[mine(tmp_path, body)])
    for name, value in OTHER.items():
        outcome = did(fresh(lock), "read_file", {"path": value})
        assert outcome.verdict.value == "deny", name
        assert set(outcome.decision.codes) <= {"mine", "engine_error"}


@pytest.mark.parametrize("answer", ['"yes"', "1", "[]", "{}", "true", "null", '"allow"', '["allow"]', '{"verdict": 1}'])
def test_attack_an_answer_that_is_none_does_not_load(tmp_path: Path, answer: str) -> None:
    (tmp_path / "mine.rego").write_text(CONTROL + 'input.mode == "x"\n\nelse := ' + answer + "\n")
    with pytest.raises(PolicyError, match="mine"):
        locked(policies=[tmp_path])


@pytest.mark.parametrize("answer", ['"yes"', "1", "[]", "{}", '{"verdict": "allow", "x": 1}', '{"verdict": "Allow"}'])
def test_attack_an_answer_that_is_none_for_these_arguments(tmp_path: Path, answer: str) -> None:
    text = CONTROL.replace('{"verdict": "allow"} if ', answer) + ' if input.call.arguments.path == "x"\n'
    (tmp_path / "mine.rego").write_text(text)
    lock = locked(policies=[tmp_path])
    assert got(did(fresh(lock), "read_file", {"path": "x"})) == ("deny", "engine_error")
    assert got(did(fresh(lock), "read_file", {"path": "y"})) == ("deny", "mine")


def test_attack_the_next_call_is_not_judged_by_the_failed_ones_document(tmp_path: Path) -> None:
    lock = locked(policies=[mine(tmp_path, BREAKS["a builtin on another type"])])
    guard = fresh(lock)
    assert did(guard, "read_file", {"path": "notes/a"}).executed
    for _ in range(3):
        assert got(did(guard, "read_file", {"path": ["notes/"]}))[0] == "deny"
        assert got(did(guard, "read_file", {"path": "keys/a"})) == ("deny", "mine")


@pytest.mark.parametrize("body", [BREAKS["a builtin on another type"], BREAKS["contains"]])
def test_honest_what_it_can_read(tmp_path: Path, body: str) -> None:
    lock: Interlock = locked(policies=[mine(tmp_path, body)])
    assert did(fresh(lock), "read_file", {"path": "notes/a"}).executed
