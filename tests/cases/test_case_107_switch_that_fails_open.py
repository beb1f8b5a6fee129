"""Case 107: an option, on by default, lets calls through while the policy is out, and they look like allowed ones.

There is no such option: not of the Interlock, not among the settings, not in the file, and not among the controls' own
settings. A guard whose engine or journal is out refuses, and what it lets through is enforced. The honest twin
looks at an allowed call and finds it so.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from interlock import Interlock, MemoryJournal
from interlock.errors import Misconfigured
from interlock.model.settings import SETTING_VALUES, Settings
from tests.cases.desk import MANIFEST, Engine, did, fresh, got, locked

WORDS = ["fail_open", "failOpen", "fail_mode", "on_error", "default_action", "enabled", "bypass", "dry_run"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("value", [True, "allow", "open", False])
def test_attack_no_word_for_it(tmp_path: Path, word: str, value: object) -> None:
    with pytest.raises(TypeError):
        Interlock(manifest=MANIFEST, **{word: value})
    with pytest.raises(Misconfigured):
        locked(settings={word: value})
    with pytest.raises(Misconfigured):
        locked(settings={"controls": {word: value}})
    shown = str(value).lower() if isinstance(value, bool) else f'"{value}"'
    (tmp_path / "interlock.toml").write_text(
        f'version = 1\n{word} = {shown}\n[tools.a]\nreturns = []\negress = "none"\n'
    )
    with pytest.raises(Misconfigured):
        Interlock.load(tmp_path / "interlock.toml")


@pytest.mark.parametrize("value", [True, False, None, 0, "", "allow", "open", "off", "SHADOW"])
def test_attack_the_mode_has_no_other_word(tmp_path: Path, value: object) -> None:
    """There is one other mode than enforcing, and whoever wants it has to say its name (case 156)."""
    with pytest.raises(Misconfigured, match="mode"):
        Interlock(manifest=MANIFEST, mode=value)  # type: ignore[arg-type]
    with pytest.raises(Misconfigured):
        locked(settings={"mode": value})


def test_attack_no_value_of_a_setting_lifts_a_control_but_the_one_that_is_off_anyway() -> None:
    loose = {name for name, values in SETTING_VALUES.items() if set(values) - {"ask", "deny"}}
    # The trifecta, the open channel and sent credentials have no such value. What has one is off only where it was
    # written so, and the two that begin with it would forbid most useful work.
    assert not loose & {"trifecta", "open_channel", "secret_egress"}
    begins = {name for name in loose if getattr(Settings(), name) == "off"}
    assert begins == {"leak_guard", "lockdown"}
    assert {name for name in inspect.signature(Interlock).parameters if "open" in name or "fail" in name} == set()


def test_attack_while_the_engine_is_out_and_after() -> None:
    out: list[BaseException] = []
    lock = Interlock(
        manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda document: out[0] if out else good(document))
    )
    guard = fresh(lock)
    assert did(guard, "calc", {"expression": "1"}).executed
    out.append(OSError(5, "x"))
    for _ in range(5):  # no counter of failures opens anything
        assert got(did(guard, "calc", {"expression": "1"})) == ("deny", "engine_error")
    out.clear()
    assert did(guard, "calc", {"expression": "1"}).executed


def good(document: bytes) -> object:
    return locked().engine.evaluate(document)


def test_honest_an_allowed_call_was_enforced() -> None:
    outcome = did(fresh(), "calc", {"expression": "1"})
    assert outcome.decision.enforced
    assert got(outcome) == ("allow", "allowed")
    assert outcome.decision.revision
    assert outcome.decision.document
