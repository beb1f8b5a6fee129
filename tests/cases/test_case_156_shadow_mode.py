"""Case 156: the trial run differs from the real one, or somebody believes in a gate that only looks on.

Shadow mode takes the very path of enforcement: the same document but for its ``mode``, the same controls, the same
codes. The call runs, its labels join, and the record says that nothing was enforced (T8's clause for shadow mode). It
is chosen by name, said in the log, seen in every decision and in every record, asks nobody and uses no approval.
Interlock's own files stay guarded. The honest twin is a gate that enforces: with nothing said, that is what it does.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from interlock import Call, Conversation, Guard, Interlock, MemoryJournal, tool
from interlock.assembly import read_parts
from interlock.cli import cli
from interlock.errors import EngineUnavailable, JournalUnavailable, Misconfigured
from interlock.gate.approval_steps import ApprovalRules
from interlock.model.decision_log import events
from interlock.model.decisions import Verdict
from interlock.model.entries import Observed, Shadowed, decode
from interlock.model.question import Answer, Question
from tests.cases.desk import EVIL, MANIFEST, Engine, armed, did, entries, fresh, locked

MINE = {"path": "interlock.toml", "text": "x"}
CALLS = {
    "allowed": Call("calc", {"expression": "1"}),
    "denied": Call("send_email", EVIL),
    "asked": Call("delete_mail", {"id": "m-1"}),
    "unknown": Call("nobody", {}),
    "agent's own files": Call("write_file", {"path": ".claude/settings.json", "text": "x"}),
}


def shadowing(**options: Any) -> Interlock:
    return locked(mode="shadow", **options)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_attack_the_trial_decides_as_the_real_gate_and_runs(call: Call) -> None:
    real = armed().propose(call).outcomes["call_1"].decision
    lock = shadowing()
    guard = armed(lock)
    ran: list[dict[str, Any]] = []
    outcome = guard.call(call.name, call.arguments, run=lambda **given: ran.append(given) or "done")  # type: ignore[func-returns-value]
    tried = outcome.decision
    assert (tried.verdict, tried.codes) == (real.verdict, real.codes)
    assert (tried.enforced, real.enforced) == (False, True)
    assert (outcome.executed, outcome.for_model, ran) == (True, "done", [dict(call.arguments)])
    record = [one for one in entries(guard, lock.journal) if isinstance(one, Shadowed)][-1]
    assert (record.verdict, record.codes, record.call) == (real.verdict.value, real.codes, outcome_digest(guard, call))
    assert guard.preview(call).enforced is False


def outcome_digest(guard: Guard, call: Call) -> str:
    from interlock.model.calls import freeze

    return freeze(call, MANIFEST)[0].digest


def test_attack_labels_of_what_really_ran_join() -> None:
    """The denied read ran, so its labels are here, and what comes after is judged under them."""
    lock = shadowing(settings={"lockdown": "deny"})
    guard = fresh(lock)
    guard.admit("x", labels=["untrusted:web"], source="x")
    read = did(guard, "execute_sql", {"query": "select 1"})
    assert (read.verdict, read.executed) == (Verdict.DENY, True)
    assert {"untrusted:database", "private:database"} <= set(guard.conversation.taint)
    assert "trifecta" in did(guard, "send_email", EVIL).decision.codes
    assert guard.conversation.state.in_flight == {}


def test_attack_the_record_stands_before_the_call_runs() -> None:
    """T8: without the entry nothing runs, in shadow mode too."""
    lock = shadowing()
    guard = armed(lock)
    held: list[str] = []

    def send(**_: Any) -> str:
        held.extend(one.kind for one in entries(guard, lock.journal))
        return "sent"

    assert guard.call("send_email", EVIL, run=send).executed
    assert held[-1] == "shadowed"

    class Full(MemoryJournal):
        full = False

        def append(self, *args: Any, **options: Any) -> Any:
            if self.full:
                raise JournalUnavailable("the disk is full")
            return super().append(*args, **options)

    journal = Full()
    guard = Interlock(manifest=MANIFEST, journal=journal, mode="shadow").guard(Conversation.new())
    journal.full = True
    outcome = did(guard, "calc", {"expression": "1"})
    assert (outcome.executed, outcome.decision.code, outcome.decision.enforced) == (False, "journal_error", True)


def test_attack_nobody_is_asked_and_no_yes_is_used() -> None:
    class Never:
        def ask(self, question: Question, seconds: float) -> Answer:
            raise AssertionError("nobody is asked in shadow mode")

    journal = MemoryJournal()
    enforcing = Interlock(manifest=MANIFEST, journal=journal, approvals=ApprovalRules())
    conversation = Conversation.new()
    guard = enforcing.guard(conversation)
    guard.admit("x", labels=["untrusted:web"], source="x")
    ticket = guard.propose(CALLS["asked"])
    guard.answer(ticket.questions["call_1"].id, "approve")
    shadow = Interlock(manifest=MANIFEST, journal=journal, approver=Never(), mode="shadow").guard(conversation)
    assert did(shadow, "delete_mail", {"id": "m-1"}).executed
    kinds = [decode(one.body).kind for one in journal.entries(conversation.id)]
    assert "consumed" not in kinds
    assert kinds.count("asked") == 1
    assert guard.propose(CALLS["asked"]).outcomes["call_1"].decision.grant  # it was kept for the real gate
    assert shadow.conversation.state.denials == {}


@pytest.mark.parametrize("path", ["interlock.toml", "./x/../interlock.toml"])
def test_attack_interlocks_own_files_stay_guarded(path: str, tmp_path: Path) -> None:
    lock = shadowing(protected=[tmp_path / "manifest.toml"])
    guard = fresh(lock)
    for place in (path, str(tmp_path / "manifest.toml")):
        outcome = did(guard, "write_file", {**MINE, "path": place})
        assert (outcome.executed, outcome.decision.code, outcome.decision.enforced) == (False, "control_plane", True)
        assert outcome.is_error
    assert not [one for one in entries(guard, lock.journal) if isinstance(one, Shadowed)]
    assert did(guard, "write_file", {**MINE, "path": "notes.txt"}).executed


def test_attack_malformed_and_unknowable_calls_stay_refused() -> None:
    lock = shadowing()
    assert did(fresh(lock), "Send Email", {}).decision.code == "invalid_call"
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    assert not did(fresh(lock), "calc", {"expression": deep}).executed


def test_attack_what_nobody_could_look_at_stays_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a document nobody knows whether the call would change the gate's own files."""

    def unfit(_: object) -> None:
        raise EngineUnavailable("the document does not fit its schema")

    monkeypatch.setattr("interlock.gate.steps.check_document", unfit)
    outcome = did(fresh(shadowing()), "write_file", {**MINE, "path": "notes.txt"})
    assert (outcome.executed, outcome.decision.code, outcome.decision.enforced) == (False, "engine_error", True)


def test_attack_an_engine_that_fails_is_recorded_and_the_call_runs() -> None:
    lock = Interlock(
        manifest=MANIFEST, journal=MemoryJournal(), engine=Engine(lambda _: EngineUnavailable("x")), mode="shadow"
    )
    guard = fresh(lock)
    outcome = did(guard, "calc", {"expression": "1"})
    assert (outcome.executed, outcome.decision.code, outcome.decision.enforced) == (True, "engine_error", False)
    assert not did(guard, "write_file", MINE).executed


def test_attack_it_is_never_silent(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "interlock"):
        shadowing()
    assert "SHADOW MODE" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "interlock"):
        locked()
    assert "SHADOW" not in caplog.text
    with pytest.raises(Misconfigured, match="mode"):
        locked(mode="off")


def configured(folder: Path, mode: str = "") -> Path:
    file = folder / "interlock.toml"
    file.write_text(f'version = 1\n{mode}\n[tools.calc]\nreturns = []\negress = "none"\n', encoding="utf-8")
    return file


def test_attack_only_the_operators_file_can_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = configured(tmp_path)
    assert read_parts(file).mode == "enforce"
    lock = Interlock.load(file, journal=MemoryJournal())
    configured(tmp_path, 'mode = "shadow"')
    with caplog.at_level(logging.WARNING, "interlock"):
        lock.reload()
        lock.reload()
    assert caplog.text.count("SHADOW MODE") == 1
    assert lock.guard(Conversation.new()).call("nobody", run=lambda: 1).executed
    workspace = tmp_path / "project.toml"
    workspace.write_text('version = 1\nmode = "shadow"\n', encoding="utf-8")
    configured(tmp_path)
    with pytest.raises(Misconfigured, match="unknown key"):
        Interlock.load(file, workspace=workspace, journal=MemoryJournal())
    for wrong in ('mode = "off"', "mode = false", 'mode = "Shadow"'):
        configured(tmp_path, wrong)
        with pytest.raises(Misconfigured, match="mode"):
            read_parts(file)


def test_attack_records_say_that_nothing_was_enforced(tmp_path: Path) -> None:
    from click.testing import CliRunner

    lock = shadowing()
    guard = armed(lock)
    did(guard, "send_email", EVIL)
    held = [("sha256:0", one) for one in entries(guard, lock.journal)]
    assert {one["result"]["enforced"] for one in events(held, "default", "c")} == {False}
    file = tmp_path / "journal.jsonl"
    assert isinstance(lock.journal, MemoryJournal)
    lock.journal.save(guard.conversation.id, file)
    shown = CliRunner().invoke(cli, ["explain", "--journal", str(file)])
    assert "not enforced: shadow mode" in shown.output
    shown = CliRunner().invoke(cli, ["explain", "--journal", str(file), "--json"])
    assert json.loads(shown.output)["enforced"] is False
    config = configured(tmp_path, 'mode = "shadow"')
    checked = CliRunner().invoke(cli, ["check", str(config)])
    assert "shadow-mode" in checked.output
    assert CliRunner().invoke(cli, ["check", str(config), "--strict"]).exit_code == 1


def test_attack_a_wrapped_tool_runs_under_the_permit_of_its_digest_only() -> None:
    ran: list[str] = []

    @tool(returns=["untrusted:web"], egress="chosen", destinations={"url": "url"})
    def fetch(url: str) -> str:
        """Read a page."""
        ran.append(url)
        return "words"

    lock = Interlock(tools=[fetch], journal=MemoryJournal(), mode="shadow")
    guard = lock.guard(Conversation.new())
    with guard:
        assert fetch("http://a.example/") == "words"
    with pytest.raises(Exception, match="guard"):
        fetch("http://a.example/")
    assert ran == ["http://a.example/"]


def test_honest_without_a_word_decisions_are_enforced() -> None:
    guard = armed()
    outcome = did(guard, "send_email", EVIL)
    assert (outcome.executed, outcome.decision.enforced) == (False, True)


def test_honest_sync_and_async_do_the_same() -> None:
    lock = shadowing()
    guard = armed(lock)

    async def send(**_: Any) -> str:
        return "sent"

    outcome = asyncio.run(guard.acall("send_email", EVIL, run=send))
    assert (outcome.executed, outcome.verdict, outcome.decision.enforced) == (True, Verdict.DENY, False)
    assert isinstance(entries(guard, lock.journal)[-1], Observed)
