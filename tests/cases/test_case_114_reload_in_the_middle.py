"""Case 114: the policy was changed, and the change never applies, or it applies and forgets what had happened.

A control is made stricter and milder again while a conversation is open. Each reload says the new revision, guards use
it from their next call on, taint and calls in flight are what they were, and no decision mixes two revisions. The
honest twin is a reload without a change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal, ToolResult
from interlock.errors import Misconfigured
from interlock.model.entries import Decided
from tests.cases.desk import EVIL, ROOT, did, entries, got, mine

OPEN, CLOSED = "input.tool.known == true", 'input.tool.name == "read_mail"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manifest.toml").write_text((ROOT / "tests" / "scenarios" / "manifest.toml").read_text())
    (tmp_path / "interlock.toml").write_text('version = 1\nmanifest = ["manifest.toml"]\npolicies = ["controls"]\n')
    mine(tmp_path / "controls", OPEN)
    return tmp_path


def test_attack_a_change_applies_at_once_and_forgets_nothing(folder: Path) -> None:
    journal = MemoryJournal()
    lock = Interlock.load(folder / "interlock.toml", journal=journal)
    guard = lock.guard(Conversation.new())
    did(guard, "read_mail", {"query": "today"})
    waiting = guard.propose(Call("read_page", {"page": "Clients"}, "slow"))
    held, flying = guard.conversation.taint, set(guard.conversation.exposure)
    assert did(guard, "calc").executed
    seen = [lock.engine.revision]
    for body, wanted in ((CLOSED, ("deny", "mine")), (OPEN, ("allow", "allowed")), (CLOSED, ("deny", "mine"))):
        mine(folder / "controls", body)
        seen.append(lock.reload())
        outcome = did(guard, "calc")
        assert got(outcome) == wanted
        assert outcome.decision.revision == seen[-1] == lock.engine.revision
        assert guard.conversation.taint == held
        assert set(guard.conversation.exposure) == flying
        assert got(did(guard, "send_email", EVIL))[0] == "deny"
    assert seen[0] == seen[2] != seen[1] == seen[3]
    # A call that was decided under the old rules still lands under the new ones, with its labels.
    assert guard.observe(waiting, "slow", ToolResult("clients")).for_model == "clients"
    assert "private:workspace" in guard.conversation.taint
    decided = {entry.revision for entry in entries(guard, journal) if isinstance(entry, Decided)}
    assert decided == set(seen)


def test_attack_the_manifest_is_read_again_too(folder: Path) -> None:
    lock = Interlock.load(folder / "interlock.toml", journal=MemoryJournal())
    guard = lock.guard(Conversation.new())
    assert did(guard, "calc").executed
    text = (folder / "manifest.toml").read_text()
    assert "[tools.calc]" in text
    (folder / "manifest.toml").write_text(text.replace("[tools.calc]", "[tools.abacus]"))
    lock.reload()
    assert got(did(guard, "calc"))[0] != "allow"


def test_attack_no_silent_nothing(folder: Path) -> None:
    lock = Interlock.load(folder / "interlock.toml", journal=MemoryJournal())
    before = lock.engine.revision
    (folder / "interlock.toml").write_text("version = 2\n")
    with pytest.raises(Misconfigured):
        lock.reload()
    (folder / "interlock.toml").unlink()
    with pytest.raises(Misconfigured):
        lock.reload()
    assert lock.engine.revision == before


def test_honest_a_reload_without_a_change(folder: Path) -> None:
    lock = Interlock.load(folder / "interlock.toml", journal=MemoryJournal())
    guard = lock.guard(Conversation.new())
    before = did(guard, "calc").decision
    assert lock.reload() == before.revision
    after = did(guard, "calc").decision
    assert (after.verdict, after.revision, after.manifest) == (before.verdict, before.revision, before.manifest)
