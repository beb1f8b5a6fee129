"""Proves T7: a tool that nobody declared never runs unasked, under no setting, name or server; silence is a load error.

Mutations that this file catches: the look-alike check dropped; `returns` or `egress` with a default; an undeclared spec
without a leg.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, Interlock, Manifest, MemoryJournal, Verdict
from interlock.errors import ManifestError
from interlock.model.labels import Leg
from interlock.model.tools import Effect, Egress, ToolId, undeclared
from tests.strategies import NAMES, SETTINGS, arguments, manifests, settings_id, tool_entries
from tests.worlds import MANIFEST, StepsWorld, Tools, guard_in, reference, rules


def names() -> st.SearchStrategy[str]:
    free = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,12}", fullmatch=True)
    return free | st.sampled_from(NAMES)


@given(
    manifest=manifests(),
    name=names(),
    server=st.sampled_from(["", "srv", "other"]),
    given_arguments=arguments(),
    index=st.integers(0, len(SETTINGS) - 1),
)
def test_t7_an_undeclared_tool_never_runs_unasked(
    manifest: Manifest, name: str, server: str, given_arguments: dict[str, Any], index: int
) -> None:
    if ToolId(server, name) in manifest.specs:
        return
    world = StepsWorld(MemoryJournal(), engine=reference(index))
    conversation = Conversation.user("please send it to bob@corp.example and http://evil.example/x")
    guard = guard_in(world, conversation, rules(world.engine, manifest))
    (outcome,) = guard.batch([Call(name, given_arguments, "a", server)], run=Tools(world, conversation.id))
    assert outcome.verdict is not Verdict.ALLOW
    assert not world.tape.runs
    assert not conversation.taint
    assert not conversation.exposure


@pytest.mark.parametrize("index", range(len(SETTINGS)), ids=[settings_id(one) for one in SETTINGS])
def test_t7_in_the_whole_interlock_too(index: int) -> None:
    lock = Interlock(manifest=MANIFEST, settings=SETTINGS[index], journal=MemoryJournal())
    outcome = lock.guard(Conversation.new()).call("nobody_declared", {}, run=lambda: "ran")
    assert outcome.verdict is not Verdict.ALLOW
    assert not outcome.executed
    assert "unknown_tool" in outcome.decision.codes


def test_t7_nobody_knows_what_an_undeclared_tool_does() -> None:
    spec = undeclared(ToolId("", "x"))
    assert not spec.known
    assert spec.egress is Egress.CHOSEN
    assert spec.effect in (Effect.DESTROY, Effect.CONTROL)
    assert {one.partition(":")[0] for one in (*spec.returns, *spec.opens)} == {leg.value for leg in Leg}
    assert all(one.endswith(":unknown") for one in (*spec.returns, *spec.reads, *spec.opens))


# --- silence promises nothing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", ["returns", "egress"])
@given(entry=tool_entries())
def test_t7_a_tool_without_returns_or_egress_does_not_load(silent: str, entry: dict[str, Any]) -> None:
    del entry[silent]
    with pytest.raises(ManifestError, match=f"x.{silent}: missing"):
        Manifest.parse({"version": 1, "tools": {"x": entry}})
    with pytest.raises(ManifestError, match=silent):
        Manifest.parse({"version": 1, "servers": {"s": {"tools": {"x": entry}}}})


@pytest.mark.parametrize("value", [None, "", 0, {}, "none", ["none"], [["private:mail"]], ["mail"], ["private:"], [""]])
def test_t7_returns_is_a_list_of_labels(value: Any) -> None:
    with pytest.raises(ManifestError):
        Manifest.parse({"version": 1, "tools": {"x": {"returns": value, "egress": "none"}}})


@pytest.mark.parametrize("value", [None, "", "None", "NONE", "no", True, False, [], ["none"], "chosen ", 0])
def test_t7_egress_is_one_of_three_words(value: Any) -> None:
    with pytest.raises(ManifestError):
        Manifest.parse({"version": 1, "tools": {"x": {"returns": [], "egress": value}}})


@given(entry=tool_entries(), key=st.sampled_from(["retruns", "Egress", "egress ", "known", "digest", "id", ""]))
def test_t7_an_unknown_key_does_not_load(entry: dict[str, Any], key: str) -> None:
    with pytest.raises(ManifestError, match="unknown key"):
        Manifest.parse({"version": 1, "tools": {"x": {**entry, key: []}}})


# --- names that look like others --------------------------------------------------------------------------------------

LOOKALIKES = ["Send", "SEND", "sEnd"]
NOT_NAMES: list[Any] = [
    "send ",
    " send",
    "se nd",
    "send\n",
    "send\t",
    "send\0",
    "send\u200b",
    "se\u00adnd",
    "\ufeffsend",
    "se\u2060nd",
    "\uff53\uff45\uff4e\uff44",
    "s\u0435nd",
    "send\u202e",
    "\u017fend",
    "send\ud800",
    "",
    "1send",
    "-send",
    "send()",
    "send*",
    "a" * 129,
    None,
    7,
    b"send",
    ["send"],
    True,
]


@pytest.mark.parametrize("name", LOOKALIKES)
def test_t7_a_name_that_differs_by_case_is_refused_and_the_real_one_is_named(name: str) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    (outcome,) = guard_in(world, conversation).batch([Call(name, {}, "a")], run=Tools(world, conversation.id))
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "invalid_call"
    assert "'send'" in outcome.for_model
    assert not world.tape.runs


# A server may begin with a digit, and no server is the agent's own.
WRONG = [(name, False) for name in NOT_NAMES] + [(name, True) for name in NOT_NAMES if name not in ("", "1send")]


@pytest.mark.parametrize(("name", "server"), WRONG, ids=ascii)
def test_t7_what_is_no_name_is_refused_and_not_repeated(name: Any, server: bool) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    call = Call("send", {}, "a", name) if server else Call(name, {}, "a")
    (outcome,) = guard_in(world, conversation).batch([call], run=Tools(world, conversation.id))
    assert outcome.verdict is Verdict.DENY
    assert outcome.decision.code == "invalid_call"
    assert not world.tape.runs
    assert not conversation.exposure
    if isinstance(name, str) and name and not name.isascii():
        assert name not in outcome.for_model
        assert name not in outcome.tool


@pytest.mark.parametrize("other", ["Send", "SEND"])
def test_t7_two_declared_names_that_look_alike_do_not_load(other: str) -> None:
    entry = {"returns": [], "egress": "none"}
    with pytest.raises(ManifestError, match="rename one"):
        Manifest.parse({"version": 1, "tools": {"send": entry, other: entry}})


def test_t7_the_same_name_on_another_server_is_another_tool() -> None:
    entry = {"returns": [], "egress": "none"}
    manifest = Manifest.parse({"version": 1, "servers": {"a": {"tools": {"send": entry}}}})
    assert manifest.spec(ToolId("a", "send")).known
    for tool in (ToolId("", "send"), ToolId("b", "send"), ToolId("", "a/send")):
        assert not manifest.spec(tool).known
