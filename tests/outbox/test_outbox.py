"""Proves that a call of a staged tool is drafted and not made, and that a person's release sends it once, as it was.

Mutations that this file catches: a denial that is drafted; a draft that brings labels; a release that asks no policy; a
release that outlives new labels, another policy, or another file; arguments that change between draft and delivery; a
rejection that is not the end; a failed staging that says nothing, or sends.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import ApprovalRules, Call, Conversation, Interlock, Manifest, MemoryJournal, Session, tool
from interlock.cli import cli
from interlock.errors import Misconfigured, OutboxUnavailable, Refused, Tampered
from interlock.gate.outbox import Delivered
from interlock.model.draft_view import lines
from interlock.model.drafts import MAX_OPEN, Status, read_draft
from interlock.model.entries import Decided, Drafted
from tests.approvals.desk import EVE, KIM, TOOLS, YES, Person, Sent, ToldClock, entries, kinds, locked, reader
from tests.outbox.box import Runs, drafting, only, staging


def test_an_asked_call_is_drafted_and_nobody_is_asked_now() -> None:
    person = Person(YES)
    lock = staging(approver=person, approvals=ApprovalRules())
    guard = reader(lock)
    before = guard.conversation.state
    outcome = guard.call("send", EVE, run=Sent())
    assert (outcome.executed, outcome.is_error, person.asked) == (False, False, [])
    assert outcome.for_model.startswith("Drafted, not sent")
    assert "Nothing was sent" in outcome.for_model
    assert EVE["to"] not in outcome.for_model
    assert outcome.decision.codes == ("staged", "leak_guard")
    after = guard.conversation.state
    assert (after.exposure.labels, dict(after.in_flight)) == (before.exposure.labels, {})
    assert kinds(lock, guard)[-2:] == ["drafted", "decided"]


def test_an_allowed_call_is_drafted_too_and_a_denied_one_is_denied() -> None:
    lock = staging(settings={"trifecta": "deny"})
    guard = lock.guard(Conversation.user("write to kim@corp.example"))
    assert guard.call("send", KIM, run=Sent()).decision.codes == ("staged",)
    guard.admit("from the web", labels=["untrusted:web"], source="web")
    guard.call("read_mail", {}, run=lambda: "mail")
    denied = guard.call("send", EVE, run=Sent())
    assert (denied.decision.code, denied.is_error) == ("trifecta", True)
    assert len(lock.outbox().drafts()) == 1


def test_release_and_delivery_run_the_exact_bytes_once() -> None:
    lock = staging()
    strange = {"to": "eve@evil.test", "body": "a\u202e\u200b\n1.0 \U0001f600"}
    guard = drafting(lock, strange)
    box, runs = lock.outbox(), Runs()
    assert box.deliver(runs) == []  # nobody has released it
    assert box.release(only(box), "kim").status is Status.RELEASED
    (came,) = box.deliver(runs)
    assert runs.calls == [("send", strange)]
    assert came.outcome.executed
    assert came.outcome.decision.who.value == "person"
    assert came.note == f"The draft {came.draft} (send) was released by a person and has been sent."
    assert (box.deliver(runs), box.drafts(), len(runs.calls)) == ([], [], 1)
    assert kinds(lock, guard)[-4:] == ["released", "taken", "decided", "observed"]
    assert guard.conversation.state.drafts[came.draft].status is Status.SENT


def test_the_arguments_without_their_defaults_are_what_runs() -> None:
    lock = staging()
    drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    shown = only(box)
    text = "\n".join(lines(shown.draft, shown.kept, shown.since))
    assert "archive@corp.example" in text  # what the tool fills in is shown
    box.release(shown, "kim")
    box.deliver(runs)
    assert runs.calls == [("send", EVE)]


def test_identical_calls_are_one_draft() -> None:
    lock = staging()
    guard = reader(lock)
    ticket = guard.propose(Call("send", EVE, "a"), Call("send", EVE, "b"), Call("send", KIM, "c"))
    again = guard.call("send", EVE, run=Sent())
    names = [one.decision.draft for one in (*ticket.outcomes.values(), again)]
    assert names[0] == names[1] == names[3] != names[2]
    assert len(lock.outbox().drafts()) == 2


def test_a_preview_drafts_nothing() -> None:
    lock = staging()
    guard = reader(lock)
    before = kinds(lock, guard)
    assert guard.preview(Call("send", EVE)).drafted
    assert (kinds(lock, guard), lock.outbox().drafts()) == (before, [])


def test_labels_between_showing_and_release_and_between_release_and_delivery() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    shown = only(box)
    guard.admit("x", labels=["private:files"], source="x")
    with pytest.raises(Refused, match="labels have entered since it was shown"):
        box.release(shown, "kim")
    assert only(box).since == ("private:files",)
    assert only(box).digest != shown.digest
    box.release(only(box), "kim")
    guard.admit("x", labels=["private:crm"], source="x")
    assert box.deliver(runs) == []
    lapsed = only(box)
    assert (lapsed.kept.status, lapsed.kept.why) == (Status.DRAFTED, "labels grew since the release")
    box.release(lapsed, "kim")  # a new look, a new release
    assert [one.outcome.executed for one in box.deliver(runs)] == [True]
    assert runs.calls == [("send", EVE)]


def test_what_the_policy_denies_by_now_is_not_released() -> None:
    lock = staging(settings={"leak_guard": "ask"})
    guard = drafting(lock, EVE)
    guard.admit("from the web", labels=["untrusted:web"], source="web")
    box, runs = lock.outbox(), Runs()
    with pytest.raises(Refused, match=r"the policy denies it now \(trifecta"):
        box.release(only(box), "kim")
    assert box.deliver(runs) == []
    assert only(box).kept.status is Status.DRAFTED


def test_a_control_of_the_control_plane_is_never_drafted(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("x")
    lock = staging(protected=[rules])
    guard = reader(lock)
    denied = guard.call("write", {"path": str(rules), "text": "x"}, run=Sent())
    assert (denied.decision.code, denied.verdict.value) == ("control_plane", "deny")
    assert lock.outbox().drafts() == []


def test_another_policy_between_release_and_delivery(tmp_path: Path) -> None:
    file = tmp_path / "interlock.toml"

    def says(**settings: str) -> None:
        said = "\n".join(f'{name} = "{value}"' for name, value in settings.items())
        file.write_text(
            f'version = 1\n[outbox]\ntools = ["send"]\n[settings]\n{said}\n[tools.send]\nreturns = []\n'
            'egress = "chosen"\ndestinations = { to = "email" }\ncontent = ["body"]\nreads = ["private:crm"]\n'
        )

    says(leak_guard="ask")
    lock = Interlock.load(file, journal=MemoryJournal())
    guard = lock.guard(Conversation())
    box, runs = lock.outbox(), Runs()
    assert guard.call("send", EVE, run=Sent()).decision.drafted
    box.release(only(box), "kim")
    says(leak_guard="ask", trifecta="ask")
    lock.reload()
    (came,) = box.deliver(runs)  # the outbox follows the reload
    assert (came.outcome.executed, came.outcome.decision.code) == (False, "not_released")
    assert came.note.endswith("was not sent: not_released.")
    box.release(only(box), "kim")
    says(leak_guard="deny")
    lock.reload()
    (came,) = box.deliver(runs)
    assert (came.outcome.executed, came.outcome.decision.code) == (False, "leak_guard")
    with pytest.raises(Refused, match=r"the policy denies it now \(leak_guard\)"):
        box.release(only(box), "kim")
    says(leak_guard="ask")
    file.write_text(file.read_text() + 'description = "another one"\n')
    lock.reload()
    with pytest.raises(Refused, match="declared anew"):
        box.release(only(box), "kim")
    assert runs.calls == []


def test_a_file_that_changes_between_release_and_delivery(tmp_path: Path) -> None:
    report = tmp_path / "deploy.sh"
    report.write_text("harmless")
    lock = staging()
    drafting(lock, {"command": f"sh {report}"}, tool="shell")
    box, runs = lock.outbox(), Runs()
    box.release(only(box), "kim")
    report.write_text("rm -rf /")
    (came,) = box.deliver(runs)
    assert (came.outcome.executed, came.outcome.decision.code) == (False, "not_released")
    assert "a file that it names changed" in only(box).kept.why
    box.release(only(box), "kim")
    (came,) = box.deliver(runs)
    assert came.outcome.executed


def test_a_rejection_is_final_and_counts() -> None:
    lock = staging()
    guard = reader(lock)
    box, runs = lock.outbox(), Runs()
    for number in range(3):
        assert guard.call("send", {**EVE, "body": str(number)}, run=Sent()).decision.drafted
        name = only(box).draft.id
        assert box.reject(name[:9], "kim").status is Status.REJECTED
        with pytest.raises(Refused):
            box.reject(name, "kim")
        with pytest.raises(Refused):
            box.find(name)
    assert box.deliver(runs) == []
    last = guard.call("send", {**EVE, "body": "4"}, run=Sent())
    assert (last.decision.code, last.decision.terminal) == ("asked_enough", True)
    assert lock._drafts.stored("default") == ()  # what it would have sent is not kept


def test_a_released_draft_can_still_be_rejected() -> None:
    lock = staging()
    drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    box.release(only(box), "kim")
    box.reject(only(box).draft.id, "kim")
    assert (box.deliver(runs), runs.calls) == ([], [])


def test_drafts_and_releases_expire_whatever_the_clock_says_later() -> None:
    clock = ToldClock()
    lock = staging(clock=clock)
    guard = drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    shown = only(box)
    box.release(shown, "kim")
    clock.jump(seconds=601)
    assert box.deliver(runs) == []
    guard.call("calc", {}, run=Sent())  # an entry of this time
    clock.jump(seconds=-400)
    assert box.deliver(runs) == []
    with pytest.raises(Refused, match=r"is expired"):
        box.release(shown, "kim")
    assert (runs.calls, box.drafts()) == ([], [])


def test_messages_that_are_taken_back_take_the_release_back() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    box.release(only(box), "kim")
    guard.conversation.rewrite([])
    assert (box.deliver(runs), only(box).kept.status) == ([], Status.DRAFTED)


def test_a_fork_has_no_draft() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    fork = lock.guard(guard.conversation.fork())
    assert dict(fork.conversation.state.drafts) == {}
    assert len(lock.outbox().drafts()) == 1


def test_a_delivery_that_fails_is_over() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    box, runs = lock.outbox(), Runs(OSError("the server is gone"))
    box.release(only(box), "kim")
    (came,) = box.deliver(runs)
    assert came.note.endswith("and sending it failed.")
    assert (box.deliver(runs), len(runs.calls)) == ([], 1)
    assert guard.conversation.state.drafts[came.draft].status is Status.FAILED


def test_a_delivery_that_is_cut_off_is_in_doubt_and_not_repeated() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    box = lock.outbox()
    box.release(only(box), "kim")

    def cut(name: str, arguments: dict[str, Any]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        box.deliver(cut)
    runs = Runs()
    assert (box.deliver(runs), runs.calls) == ([], [])
    assert only(box).kept.status is Status.DOUBT
    assert "nobody knows whether it was sent" in "\n".join(lines(only(box).draft, only(box).kept, ()))
    with pytest.raises(Refused, match="is in doubt"):
        box.release(only(box), "kim")
    again = guard.call("send", EVE, run=Sent())  # a new draft, which says so
    assert (again.decision.drafted, "in_doubt" in again.decision.codes) == (True, True)


def test_asynchronous_delivery() -> None:
    lock = staging()
    drafting(lock, EVE)
    box = lock.outbox()
    box.release(only(box), "kim")
    ran: list[Any] = []

    async def run(name: str, arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        ran.append(arguments)
        return "sent"

    found: list[Delivered] = asyncio.run(box.adeliver(run))
    assert ([one.outcome.executed for one in found], ran) == ([True], [EVE])


def test_a_wrapped_tool_opens_for_the_delivery_only() -> None:
    ran: list[str] = []

    @tool(returns=[], egress="chosen", destinations={"to": "email"}, content=["body"], reads=["private:crm"])
    def post(to: str, body: str) -> str:
        ran.append(to)
        return "posted"

    lock = Interlock(tools=[post], settings={"leak_guard": "ask"}, journal=MemoryJournal(), outbox=["post"])
    guard = lock.guard(Conversation())
    assert guard.call("post", EVE, run=post).decision.drafted
    box = lock.outbox()
    box.release(only(box), "kim")
    (came,) = box.deliver(lambda _, given: post(**given))
    assert (came.outcome.executed, came.outcome.error, ran) == (True, None, ["eve@evil.test"])


def test_a_conversation_in_a_session_has_its_drafts_at_its_guard(tmp_path: Path) -> None:
    lock = staging()
    with Session.create(tmp_path / "s", Conversation()) as session:
        guard = lock.guard(session.conversation)
        guard.call("read_mail", {}, run=lambda: "mail")
        assert guard.call("send", EVE, run=Sent()).decision.drafted
        other = drafting(lock, KIM)
        assert [one.draft.question.conversation for one in lock.outbox().drafts()] == [other.conversation.id]
        box, runs = guard.outbox(), Runs()
        box.release(only(box), "kim")
        assert [one.outcome.executed for one in box.deliver(runs)] == [True]
        assert runs.calls == [("send", EVE)]
        (kept,) = guard.conversation.state.drafts.values()
        assert kept.status is Status.SENT


def test_shadow_mode_drafts_nothing_and_sends_a_release_at_most_once() -> None:
    journal = MemoryJournal()
    lock = staging(journal)
    drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    box.release(only(box), "kim")
    shadow = staging(journal, lock._world[1], mode="shadow")
    shadow._drafts = lock._drafts
    shadow.reload()
    for _ in range(2):
        shadow.outbox().deliver(runs)
    assert len(runs.calls) == 1
    sent = Sent()
    watched = shadow.guard(Conversation(clock=lock._world[1]))
    watched.call("read_mail", {}, run=lambda: "mail")
    assert watched.call("send", EVE, run=sent).executed
    assert sent.calls == [EVE]


def test_a_rival_that_was_first_leaves_nothing_to_deliver() -> None:
    """The second one delivers between the first one's decision and its append."""
    lock = staging()
    guard = drafting(lock, EVE)
    box, runs, rivals = lock.outbox(), Runs(), Runs()
    box.release(only(box), "kim")
    journal: Any = lock.journal
    append, met = journal.append, []

    def between(conversation: str, written: Any, *, expected: int | None = None) -> Any:
        if not met and any(isinstance(one, Decided) for one in written):
            met.append(True)
            box.deliver(rivals)
        return append(conversation, written, expected=expected)

    journal.append = between
    assert box.deliver(runs) == []
    assert (runs.calls, rivals.calls) == ([], [("send", EVE)])
    assert kinds(lock, guard)[-4:] == ["released", "taken", "decided", "observed"]  # the loser wrote nothing


# --- staging that fails -------------------------------------------------------------------------------------------


class Full:
    """A store of drafts on a disk that is full."""

    blocks = False

    def __init__(self, error: Exception) -> None:
        self._error = error

    def keep(self, draft: Any) -> None:
        raise self._error

    def draft(self, namespace: str, conversation: str, id: str) -> bytes | None:
        raise self._error

    def stored(self, namespace: str, *, after: str = "", limit: int = 100) -> tuple[Any, ...]:
        return ()

    def drop(self, namespace: str, conversation: str, id: str) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [OutboxUnavailable("the disk is full"), OSError(28, "No space left on device"), MemoryError()],
    ids=lambda one: type(one).__name__,
)
def test_nothing_is_sent_when_it_can_not_be_drafted(error: Exception) -> None:
    lock = staging()
    lock._drafts = Full(error)
    lock.reload()
    guard = reader(lock)
    ticket = guard.propose(Call("send", EVE, "a"), Call("calc", {}, "b"))
    refused = ticket.outcomes["a"]
    assert (refused.decision.code, refused.is_error, refused.executed) == ("staging_failed", True, False)
    assert "could not be drafted. Nothing was sent." in refused.for_model
    assert list(ticket.allowed) == ["b"]  # the other calls of the turn are none of its business
    assert "drafted" not in kinds(lock, guard)


def test_nothing_is_sent_when_the_journal_is_down() -> None:
    class Down(MemoryJournal):
        down = False

        def append(self, conversation: str, entries: Any, *, expected: int | None = None) -> Any:
            if self.down:
                raise OSError(28, "No space left on device")
            return super().append(conversation, entries, expected=expected)

    journal = Down()
    lock = staging(journal)
    guard = reader(lock)
    journal.down = True
    refused = guard.call("send", EVE, run=Sent())
    assert (refused.decision.code, refused.executed) == ("staging_failed", False)
    assert "Nothing was sent." in refused.for_model
    journal.down = False
    assert lock.outbox().drafts() == []  # what was stored before is no draft


def test_a_full_outbox_drafts_no_more() -> None:
    lock = staging()
    guard = reader(lock)
    calls = [Call("send", {**EVE, "body": str(number)}, f"c{number}") for number in range(MAX_OPEN)]
    assert all(one.decision.drafted for one in guard.propose(*calls).outcomes.values())
    refused = guard.call("send", {**EVE, "body": "one more"}, run=Sent())
    assert (refused.decision.code, "Nothing was sent" in refused.for_model) == ("staging_failed", True)
    box = lock.outbox()
    box.reject(box.drafts()[0].draft.id, "kim")
    assert guard.call("send", {**EVE, "body": "one more"}, run=Sent()).decision.drafted


def test_a_batch_can_not_overfill_it() -> None:
    lock = staging()
    guard = reader(lock)
    calls = [Call("send", {**EVE, "body": str(number)}, f"c{number}") for number in range(MAX_OPEN + 9)]
    outcomes = guard.propose(*calls).outcomes.values()
    assert sum(one.decision.drafted for one in outcomes) == MAX_OPEN


def test_what_is_stored_is_what_was_drafted() -> None:
    lock = staging()
    guard = drafting(lock, EVE)
    box, runs = lock.outbox(), Runs()
    shown = only(box)
    box.release(shown, "kim")
    (entry,) = [one for one in entries(lock, guard) if isinstance(one, Drafted)]
    body = shown.draft.encode()
    assert read_draft(body, entry.body) == shown.draft
    store: Any = lock._drafts
    key = ("default", guard.conversation.id, shown.draft.id)
    store._kept[key] = (entry.at, body.replace(b"eve@evil.test", b"bob@evil.test"))
    for look in (box.drafts, lambda: box.deliver(runs), lambda: box.find(shown.draft.id)):
        with pytest.raises(Tampered, match="not the one that was made"):
            look()
    assert runs.calls == []
    assert box.reject(shown.draft.id, "kim").status is Status.REJECTED  # that can always be done


# --- who is routed ------------------------------------------------------------------------------------------------


def test_a_tool_that_nobody_declared_can_not_be_routed(tmp_path: Path) -> None:
    manifest = Manifest.parse({"version": 1, "tools": TOOLS})
    with pytest.raises(Misconfigured, match="no tool is called 'sned'"):
        Interlock(manifest=manifest, journal=MemoryJournal(), outbox=["sned"])
    misspelt = tmp_path / "interlock.toml"
    misspelt.write_text('version = 1\n[outbox]\ntools = ["sned"]\n[tools.send]\nreturns = []\negress = "chosen"\n')
    checked = CliRunner().invoke(cli, ["check", str(misspelt)])
    assert (checked.exit_code, "no tool is called 'sned'" in checked.output) == (2, True)
    with pytest.raises(Misconfigured, match="takes a list"):
        Interlock(manifest=manifest, journal=MemoryJournal(), outbox="send")
    with pytest.raises(Misconfigured, match="at most 30 days"):
        Interlock(manifest=manifest, journal=MemoryJournal(), outbox=["send"], outbox_seconds=1e9)


def test_a_model_can_not_deliver() -> None:
    """What a delivery is, only the outbox says: no argument, id or name of a call can."""
    lock = staging()
    guard = drafting(lock, EVE)
    box = lock.outbox()
    name = only(box).draft.id
    sent = Sent()
    box.release(only(box), "kim")
    outcome = guard.batch([Call("send", EVE, name)], run=lambda *_: sent())[0]
    assert (outcome.decision.drafted, sent.calls) == (True, [])
    assert "staged" not in locked().engine.controls  # a code of the gate, which no control can take
