"""Proves for all three codecs: whatever a provider sends, every call is decided once and answered once, in its shape.

Nothing raises, nothing is repaired, no id stands twice (T17), a stream decides like the whole response and half a
stream decides nothing, and what the provider brought along is on record before anything of the turn is decided.

Mutations that it is shown to catch: ids kept as they came; a `results` that leaves out denied calls; `parse` exchanged
for `json.loads`; a stream that is complete without its last event; hosted content that is admitted after deciding.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock import Call, Outcome, ToolResult, Verdict
from interlock.errors import Refused
from interlock.integrations import openai_responses
from interlock.loops import admit_hosted
from interlock.model.calls import is_call_id
from interlock.model.decisions import Decision
from interlock.model.entries import Admitted, Decided
from interlock.model.turns import NO_OUTCOME, Answered, UnparsedText, unique_ids
from tests.ids import stable
from tests.integrations.shapes import (
    ANTHROPIC,
    CHAT,
    RESPONSES,
    SHAPES,
    Shape,
    as_models,
    as_namespaces,
    broken,
    entries,
    fresh,
    ids,
    mangled,
    objects,
    values,
)

shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
names = st.sampled_from(["read_mail", "fetch", "send", "now", "nobody"])
calls = st.lists(st.tuples(names, objects), max_size=4).map(
    lambda found: [(f"id_{n}", name, json.dumps(given)) for n, (name, given) in enumerate(found)]
)


def each(**strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``@given`` for every shape; a strategy may depend on the shape."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(shape: Shape) -> None:
            drawn = {
                name: one if isinstance(one, st.SearchStrategy) else one(shape) for name, one in strategies.items()
            }

            @given(**drawn)
            def check(**found: Any) -> None:
                test(shape, **found)

            check()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        marked: Callable[..., None] = shapes(run)
        return marked

    return decorate


def hostile(shape: Shape) -> st.SearchStrategy[dict[str, Any]]:
    return shape.hostile


def ran(_name: str, _arguments: dict[str, Any]) -> str:
    return "done"


# --- round trips ------------------------------------------------------------------------------------------------------


@each(wrote=calls, text=st.text("abc é", min_size=1, max_size=9))
def test_what_was_written_is_what_is_read(shape: Shape, wrote: Any, text: str) -> None:
    turn = shape.codec.read(shape.write(wrote, text))
    assert turn.complete
    assert turn.text == text
    assert [(one.id, one.name, one.arguments) for one in turn.calls] == [(i, n, json.loads(a)) for i, n, a in wrote]
    assert turn.hosted == ()


@each(response=hostile, taken=st.sets(st.sampled_from(["a", "b", "call_1", "call_2", "call_3"])))
def test_hostile_turns_are_decided_once_and_answered_once(shape: Shape, response: Any, taken: set[str]) -> None:
    """T17 for one turn, and the API's own rules for the history that goes back."""
    turn = shape.codec.read(response, taken=taken)
    found = [one.id for one in turn.calls]
    assert len(set(found)) == len(found)
    assert all(one and is_call_id(one) for one in found)
    assert not taken & set(found)
    guard = fresh()
    admit_hosted(guard, turn.hosted)
    outcomes = guard.batch(turn.calls, run=ran)
    assert [one.call_id for one in outcomes] == found
    history = [shape.codec.user("go on"), *turn.history, *shape.codec.results(turn, outcomes)]
    if turn.complete:
        assert shape.problem(history) == ""
        assert shape.problem([*history, shape.codec.user("and then")]) == ""
    else:
        assert not turn.calls
        assert not turn.history


@each(response=hostile)
def test_a_history_reads_back_as_it_was(shape: Shape, response: Any) -> None:
    """What a loop wrote is what a replay finds: the same calls under the same ids, each with its result."""
    turn = shape.codec.read(response)
    assume(turn.complete)
    outcomes = fresh().batch(turn.calls, run=ran)
    events = list(shape.codec.recorded([*turn.history, *shape.codec.results(turn, outcomes)]))
    wanted = [one.id for one in turn.calls]
    again = [call.id for event in events for call in getattr(event, "calls", ())]
    # Of items that lie flat nobody can tell which results were the provider's own: those are calls, too, in a replay.
    assert [one for one in again if one in wanted] == wanted
    if any(one.shape == "function" for one in turn.proposals):
        return  # the first API: results without an id
    answered = [event.id for event in events if isinstance(event, Answered)]
    assert sorted(one for one in answered if one in wanted) == sorted(wanted)


@each(wrote=calls, text=st.text("abc", max_size=5))
def test_objects_read_like_dicts(shape: Shape, wrote: Any, text: str) -> None:
    response = shape.write(wrote, text)
    plain = shape.codec.read(response)
    for other in (as_models(response), as_namespaces(response)):
        turn = shape.codec.read(other)
        assert (turn.text, turn.complete, turn.stop) == (plain.text, plain.complete, plain.stop)
        assert [(one.id, one.name) for one in turn.calls] == [(one.id, one.name) for one in plain.calls]
        if shape is not ANTHROPIC:  # whose arguments are an object: the SDK keeps it a dict, these stand-ins do not
            assert turn.calls == plain.calls
            assert turn.history == plain.history


@each(value=values)
def test_any_json_in_the_place_of_a_response(shape: Shape, value: Any) -> None:
    turn = shape.codec.read(value)
    assert not turn.calls
    assert not turn.complete
    list(shape.codec.recorded([value]))
    shape.codec.resembles(value)
    shape.codec.offered({"tools": value, "mcp_servers": [value], "conversation": value, "web_search_options": value})


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [CHAT, RESPONSES], ids=str)
@given(text=broken | st.text(max_size=12) | values.map(json.dumps))
def test_text_is_parsed_strictly_or_the_call_is_malformed(shape: Shape, text: str) -> None:
    """Case 143: what a model wrote is decided as it stands, or refused; nothing makes it whole."""
    turn = shape.codec.read(shape.write([("a", "now", text)], ""))
    (call,) = turn.calls
    executed: list[dict[str, Any]] = []
    guard = fresh()
    (outcome,) = guard.batch(turn.calls, run=lambda _name, given: executed.append(given))
    try:
        meant = json.loads(text)
    except (ValueError, RecursionError):
        meant = None
    if isinstance(call.arguments, dict):
        assert call.arguments == meant
        assert executed == [meant]
    else:
        assert outcome.decision.code == "invalid_call"
        assert executed == []
        (result,) = shape.codec.results(turn, [outcome])
        assert shape.problem([*turn.history, result]) == ""


@pytest.mark.parametrize("shape", [CHAT, RESPONSES], ids=str)
@pytest.mark.parametrize(
    "text",
    ['{"url":"https://a.example"', '{"url":"a","url":"b"}', '{"x":NaN}', "[]", "null", '"x"', "", '{"a":1}{"b":2}'],
)
def test_each_way_to_be_no_object(shape: Shape, text: str) -> None:
    turn = shape.codec.read(shape.write([("a", "fetch", text)], ""))
    (outcome,) = fresh().batch(turn.calls, run=ran)
    assert (outcome.verdict, outcome.decision.code) == (Verdict.DENY, "invalid_call")
    assert "a.example" not in outcome.for_model  # what was written is not repeated


def test_what_is_wrong_with_a_text_is_kept_for_people() -> None:
    turn = CHAT.codec.read(CHAT.write([("a", "now", '{"to":"a","to":"secret"}')], ""))
    arguments = turn.calls[0].arguments
    assert isinstance(arguments, UnparsedText)
    assert "twice" in arguments.problem
    assert "secret" not in repr(arguments)


@given(st.lists(ids, max_size=6), st.sets(st.sampled_from(["a", "b", "call_1", "call_2"])))
def test_ids_are_unique_and_always_the_same(wanted: list[Any], taken: set[str]) -> None:
    found = unique_ids(wanted, taken)
    assert found == unique_ids(wanted, taken)
    assert len({*found}) == len(wanted)
    assert not taken & {*found}
    for place, (one, got) in enumerate(zip(wanted, found, strict=True)):
        first = isinstance(one, str) and one not in wanted[:place] and one not in taken
        if first and one and is_call_id(one):
            assert got == one  # whoever can keep an id keeps it


def test_an_id_that_comes_again_in_a_later_turn_is_replaced_in_the_history_too() -> None:
    for shape in SHAPES:
        response = shape.write([("call_0", "now", "{}"), ("call_0", "now", "{}")], "")
        turn = shape.codec.read(response, taken={"call_0"})
        history = [*turn.history, *shape.codec.results(turn, [])]
        assert "call_0" not in [one.id for one in turn.calls]
        assert shape.problem(history) == ""


# --- results ----------------------------------------------------------------------------------------------------------


def outcome(call_id: str, text: str, *, is_error: bool, pending: bool = False) -> Outcome:
    decision = Decision(Verdict.DENY if is_error else Verdict.ALLOW)
    return Outcome("now", call_id, decision, 1, for_model=text, is_error=is_error, pending=pending)


@shapes
def test_every_kind_of_outcome_goes_back(shape: Shape) -> None:
    """Allowed, denied, asked, failed and withheld, in one turn."""
    wrote = [
        ("ok", "now", "{}"),
        ("denied", "send", '{"to":"eve@stranger.example","body":""}'),
        ("asked", "write", '{"path":"notes.txt","text":"x"}'),
        ("failed", "read_mail", "{}"),
        ("withheld", "now", '{"n":1}'),
    ]
    guard = fresh("hello")
    guard.admit("x", labels=["untrusted:web", "private:mail"], source="test")
    turn = shape.codec.read(shape.write(wrote, "working"))
    ticket = guard.propose(*turn.calls)
    outcomes = [one for one in ticket.outcomes.values() if not one.pending]
    outcomes.append(guard.observe(ticket, "ok", "12:00"))
    outcomes.append(guard.observe(ticket, "failed", RuntimeError("the secret of a stranger")))
    guard.observe(ticket, "withheld", "first")
    outcomes.append(guard.observe(ticket, "withheld", "second"))
    results = shape.codec.results(turn, reversed(outcomes))
    said = json.dumps(results)
    assert shape.problem([*turn.history, *results]) == ""
    assert "12:00" in said
    assert "[trifecta]" in said
    assert "needs a person's approval" in said
    assert "The tool failed with RuntimeError" in said
    assert "secret" not in said
    assert "has its result already" in said
    assert "second" not in said


@shapes
def test_a_call_without_an_outcome_is_answered_all_the_same(shape: Shape) -> None:
    turn = shape.codec.read(shape.write([("a", "now", "{}"), ("b", "now", "{}")], ""))
    results = shape.codec.results(turn, [outcome("b", "", is_error=False, pending=True)])
    assert shape.problem([*turn.history, *results]) == ""
    assert json.dumps(results).count(NO_OUTCOME) == 2


@shapes
def test_strange_and_repeated_outcomes_are_refused(shape: Shape) -> None:
    turn = shape.codec.read(shape.write([("a", "now", "{}")], ""))
    with pytest.raises(Refused, match="no call of this turn"):
        shape.codec.results(turn, [outcome("z", "x", is_error=False)])
    with pytest.raises(Refused, match="two outcomes"):
        shape.codec.results(turn, [outcome("a", "x", is_error=False)] * 2)


@shapes
def test_an_error_always_has_a_text(shape: Shape) -> None:
    turn = shape.codec.read(shape.write([("a", "now", "{}")], ""))
    (done,) = fresh().batch(turn.calls, run=lambda _name, _given: ToolResult("", is_error=True))
    assert "(no text)" in json.dumps(shape.codec.results(turn, [done]))


@shapes
def test_text_beside_the_results_comes_after_them(shape: Shape) -> None:
    turn = shape.codec.read(shape.write([("a", "now", "{}")], ""))
    results = shape.codec.results(turn, [], also="hurry up")
    assert shape.problem([*turn.history, *results]) == ""
    assert json.dumps(results).index(NO_OUTCOME) < json.dumps(results).index("hurry up")
    nothing = shape.codec.read(shape.write([], "hello"))
    assert shape.codec.results(nothing, []) == []


# --- streams ----------------------------------------------------------------------------------------------------------


@each(wrote=calls, text=st.text("abc é", min_size=1, max_size=20))
def test_a_stream_decides_like_the_whole(shape: Shape, wrote: Any, text: str) -> None:
    response = shape.write(wrote, text)
    streamed = shape.codec.read(shape.assembled(shape.events(response)))
    assert streamed == shape.codec.read(response)


@each(wrote=calls)
def test_half_a_stream_decides_nothing(shape: Shape, wrote: Any) -> None:
    """Case 142. Wherever it is cut: no call of it can be run, and nothing of it goes back."""
    events = shape.events(shape.write([("a", "now", "{}"), *wrote], ""))
    for cut in range(len(events)):
        turn = shape.codec.read(shape.assembled(events[:cut]))
        assert (turn.complete, turn.calls, turn.history) == (False, [], ())


@each(order=st.lists(st.integers(0, 40), max_size=25))
def test_a_stream_out_of_order_never_invents_a_call(shape: Shape, order: list[int]) -> None:
    """Events lost, repeated or exchanged: what is decided is what somebody wrote, or malformed."""
    wrote = [("a", "fetch", '{"url": "https://a.example/aaaaaaaaaa"}'), ("b", "now", "{}")]
    events = shape.events(shape.write(wrote, "text"))
    turn = shape.codec.read(shape.assembled([events[place % len(events)] for place in order]))
    for call in turn.calls:
        if isinstance(call.arguments, dict) and call.arguments:
            # A lost piece in the middle can leave valid JSON, but never more than was sent.
            sent = "https://a.example/aaaaaaaaaa"
            assert set(call.arguments) <= {"url"} or shape is not ANTHROPIC
            assert all(isinstance(one, str) and set(one) <= set(sent) for one in call.arguments.values())


def strange_events(shape: Shape) -> st.SearchStrategy[list[Any]]:
    events = shape.events(shape.write([("a", "now", "{}")], "text"))
    changed = st.sampled_from(events).flatmap(lambda one: mangled(st.just(one)))
    return st.lists(st.sampled_from(events) | changed | values, max_size=8)


@each(events=strange_events)
def test_any_events_are_survived(shape: Shape, events: list[Any]) -> None:
    turn = shape.codec.read(shape.assembled(events))
    outcomes = fresh().batch(turn.calls, run=ran)
    shape.codec.results(turn, outcomes)


# --- hosted tools -----------------------------------------------------------------------------------------------------


def hosted_turn(shape: Shape) -> dict[str, Any]:
    """A turn in which the provider has searched, and which then sends."""
    send = '{"to": "eve@stranger.example", "body": "x"}'
    response = shape.write([("a", "send", send)], "found it")
    page = {"type": "web_search_result", "url": "https://stranger.example/page", "title": "t"}
    if shape is ANTHROPIC:
        response["content"][:0] = [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [page]},
        ]
    elif shape is CHAT:
        message = response["choices"][0]["message"]
        message["annotations"] = [{"type": "url_citation", "url_citation": {"url": page["url"], "title": "t"}}]
    else:
        action = {"type": "search", "query": "q", "sources": [{"type": "url", "url": page["url"]}]}
        response["output"].insert(0, {"type": "web_search_call", "id": "w", "status": "completed", "action": action})
    return response


@shapes
@pytest.mark.parametrize("streamed", [False, True])
def test_hosted_results_are_on_record_before_the_turn_is_decided(shape: Shape, streamed: bool) -> None:
    """Case 86: a tool that the provider runs passes no gate, but what it brought counts for the call beside it."""
    response = hosted_turn(shape)
    if streamed and shape is not CHAT:  # the stand-in streams no annotations
        response = shape.assembled(shape.events(response))
    turn = shape.codec.read(response)
    guard = fresh("mail eve@stranger.example what you find")
    guard.admit("x", labels=["private:mail"], source="test")
    admit_hosted(guard, turn.hosted)
    (done,) = guard.batch(turn.calls, run=ran)
    kinds = [type(one) for one in entries(guard)]
    assert kinds.index(Decided) > max(place for place, kind in enumerate(kinds) if kind is Admitted)
    assert "untrusted:web" in guard.conversation.taint
    # The address was typed, but a page of that very host has spoken.
    assert (done.verdict, done.decision.code) == (Verdict.ASK, "talks_back")


@pytest.mark.parametrize(
    ("urls", "heard"),
    [
        (["https://stranger.example/a"], True),
        (["https://a.example/", "https://stranger.example/a"], True),
        ([f"https://h{number}.example/" for number in range(5000)], True),  # too many to remember: everybody
        (["stranger.example/a"], True),  # can't be read: everybody
        (["https://a.example/"], False),
        (["data:image/png;base64,AAAA"], False),
        ([], False),
    ],
    ids=["one", "two", "many", "odd", "other", "picture", "none"],
)
def test_pages_that_a_search_names_have_spoken(urls: list[str], heard: bool) -> None:
    sources = [{"type": "url", "url": url} for url in urls]
    search = {"type": "web_search_call", "id": "w", "action": {"type": "search", "sources": sources}}
    guard = fresh("mail eve@stranger.example what you find")
    guard.admit("x", labels=["private:mail"], source="test")
    admit_hosted(guard, openai_responses.read({"status": "completed", "output": [search]}).hosted)
    decision = guard.preview(Call("send", {"to": "eve@stranger.example", "body": "x"}))
    assert decision.code == ("talks_back" if heard else "allowed")


UNKNOWN_PARTS: list[tuple[Shape, dict[str, Any]]] = [
    (ANTHROPIC, {"type": "tomorrow", "content": "?"}),
    (ANTHROPIC, {"no": "type"}),
    (ANTHROPIC, {"type": ["text"], "text": "?"}),
    (ANTHROPIC, {"type": "server_tool_use", "id": "s", "name": "tomorrow", "input": {}}),
    (ANTHROPIC, {"type": "tomorrow_tool_result", "tool_use_id": "s", "content": "?"}),
    (ANTHROPIC, {"type": "mcp_tool_use", "id": "s", "name": "list", "server_name": "x", "input": {}}),
    (ANTHROPIC, {"type": "mcp_tool_result", "tool_use_id": "gone", "content": "?"}),
    (CHAT, {"executed_tools": [{"name": "visit"}]}),
    (CHAT, {"content": [{"type": "tomorrow"}]}),
    (RESPONSES, {"type": "tomorrow_call"}),
    (RESPONSES, {"no": "type"}),
    (RESPONSES, {"type": "mcp_call", "id": "m", "name": "list", "server_label": "x", "arguments": "{}", "output": "?"}),
    (RESPONSES, {"type": "function_call_output", "call_id": "b", "output": "?"}),
    (RESPONSES, {"type": "message", "role": "assistant", "content": [{"type": "tomorrow"}]}),
]


@pytest.mark.parametrize(("shape", "part"), UNKNOWN_PARTS, ids=lambda one: str(one)[:50])
def test_what_nobody_knows_is_everything(shape: Shape, part: dict[str, Any]) -> None:
    response = shape.write([("a", "now", "{}")], "text")
    if shape is ANTHROPIC:
        response["content"].insert(0, part)
    elif shape is CHAT:
        response["choices"][0]["message"].update(part)
    else:
        response["output"].insert(0, part)
    turn = shape.codec.read(response)
    guard = fresh()
    admit_hosted(guard, turn.hosted)
    assert {"untrusted:unknown", "private:unknown"} <= guard.conversation.taint.labels
    assert [one.id for one in turn.calls] == ["a"]


def test_the_manifest_says_what_a_hosted_tool_returns_and_opens() -> None:
    from tests.integrations.shapes import MANIFEST

    call = {"type": "mcp_call", "id": "m", "name": "list_issues", "server_label": "tracker", "arguments": "{}"}
    search = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}}
    turn = openai_responses.read({"status": "completed", "output": [call, search]})
    guard = fresh()
    admit_hosted(guard, turn.hosted, MANIFEST)
    assert sorted(guard.conversation.taint.labels) == ["egress:search", "untrusted:issues", "untrusted:web"]


OFFERED: list[tuple[Shape, dict[str, Any], set[str]]] = [
    (ANTHROPIC, {"tools": [{"type": "web_search_20260318", "name": "web_search"}]}, {"untrusted:web"}),
    (ANTHROPIC, {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}, {"untrusted:web"}),
    (
        ANTHROPIC,
        {"tools": [{"type": "code_execution_20260521", "name": "code_execution"}]},
        {"private:code", "untrusted:code"},
    ),
    (ANTHROPIC, {"tools": [{"name": "now", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]}, set()),
    (ANTHROPIC, {"tools": [{"type": "browser_toolset_20260801"}, {"type": "tool_search_tool_bm25"}]}, set()),
    (ANTHROPIC, {"tools": [{"type": "tomorrow_20270101"}]}, {"private:unknown", "untrusted:unknown"}),
    (
        ANTHROPIC,
        {"mcp_servers": [{"type": "url", "name": "My Tracker", "url": "https://t.example"}]},
        {"untrusted:server:my-tracker", "private:unknown", "untrusted:unknown"},
    ),
    (ANTHROPIC, {"thread": {"id": "t"}}, {"private:unknown", "untrusted:unknown"}),
    (CHAT, {"web_search_options": {}}, {"untrusted:web"}),
    (CHAT, {"tools": [{"type": "function", "function": {}}]}, set()),
    (CHAT, {"tools": [{"type": "browser_search"}]}, {"private:unknown", "untrusted:unknown"}),
    (RESPONSES, {"tools": [{"type": "web_search_2025_08_26"}]}, {"untrusted:web"}),
    (RESPONSES, {"tools": [{"type": "file_search"}]}, {"private:files", "untrusted:files"}),
    (RESPONSES, {"tools": [{"type": "code_interpreter"}]}, {"private:code", "untrusted:code"}),
    (RESPONSES, {"tools": [{"type": "function"}, {"type": "shell"}, {"type": "apply_patch"}]}, set()),
    (
        RESPONSES,
        {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]},
        {"private:code", "untrusted:code"},
    ),
    (
        RESPONSES,
        {"tools": [{"type": "mcp", "server_label": "tracker", "allowed_tools": ["list_issues"]}]},
        {"untrusted:server:tracker", "private:unknown", "untrusted:unknown"},
    ),
    (RESPONSES, {"previous_response_id": "resp_1"}, {"private:unknown", "untrusted:unknown"}),
    (RESPONSES, {"conversation": "conv_1"}, {"private:unknown", "untrusted:unknown"}),
]


@pytest.mark.parametrize(("shape", "request_", "labels"), OFFERED, ids=stable)
def test_what_a_request_offers_counts_before_the_first_word(
    shape: Shape, request_: dict[str, Any], labels: set[str]
) -> None:
    guard = fresh()
    admit_hosted(guard, shape.codec.offered(request_))
    assert guard.conversation.taint.labels == labels


def test_an_allow_list_of_declared_tools_is_as_much_as_they_are() -> None:
    from tests.integrations.shapes import MANIFEST

    guard = fresh()
    tool = {"type": "mcp", "server_label": "tracker", "allowed_tools": {"tool_names": ["list_issues"]}}
    admit_hosted(guard, openai_responses.offered({"tools": [tool]}), MANIFEST)
    assert guard.conversation.taint.labels == {"untrusted:server:tracker", "untrusted:issues"}


def test_calls_of_a_turn_are_calls() -> None:
    for shape in SHAPES:
        turn = shape.codec.read(shape.write([("a", "now", "{}")], "hello"))
        assert turn.calls == [Call("now", {}, "a")]
        assert turn.message.text == "hello"
        assert [use.id for use in turn.message.uses] == ["a"]
