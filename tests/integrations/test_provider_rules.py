"""Proves for each provider what only it demands: the exact shape of results, its ways to end, its own kinds of calls.

The shapes were held against the types of the official SDKs, and against the stand-in, which is as strict as the APIs.

Mutation that it is shown to catch: any key of a result renamed, any ending added to those that are complete.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Outcome, ToolResult
from interlock.integrations import anthropic_messages, openai_chat, openai_responses
from interlock.model.turns import Answered, Attached, Said, Turn, UnparsedText
from tests.integrations.shapes import ANTHROPIC, CHAT, RESPONSES, fresh


def ran(_name: str, _arguments: dict[str, Any]) -> str:
    return "done"


def refused(turn: Turn) -> list[Outcome]:
    """Outcomes of a turn whose calls are all refused: nobody declared their tools."""
    return fresh().batch(turn.calls, run=ran)


# --- Anthropic --------------------------------------------------------------------------------------------------------


def test_anthropic_results_are_one_user_message_in_order() -> None:
    turn = ANTHROPIC.codec.read(ANTHROPIC.write([("t1", "now", "{}"), ("t2", "nobody", "{}")], "hi"))
    outcomes = fresh().batch(turn.calls, run=ran)
    assert anthropic_messages.results(turn, outcomes, also="go on") == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": False},
                {"type": "tool_result", "tool_use_id": "t2", "content": outcomes[1].for_model, "is_error": True},
                {"type": "text", "text": "go on"},
            ],
        }
    ]


@pytest.mark.parametrize(
    ("stop", "complete"),
    [
        ("tool_use", True),
        ("end_turn", True),
        ("stop_sequence", True),
        ("pause_turn", True),
        ("max_tokens", False),
        ("model_context_window_exceeded", False),
        ("refusal", False),
        ("tomorrow", False),
        (None, False),
    ],
)
def test_anthropic_ends(stop: str | None, complete: bool) -> None:
    turn = anthropic_messages.read({**ANTHROPIC.write([("a", "now", "{}")], ""), "stop_reason": stop})
    assert (turn.complete, len(turn.calls), len(turn.history)) == (complete, int(complete), int(complete))


def test_anthropic_pauses_and_wants_its_turn_back() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    turn = anthropic_messages.read({"content": [search], "stop_reason": "pause_turn"})
    assert turn.paused
    assert turn.history == ({"role": "assistant", "content": [search]},)
    assert [one.labels for one in turn.hosted] == [("untrusted:web",)]  # under way already


def test_anthropic_members_of_a_toolset_are_tools_of_their_own() -> None:
    block = {"type": "tool_use", "id": "a", "name": "navigate", "input": {}, "toolset_name": "browser"}
    turn = anthropic_messages.read({"content": [block], "stop_reason": "tool_use"})
    assert [call.name for call in turn.calls] == ["browser/navigate"]
    (message,) = anthropic_messages.results(turn, refused(turn))
    assert message["content"][0]["toolset_name"] == "browser"
    assert turn.history[0]["content"][0]["name"] == "navigate"


def test_anthropic_history_leaves_out_what_the_api_refuses() -> None:
    content = [
        {"type": "text", "text": ""},
        {"type": "text", "text": "x", "parsed_output": {"a": 1}},
        {"type": "tool_use", "id": "a", "name": "now", "input": {"x": float("nan")}},
        {"type": "tool_use", "id": "b", "name": "now", "input": "text"},
    ]
    turn = anthropic_messages.read({"content": content, "stop_reason": "tool_use"})
    sent = turn.history[0]["content"]
    assert sent[0] == {"type": "text", "text": "x"}
    assert [block["input"] for block in sent[1:]] == [{}, {}]
    assert {one.decision.code for one in refused(turn)} == {"invalid_call"}


def test_anthropic_streams_arguments_in_pieces_and_a_call_without_any_in_none() -> None:
    events = ANTHROPIC.events(ANTHROPIC.write([("a", "now", "{}"), ("b", "fetch", '{"url":"https://a.example"}')], ""))
    events = [one for one in events if one.get("delta", {}).get("partial_json") != "{}"]
    turn = anthropic_messages.read(ANTHROPIC.assembled(events))
    assert [call.arguments for call in turn.calls] == [{}, {"url": "https://a.example"}]


def test_anthropic_a_block_that_never_ends_is_not_complete() -> None:
    events = ANTHROPIC.events(ANTHROPIC.write([("a", "now", "{}"), ("b", "now", "{}")], ""))
    for place, event in enumerate(events):
        if event["type"] == "content_block_stop":
            assert not anthropic_messages.read(ANTHROPIC.assembled([*events[:place], *events[place + 1 :]])).complete


def test_anthropic_unknown_parts_of_a_stream() -> None:
    """Outside of a call they are content that nobody knows; inside, the call is malformed."""
    events = ANTHROPIC.events(ANTHROPIC.write([("a", "now", "{}")], "text"))
    unknown = {"type": "content_block_delta", "index": 1, "delta": {"type": "tomorrow_delta", "x": 1}}
    turn = anthropic_messages.read(ANTHROPIC.assembled([*events[:-3], unknown, *events[-3:]]))
    assert turn.complete
    assert isinstance(turn.calls[0].arguments, UnparsedText)
    assert {"untrusted:unknown", "private:unknown"} <= {label for one in turn.hosted for label in one.labels}
    assert "interlock_lost" not in str(turn.history)
    other = anthropic_messages.read(ANTHROPIC.assembled([*events[:3], {"type": "tomorrow"}, *events[3:]]))
    assert other.calls[0].arguments == {}
    assert other.hosted


def test_anthropic_records() -> None:
    messages = [
        {"role": "system", "content": "be nice"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "data": "…"}},
                {"type": "document", "title": "report.pdf", "source": {}},
                {"type": "tomorrow"},
            ],
        },
        {"role": "assistant", "content": "I look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "now", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}],
        },
    ]
    said, image, document, unknown, called, answered = anthropic_messages.recorded(messages)
    assert said == Said("look")
    assert isinstance(image, Attached)
    assert image.labels == ("private:image",)
    assert isinstance(document, Attached)
    assert (document.labels, document.source) == (("private:attachment", "untrusted:attachment"), "report.pdf")
    assert isinstance(unknown, Attached)
    assert unknown.labels == ("private:unknown", "untrusted:unknown")
    assert isinstance(called, Turn)
    assert called.text == "I look."
    assert [one.id for one in called.calls] == ["a"]
    assert answered == Answered("a", "x")


# --- Chat -------------------------------------------------------------------------------------------------------------


def test_chat_results_are_tool_messages_directly_after() -> None:
    turn = CHAT.codec.read(CHAT.write([("c1", "now", "{}"), ("c2", "nobody", "{}")], ""))
    outcomes = fresh().batch(turn.calls, run=ran)
    assert openai_chat.results(turn, outcomes) == [
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": outcomes[1].for_model},
    ]


@pytest.mark.parametrize(
    ("stop", "complete"),
    [
        ("stop", True),
        ("tool_calls", True),
        ("function_call", True),
        ("length", False),
        ("content_filter", False),
        (None, False),
    ],
)
def test_chat_ends(stop: str | None, complete: bool) -> None:
    response = CHAT.write([("a", "now", "{}")], "")
    response["choices"][0]["finish_reason"] = stop
    turn = openai_chat.read(response)
    assert (turn.complete, len(turn.calls), len(turn.history)) == (complete, int(complete), int(complete))


def test_chat_custom_tools_take_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "now", "input": 'print("hi")'}}
    turn = openai_chat.read({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    assert turn.calls[0].arguments == {"input": 'print("hi")'}
    assert turn.history[0]["tool_calls"] == [call]
    assert openai_chat.results(turn, refused(turn))[0]["tool_call_id"] == "c"


def test_chat_the_first_api_is_answered_by_name() -> None:
    message = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
    turn = openai_chat.read({"choices": [{"message": message, "finish_reason": "function_call"}]})
    outcomes = fresh().batch(turn.calls, run=ran)
    assert openai_chat.results(turn, outcomes) == [{"role": "function", "name": "now", "content": "done"}]
    assert "tool_calls" not in turn.history[0]
    called, answered = openai_chat.recorded([message, {"role": "function", "name": "now", "content": "done"}])
    assert isinstance(called, Turn)
    assert (called.proposals[0].wanted, answered) == ("", Answered("", "done"))


def test_chat_history_leaves_out_what_the_api_refuses() -> None:
    message = {
        "role": "assistant",
        "content": "hi",
        "refusal": None,
        "tool_calls": [],
        "function_call": None,
        "annotations": [],
        "audio": {"id": "a", "data": "…"},
        "parsed": {},
    }
    turn = openai_chat.read({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert turn.history == ({"role": "assistant", "content": "hi", "audio": {"id": "a"}},)


def test_chat_streams_in_which_every_call_has_the_same_index() -> None:
    def chunk(**call: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

    ends = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    for index in ({"index": 0}, {}):
        first = chunk(**index, id="a", type="function", function={"name": "now", "arguments": "{}"})
        second = chunk(**index, id="b", type="function", function={"name": "fetch", "arguments": '{"url":'})
        third = chunk(**index, function={"arguments": '"https://a.example"}'})
        turn = openai_chat.read(CHAT.assembled([first, second, third, ends]))
        assert [(one.id, one.name, one.arguments) for one in turn.calls] == [
            ("a", "now", {}),
            ("b", "fetch", {"url": "https://a.example"}),
        ]


def test_chat_streams_of_other_choices_are_not_mixed_in() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    events = CHAT.events(CHAT.write([], "mine"))
    turn = openai_chat.read(CHAT.assembled([other, *events, other]))
    assert turn.text == "mine"


def test_chat_records_take_whole_responses_too() -> None:
    response = CHAT.write([("a", "now", "{}")], "")
    user = {
        "role": "user",
        "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "…"}}],
    }
    said, image, called = openai_chat.recorded([user, response])
    assert said == Said("hi")
    assert isinstance(image, Attached)
    assert isinstance(called, Turn)
    assert [one.id for one in called.calls] == ["a"]


# --- Responses --------------------------------------------------------------------------------------------------------

BLANK = openai_responses._BLANK

KINDS: list[tuple[dict[str, Any], str, Any, dict[str, Any]]] = [
    (
        {"type": "function_call", "call_id": "c", "name": "now", "arguments": "{}", "caller": {"type": "direct"}},
        "now",
        {},
        {"type": "function_call_output", "call_id": "c", "output": "TEXT", "caller": {"type": "direct"}},
    ),
    (
        {"type": "function_call", "call_id": "c", "name": "send", "arguments": "{}", "namespace": "crm"},
        "crm/send",
        {},
        {"type": "function_call_output", "call_id": "c", "output": "TEXT"},
    ),
    (
        {"type": "custom_tool_call", "call_id": "c", "name": "now", "input": "x y"},
        "now",
        {"input": "x y"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "TEXT"},
    ),
    (
        {
            "type": "local_shell_call",
            "id": "l",
            "call_id": "c",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        "local_shell",
        {"type": "exec", "command": ["ls"], "env": {}},
        {"type": "local_shell_call_output", "id": "c", "output": "TEXT"},
    ),
    (
        {
            "type": "shell_call",
            "call_id": "c",
            "status": "in_progress",
            "action": {"commands": ["ls"], "max_output_length": 9},
            "environment": {"type": "local"},
        },
        "shell",
        {"commands": ["ls"], "max_output_length": 9},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "", "stderr": "TEXT", "outcome": {"type": "exit", "exit_code": 1}}],
            "max_output_length": 9,
        },
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a.py"}},
        "apply_patch",
        {"type": "delete_file", "path": "a.py"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "TEXT"},
    ),
    (
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "q"}},
        "tool_search",
        {"query": "q"},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "status": "completed", "tools": []},
    ),
    (
        {"type": "mcp_approval_request", "id": "c", "name": "drop", "server_label": "db", "arguments": "{}"},
        "drop",
        {},
        {"type": "mcp_approval_response", "approval_request_id": "c", "approve": False, "reason": "TEXT"},
    ),
    (
        {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}, "pending_safety_checks": []},
        "computer",
        {"action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": BLANK}},
    ),
]


@pytest.mark.parametrize(("item", "name", "arguments", "result"), KINDS, ids=[kind[0]["type"] for kind in KINDS])
def test_responses_every_kind_of_call_is_decided_and_refused_in_its_shape(
    item: dict[str, Any], name: str, arguments: Any, result: dict[str, Any]
) -> None:
    turn = openai_responses.read({"status": "completed", "output": [item]})
    assert [(one.name, one.arguments, one.id) for one in turn.calls] == [(name, arguments, "c")]
    assert turn.hosted == ()
    outcomes = [Outcome(name, "c", refused(turn)[0].decision, for_model="TEXT", is_error=True)]
    found = openai_responses.results(turn, outcomes)
    assert found[0] == result
    assert turn.history == (item,)
    rest = [{"role": "developer", "content": "TEXT"}] if item["type"] == "computer_call" else []
    assert found[1:] == rest


def test_responses_good_results_of_special_kinds_go_back_as_they_are() -> None:
    picture = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    shell = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    tools = [{"type": "function", "name": "f"}]
    given: list[tuple[int, Any, str]] = [(8, picture, "output"), (4, shell, "output"), (6, tools, "tools")]
    for place, value, key in given:
        item = KINDS[place][0]
        turn = openai_responses.read({"status": "completed", "output": [item]})
        decision = refused(turn)[0].decision
        outcome = Outcome("x", "c", decision, executed=True, result=value, for_model="TEXT", is_error=False)
        assert openai_responses.results(turn, [outcome])[0][key] == value
    approval = openai_responses.read({"status": "completed", "output": [KINDS[7][0]]})
    good = Outcome("drop", "c", decision, executed=True, result="approved", for_model="approved", is_error=False)
    assert openai_responses.results(approval, [good]) == [
        {"type": "mcp_approval_response", "approval_request_id": "c", "approve": True}
    ]
    assert approval.calls[0].server == "db"
    assert approval.proposals[0].there


@pytest.mark.parametrize(
    ("status", "error", "item", "complete"),
    [
        ("completed", None, "completed", True),
        ("completed", None, None, True),
        ("completed", None, "in_progress", False),
        ("completed", None, "incomplete", False),
        ("completed", {"code": "x"}, "completed", False),
        ("incomplete", None, "completed", False),
        ("failed", None, "completed", False),
        ("queued", None, "completed", False),
        ("in_progress", None, "completed", False),
        (None, None, "completed", False),
    ],
)
def test_responses_ends(status: Any, error: Any, item: Any, complete: bool) -> None:
    response = {**RESPONSES.write([("a", "now", "{}")], ""), "status": status, "error": error}
    response["output"][0]["status"] = item
    turn = openai_responses.read(response)
    assert (turn.complete, len(turn.calls), len(turn.history)) == (complete, int(complete), int(complete))


def test_responses_what_has_been_run_there_is_content() -> None:
    hosted = {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}}
    call = {"type": "function_call", "call_id": "d", "name": "now", "arguments": "{}"}
    output = [
        hosted,
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x"}]},
        call,
        {"type": "function_call_output", "call_id": "d", "output": "12:00"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "tool_search_call", "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "execution": "server", "tools": []},
        {"type": "image_generation_call", "id": "i", "result": "…"},
        {"type": "mcp_list_tools", "server_label": "db", "tools": []},
    ]
    turn = openai_responses.read({"status": "completed", "output": output})
    assert turn.calls == []
    assert list(turn.history) == output
    assert {label for one in turn.hosted for label in one.labels} == {
        "private:code",
        "untrusted:code",
        "private:unknown",
        "untrusted:unknown",
        "untrusted:server:db",
    }


def test_responses_citations_tell_where_text_comes_from() -> None:
    notes = [
        {"type": "url_citation", "url": "https://a.example/x", "title": "t"},
        {"type": "file_citation", "file_id": "f"},
    ]
    item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x", "annotations": notes}],
    }
    turn = openai_responses.read({"status": "completed", "output": [item]})
    assert [(one.labels, one.urls) for one in turn.hosted] == [
        (("untrusted:web",), ("https://a.example/x",)),
        (("private:files", "untrusted:files"), ()),
    ]


def test_responses_streams_that_contradict_themselves_are_not_complete() -> None:
    events = RESPONSES.events(RESPONSES.write([("a", "now", "{}")], ""))
    last = events[-1]
    changed = {**last["response"], "output": [{**last["response"]["output"][0], "arguments": '{"x": 1}'}]}
    turn = openai_responses.read(RESPONSES.assembled([*events[:-1], {**last, "response": changed}]))
    assert not turn.complete
    empty = {**last, "response": {**last["response"], "output": []}}
    assert openai_responses.read(RESPONSES.assembled([*events[:-1], empty])).calls  # some servers leave them out
    undone = [one for one in events[:-1] if one["type"] != "response.output_item.done"]
    assert not openai_responses.read(RESPONSES.assembled([*undone, empty])).complete


def test_responses_an_aborted_stream_still_says_what_was_searched() -> None:
    item = {"type": "web_search_call", "id": "w", "status": "in_progress", "action": {"type": "search", "query": "q"}}
    turn = openai_responses.read(
        RESPONSES.assembled([{"type": "response.output_item.added", "output_index": 0, "item": item}])
    )
    assert not turn.complete
    assert [one.labels for one in turn.hosted] == [("untrusted:web",)]


def test_responses_records() -> None:
    items = [
        {"role": "developer", "content": "be nice"},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}, {"type": "input_file", "filename": "a.pdf"}],
        },
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "function_call_output", "call_id": "b", "output": "y"},
        {"role": "assistant", "content": "done"},
        {"type": "item_reference", "id": "i"},
        {"type": "mcp_approval_request", "id": "m", "name": "n", "server_label": "s", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "m", "approve": False, "reason": "no"},
        {"object": "response", "output": [{"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}"}]},
    ]
    found = list(openai_responses.recorded(items))
    kinds = [type(one).__name__ for one in found]
    assert kinds == [*"Said Attached Turn Answered Answered Turn Attached Turn Answered Turn".split()]
    assert [call.id for call in found[2].calls] == ["a", "b"]  # type: ignore[union-attr]  # a turn, see above
    assert found[3:5] == [Answered("a", "x"), Answered("b", "y")]
    assert found[8] == Answered("m", "no", is_error=True, executed=False)
    assert [call.id for call in found[9].calls] != ["a"]  # type: ignore[union-attr]  # taken by an earlier turn


def test_responses_records_of_shells_in_containers() -> None:
    hosted = {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}}
    (turn,) = openai_responses.recorded([hosted, {"type": "shell_call_output", "call_id": "c", "output": []}])
    assert isinstance(turn, Turn)
    assert turn.calls == []


def test_more_calls_than_one_turn_may_have_are_answered_all_the_same() -> None:
    for shape in (ANTHROPIC, CHAT, RESPONSES):
        turn = shape.codec.read(shape.write([(f"c{number}", "now", "{}") for number in range(200)], ""))
        outcomes = fresh().batch(turn.calls, run=ran)
        assert shape.problem([*turn.history, *shape.codec.results(turn, outcomes)]) == ""
        assert {one.decision.code for one in outcomes[128:]} == {"invalid_call"}


def test_a_tool_result_as_a_whole_is_text() -> None:
    """Whatever a tool returns, what goes back is the text that the gate made of it."""
    turn = CHAT.codec.read(CHAT.write([("a", "now", "{}")], ""))
    outcomes = fresh().batch(turn.calls, run=lambda _name, _given: ToolResult({"b": 1, "a": [2]}))
    assert openai_chat.results(turn, outcomes)[0]["content"] == '{"a":[2],"b":1}'
