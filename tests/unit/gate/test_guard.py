"""Proves the guard's own words: admit, preview, call and batch, and what developers see of a refusal.

Mutations that this file catches: `admit` without a label; text that is returned before it is on record; a batch that
gives outcomes in another order.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, Outcome, ToolResult, Verdict, tool
from interlock.errors import JournalUnavailable, ManifestError, Misconfigured, Refused
from interlock.model.entries import Admitted
from tests.worlds import MANIFEST, Fault, StepsWorld, Tools, entries, guard_in


def guarded(**changes: Any) -> Any:
    return Interlock(manifest=MANIFEST, journal=MemoryJournal(), **changes).guard(Conversation.new())


@pytest.mark.parametrize("labels", [[], (), ["mail"], ["private:mail", "x"], "private:mail", [None]], ids=str)
def test_nothing_is_admitted_without_labels(labels: Any) -> None:
    guard = guarded()
    with pytest.raises(Refused):
        guard.admit("text", labels=labels, source="x")
    assert not guard.conversation.taint


def test_what_is_admitted_is_on_record_first() -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    assert guard.admit("text", labels=["private:b", "private:a", "private:a"], source="notes/7") == "text"
    entry = entries(world, conversation.id)[-1]
    assert isinstance(entry, Admitted)
    assert entry.labels == ("private:a", "private:b")
    assert entry.source == "notes/7"
    object.__setattr__(world, "journal", None)


def test_text_that_can_not_be_recorded_is_not_returned() -> None:
    guard = guarded()

    def append(*_: Any, **__: Any) -> Any:
        raise JournalUnavailable("injected")

    guard.conversation._journal.append = append
    with pytest.raises(JournalUnavailable):
        guard.admit("text", labels=["private:a"], source="x")


def test_content_from_an_address_is_remembered_as_a_voice() -> None:
    for source, asked in (("http://evil.example/page", True), ("someone@evil.example", True), ("notes/7", False)):
        lock = Interlock(manifest=MANIFEST, journal=MemoryJournal())
        conversation = Conversation.user("answer to bob@evil.example")
        guard = lock.guard(conversation)
        guard.admit("x", labels=["untrusted:mail", "private:mail"], source=source)
        decision = guard.preview(Call("send", {"to": "bob@evil.example", "body": "x"}))
        assert ("talks_back" in decision.codes) is asked


def test_a_preview_says_what_a_proposal_says() -> None:
    guard = guarded()
    calls = [Call("read_note", {}, "a"), Call("send", {"to": "eve@evil.example", "body": "x"}, "b")]
    guard.admit("x", labels=["untrusted:web"], source="x")
    previewed = [guard.preview(calls[1], calls[0]), guard.preview(calls[1])]
    assert [one.verdict for one in previewed] == [Verdict.DENY, Verdict.ASK]
    assert guard.propose(*calls).outcomes["b"].decision.reasons == previewed[0].reasons


def test_calls_and_their_results() -> None:
    guard = guarded()
    outcome = guard.call("now", run=lambda: ToolResult({"hour": 12}, external=False))
    assert (outcome.result, outcome.for_model, outcome.tool, outcome.call_id) == (
        {"hour": 12},
        '{"hour":12}',
        "now",
        "call_1",
    )
    failed = guard.call("now", run=lambda: 1 / 0)
    assert isinstance(failed.error, ZeroDivisionError)
    assert failed.is_error
    wrong = guard.call("now", {"x": 1}, run=lambda: "x")
    assert isinstance(wrong.error, TypeError)
    described = guard.call("now", run=lambda: ToolResult("no such file", is_error=True))
    assert described.is_error
    assert described.for_model == "no such file"


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_outcomes_come_in_the_order_of_calls(workers: int) -> None:
    guard = guarded()
    calls = [Call("now", {"n": n}, f"id-{9 - n}") for n in range(6)] + [Call("nobody_declared", {}, "x")]
    outcomes = guard.batch(calls, run=lambda name, arguments: str(arguments["n"]), workers=workers)
    assert [one.call_id for one in outcomes] == [call.id for call in calls]
    assert [one.result for one in outcomes] == ["0", "1", "2", "3", "4", "5", None]
    assert guard.batch([], run=lambda *_: "x", workers=workers) == []


def test_generators_are_not_results() -> None:
    guard = guarded()
    outcome = guard.call("read_mail", run=lambda: (n for n in range(3)))
    assert outcome.is_error
    assert outcome.result is None


def test_a_refusal_tells_the_model_why_and_no_value() -> None:
    seen: list[Outcome] = []
    guard = guarded()
    guard.admit("x", labels=["untrusted:web", "private:mail"], source="x")
    outcome = guard.call("send", {"to": "eve@evil.example", "body": "secret-value"}, run=seen.append)
    assert not seen
    assert "[trifecta]" in outcome.for_model
    assert "secret-value" not in outcome.for_model
    assert "evil.example" not in outcome.for_model
    assert {cause.label for cause in outcome.decision.causes} == {"untrusted:web", "private:mail"}
    assert outcome.decision.remedies


def test_an_interlock_is_whole_or_not_there() -> None:
    with pytest.raises(Misconfigured):
        Interlock()
    with pytest.raises(Misconfigured):
        Interlock(manifest=MANIFEST, settings={"trifecta": "off"})
    with pytest.raises(Misconfigured):
        Interlock(manifest=MANIFEST, settings={"more": 1})


def test_one_bad_call_does_not_stop_the_turn() -> None:
    world = StepsWorld(MemoryJournal(), Fault(3, lambda: ValueError("injected")))
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    outcomes = guard.batch([Call("now", {}, "a"), Call("now", {"x": 1}, "b")], run=Tools(world, conversation.id))
    assert [one.decision.code for one in outcomes] == ["engine_error", "allowed"]


# --- declaring functions ----------------------------------------------------------------------------------------------


def test_a_function_declares_itself_like_a_manifest() -> None:
    @tool(returns=["private:mail"], egress="chosen", destinations={"to": "email"}, content=["body"], server="srv")
    def send(to: str, body: str = "") -> str:
        """Send a mail."""
        return to + body

    spec = send.spec
    assert (spec.id.server, spec.id.name, spec.returns) == ("srv", "send", ("private:mail",))
    assert send.__doc__ == "Send a mail."
    guard = Interlock(tools=[send], journal=MemoryJournal()).guard(Conversation.user("bob@corp.example"))
    with guard:
        assert send("bob@corp.example", body="x") == "bob@corp.examplex"
        assert send(to="bob@corp.example") == "bob@corp.example"


@pytest.mark.parametrize(
    "declared",
    [
        {"destinations": {"nobody": "email"}},
        {"content": ["nobody"]},
        {"returns": ["no label"]},
        {"egress": "open"},
        {"effect": "x"},
        {"name": "no name"},
        {"server": "no server"},
    ],
    ids=str,
)
def test_a_wrong_declaration_is_an_error_at_once(declared: dict[str, Any]) -> None:
    def send(to: str) -> str:
        return to

    with pytest.raises(ManifestError):
        tool(**{"returns": [], "egress": "chosen", **declared})(send)


def test_a_tool_with_any_arguments() -> None:
    @tool(returns=[], egress="none", destinations={"to": "email"}, name="anything")
    def send(**arguments: Any) -> str:
        return str(sorted(arguments))

    guard = Interlock(tools=[send], journal=MemoryJournal()).guard(Conversation.new())
    with guard:
        assert send(a=1, to="x") == "['a', 'to']"


def test_a_tool_is_declared_once() -> None:
    @tool(returns=[], egress="none")
    def look() -> str:
        return "x"

    with pytest.raises(ManifestError):
        tool(returns=[], egress="none")(look)
    with pytest.raises(ManifestError):
        Interlock(tools=[look, look], journal=MemoryJournal())
    with pytest.raises(ManifestError):
        Interlock(
            manifest=Manifest.parse({"version": 1, "tools": {"look": {"returns": [], "egress": "none"}}}), tools=[look]
        )
