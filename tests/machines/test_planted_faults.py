"""Proves that the property suite finds what it is for: each named fault, planted in a copy of ours, fails its check.

The faults are in `suite_faults.py`, by name; each test is one fault. They are looked for without shrinking, since only
whether is of interest; how short the traces become is shown for one fault of each check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from interlock import Conversation, MemoryJournal, Session
from interlock.testing import check_conversation, check_engine, check_integration, check_journal, check_session
from tests.machines import suite_faults as faults

MEMORY = Path("/dev/shm")
FOLDER = MEMORY if MEMORY.is_dir() else None
settings.register_profile(
    "planted", settings(), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate], max_examples=800
)
settings.register_profile("planted and shrunk", settings(), derandomize=True, database=None, max_examples=800)


@pytest.fixture
def profile(request: pytest.FixtureRequest) -> Iterator[None]:
    before = settings.get_current_profile_name()
    settings.load_profile(request.param)
    yield
    settings.load_profile(before)


unshrunk = pytest.mark.parametrize("profile", ["planted"], indirect=True, ids=[""])
shrunk = pytest.mark.parametrize("profile", ["planted and shrunk"], indirect=True, ids=[""])


def trace(found: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    """The numbered steps. The text of every failure has them, what was expected and what was held."""
    text = str(found.value)
    assert re.search(r"^expected: ", text, re.MULTILINE), text
    assert re.search(r"^held: ", text, re.MULTILINE), text
    assert "expected: no exception" not in text, "the fault is an accident of its own"
    return re.findall(r"^  \d+\. .*$", text, re.MULTILINE)


def plant(fault: Any, patch: pytest.MonkeyPatch) -> Any:
    """A class is given to the check; a function changes our code."""
    if isinstance(fault, type):
        return fault
    fault(patch)
    return Conversation


@unshrunk
@pytest.mark.parametrize("name", faults.CONVERSATIONS)
def test_conversations(name: str, profile: None, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = plant(faults.CONVERSATIONS[name], monkeypatch)
    with pytest.raises(AssertionError, match="does not hold") as found:
        check_conversation(factory)
    assert trace(found)


@unshrunk
@pytest.mark.parametrize("name", faults.SESSIONS)
def test_sessions(name: str, profile: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(faults.SESSIONS[name], monkeypatch)
    with pytest.raises(AssertionError, match="does not hold") as found:
        check_session(Session.create, Session.load, folder=FOLDER)
    assert trace(found)


@unshrunk
@pytest.mark.parametrize("name", faults.ENGINES)
def test_engines(name: str, profile: None) -> None:
    with pytest.raises(AssertionError, match="does not hold") as found:
        check_engine(faults.ENGINES[name]())
    assert trace(found)


@unshrunk
@pytest.mark.parametrize("name", faults.JOURNALS)
def test_journals(name: str, profile: None) -> None:
    kind = faults.JOURNALS[name]

    def reopen(journal: Any) -> Any:
        return journal.reopened() if hasattr(journal, "reopened") else journal

    with pytest.raises(AssertionError, match="does not hold") as found:
        check_journal(kind, reopen=reopen, examples=150)
    assert trace(found)


@unshrunk
@pytest.mark.parametrize("name", faults.INTEGRATIONS)
def test_integrations(name: str, profile: None) -> None:
    with pytest.raises(AssertionError, match="does not hold") as found:
        check_integration(faults.INTEGRATIONS[name], folder=FOLDER)
    assert trace(found)


def test_there_are_at_least_three_faults_for_each_check() -> None:
    for planted in (faults.CONVERSATIONS, faults.SESSIONS, faults.ENGINES, faults.JOURNALS, faults.INTEGRATIONS):
        assert len(planted) >= 3


# --- short traces -----------------------------------------------------------------------------------------------------


@shrunk
def test_a_trace_is_short_and_can_be_read(profile: None) -> None:
    with pytest.raises(AssertionError) as found:
        check_conversation(faults.RollbackClears)
    lines = str(found.value).splitlines()
    assert lines[:2] == ["check_conversation(RollbackClears): T2 does not hold:", "  1. A is a new conversation"]
    assert 4 <= len(trace(found)) <= 6
    assert lines[-3].endswith(". the run in A failed and was rolled back")
    assert lines[-2].startswith("expected: A has ")
    assert lines[-1] == "held:     nothing (clean)"


@shrunk
def test_a_session_trace_is_short(profile: None, monkeypatch: pytest.MonkeyPatch) -> None:
    faults.labels_are_written_when_it_is_closed(monkeypatch)
    with pytest.raises(AssertionError) as found:
        check_session(Session.create, Session.load, folder=FOLDER)
    assert len(trace(found)) <= 4


@shrunk
def test_a_journal_trace_is_short(profile: None) -> None:
    with pytest.raises(AssertionError) as found:
        check_journal(faults.NotAtomic)
    assert len(trace(found)) <= 4


@shrunk
def test_an_engine_trace_names_what_differs(profile: None) -> None:
    with pytest.raises(AssertionError) as found:
        check_engine(faults.ENGINES["siblings loosen"]())
    steps = trace(found)
    assert len(steps) == 2
    assert "one more sibling" in steps[1]


@shrunk
def test_an_integration_trace_is_short(profile: None) -> None:
    with pytest.raises(AssertionError) as found:
        check_integration(faults.SpawnsClean, folder=FOLDER)
    assert len(trace(found)) <= 6


def test_the_innocent_pass() -> None:
    """The same code without a fault: what is found above is the fault, and not the harness."""
    check_integration(faults.Honest, folder=FOLDER, examples=30)
    check_integration(faults.Mute, folder=FOLDER, examples=30)
    check_engine(faults.Altered(lambda document, answers, raw: answers), examples=10)
    check_conversation(faults.Forgetful, examples=20)
    check_journal(MemoryJournal, reopen=lambda journal: journal, examples=10)
