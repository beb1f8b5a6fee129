"""A user's control could be called ``engine_error`` or ``allowed``.

Its denial was then told apart from a failure of the engine by nothing, and a refusal with the code ``allowed`` stood
in the journal and the log beside real permissions. An operator who looks for failures, or counts what was let through,
was shown the wrong ones. Now the gate's own codes are taken, and so are the shipped controls'.
Mutation that this file catches: the check for ``GATE_CODES`` in ``_packages`` left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.errors import PolicyError
from interlock.model.decisions import GATE_CODES
from tests.regressions.stage import control, decided, interlock, policies


@pytest.mark.parametrize("code", sorted(GATE_CODES))
@pytest.mark.parametrize("default", ['{"verdict": "deny"}', '{"verdict": "ask"}'])
def test_the_gates_codes_are_taken(code: str, default: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is the gate's own"):
        interlock(policies=policies(tmp_path, control(code, default=default)))


def test_the_list_names_what_the_gate_says() -> None:
    assert set(GATE_CODES) >= {"allowed", "engine_error", "journal_error", "invalid_call", "unavailable"}


@pytest.mark.parametrize("code", sorted(interlock().engine.controls))
def test_a_shipped_controls_code_is_taken(code: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="is a shipped control"):
        interlock(policies=policies(tmp_path, control(code)))


@pytest.mark.parametrize("code", ["engine_errors", "allow", "my_engine_error"])
def test_honest_names_beside_them_are_free(code: str, tmp_path: Path) -> None:
    assert decided("calc", {}, policies=policies(tmp_path, control(code))).codes == (code,)
