"""The three provider shapes side by side: how a turn is written, cut into a stream, and checked. Proves nothing itself.

``look`` is the stand-in's: what the real API demands of a history, found independently of the codecs.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, create_model

from interlock import Conversation, Guard, Interlock, Manifest, MemoryJournal
from interlock.integrations import anthropic_messages, openai_chat, openai_responses

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> ModuleType:
    """A module of `examples/loops`, which is a folder of programs and not a package."""
    known = sys.modules.get(f"loops_example_{name}")
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(f"loops_example_{name}", ROOT / "examples" / "loops" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


stand_in = example("stand_in")


@dataclass(frozen=True)
class Shape:
    """One API.

    Attributes:
        codec: the module under test.
        path: of the API in the stand-in.
        write: a complete response with these calls (id, name, arguments as JSON text) and this text.
        hostile: responses that no provider should send.
    """

    name: str
    codec: Any
    path: str
    write: Callable[[list[tuple[Any, Any, str]], str], dict[str, Any]]
    hostile: st.SearchStrategy[dict[str, Any]] = field(repr=False)

    def problem(self, messages: list[Any]) -> str:
        """What the real API would say of this history; empty when it takes it."""
        json.dumps(messages, allow_nan=False).encode()
        problem: str = stand_in.APIS[self.path].look({self.codec.MESSAGES: messages})[0]
        return problem

    def events(self, response: dict[str, Any]) -> list[dict[str, Any]]:
        """The same response as a stream."""
        text = "".join(stand_in.APIS[self.path].events(response))
        lines = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: "))
        return [json.loads(line) for line in lines if line != "[DONE]"]

    def assembled(self, events: list[Any]) -> dict[str, Any]:
        assembly = self.codec.Assembly()
        for event in events:
            assembly.add(event)
        response: dict[str, Any] = assembly.response()
        return response

    def __str__(self) -> str:
        return self.name


# --- what models write ------------------------------------------------------------------------------------------------

numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8)  # what JSON can carry, lone surrogates included
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text('abcé\n"\\ {}[]:,', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text("abcé", min_size=1, max_size=4), plain_values, max_size=3)
ids = st.sampled_from(["", "a", "a", "b", "call_1", "call_2", "x" * 300, "a\nb", "\ud800", None, 7, [], {}]) | values
names = st.sampled_from(["fetch", "read_mail", "send", "now", "nobody", "", "a b", "fetch\0", None, 3]) | values
broken = st.sampled_from(
    [
        "",
        "{",
        '{"to": "a@b.example"',
        '{"to": "a", "to": "b"}',
        '{"x": NaN}',
        '{"x": 1e999}',
        '{"x": 9007199254740993}',
        "[1]",
        '"text"',
        "null",
        "7",
        '{"a": 1}{"b": 2}',
        '{"x": "\\ud800"}',
        '{"x": "\\u0000"}',
        "[" * 3000,
        "\ud800",
    ]
)
# What Python's JSON parser lets through and JSON does not have, or what is too much.
odd = st.sampled_from([{"x": float("nan")}, {"x": float("inf")}, {"x": 2**53 + 1}, {"x": "\ud800"}, {"x": "a\0"}])
written = objects.map(lambda value: json.dumps(value, ensure_ascii=False))


def mangled(base: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A well-known object with some of its fields changed for anything, or gone."""

    def change(fields: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        changes = st.dictionaries(st.sampled_from(sorted(fields)) | st.text(max_size=4), values, max_size=2)
        gone = st.sets(st.sampled_from(sorted(fields)), max_size=1)
        return st.tuples(changes, gone).map(
            lambda both: {name: item for name, item in {**fields, **both[0]}.items() if name not in both[1]}
        )

    return base | base.flatmap(change)


def hostile_list(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items | values, max_size=5) | values


# --- Anthropic --------------------------------------------------------------------------------------------------------


def _anthropic(calls: list[tuple[Any, Any, str]], text: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": one, "name": name, "input": json.loads(given)} for one, name, given in calls]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    return {**head, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None, "usage": {}}


_block = mangled(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=9)}),
        st.fixed_dictionaries({"type": st.just("tool_use"), "id": ids, "name": names, "input": objects | values | odd}),
        st.fixed_dictionaries(
            {"type": st.just("thinking"), "thinking": st.text(max_size=5), "signature": st.just("s")}
        ),
        st.fixed_dictionaries({"type": st.just("server_tool_use"), "id": ids, "name": names, "input": values}),
        st.fixed_dictionaries({"type": st.just("web_search_tool_result"), "tool_use_id": ids, "content": values}),
        st.fixed_dictionaries({"type": st.just("mcp_tool_use"), "id": ids, "name": names, "server_name": names}),
        st.fixed_dictionaries({"type": st.just("mcp_tool_result"), "tool_use_id": ids, "content": values}),
        st.fixed_dictionaries({"type": st.text(max_size=9), "content": values}),
    )
)
_stops = st.sampled_from(["tool_use", "end_turn", "pause_turn", "max_tokens", "refusal", None, "tomorrow", 3])
_hostile_anthropic = mangled(
    st.fixed_dictionaries(
        {"type": st.just("message"), "content": hostile_list(_block), "stop_reason": st.just("tool_use") | _stops}
    )
)

# --- Chat -------------------------------------------------------------------------------------------------------------


def _chat(calls: list[tuple[Any, Any, str]], text: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": given}}
            for one, name, given in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": "chat.completion", "choices": [choice]}


_call = mangled(
    st.one_of(
        st.fixed_dictionaries(
            {
                "id": ids,
                "type": st.just("function"),
                "function": mangled(st.fixed_dictionaries({"name": names, "arguments": written | broken | values})),
            }
        ),
        st.fixed_dictionaries(
            {"id": ids, "type": st.just("custom"), "custom": st.fixed_dictionaries({"name": names, "input": values})}
        ),
    )
)
_message = mangled(
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "content": st.none() | st.text(max_size=5) | values,
            "tool_calls": hostile_list(_call),
            "function_call": st.none() | st.fixed_dictionaries({"name": names, "arguments": written | broken}),
            "annotations": st.none()
            | st.just([{"type": "url_citation", "url_citation": {"url": "https://x.example"}}]),
        }
    )
)
_ends = st.sampled_from(["stop", "tool_calls", "length", "content_filter", None, "tomorrow", 3])
_hostile_chat = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({"message": _message | values, "finish_reason": st.just("tool_calls") | _ends}),
            min_size=0,
            max_size=2,
        )
        | values
    }
)

# --- Responses --------------------------------------------------------------------------------------------------------


def _responses(calls: list[tuple[Any, Any, str]], text: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content})
    for number, (one, name, given) in enumerate(calls):
        head = {"type": "function_call", "id": f"fc_{number}", "call_id": one, "name": name}
        output.append({**head, "arguments": given, "status": "completed"})
    return {"id": "r", "object": "response", "status": "completed", "error": None, "output": output}


_action = st.dictionaries(st.sampled_from(["type", "command", "commands", "path", "diff"]), values, max_size=3)
_item = mangled(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("function_call"), "call_id": ids, "name": names, "arguments": written | broken | values}
        ),
        st.fixed_dictionaries({"type": st.just("custom_tool_call"), "call_id": ids, "name": names, "input": values}),
        st.fixed_dictionaries({"type": st.just("shell_call"), "call_id": ids, "action": _action}),
        st.fixed_dictionaries({"type": st.just("local_shell_call"), "call_id": ids, "action": _action}),
        st.fixed_dictionaries({"type": st.just("apply_patch_call"), "call_id": ids, "operation": _action}),
        st.fixed_dictionaries({"type": st.just("computer_call"), "call_id": ids, "action": _action}),
        st.fixed_dictionaries(
            {
                "type": st.just("mcp_approval_request"),
                "id": ids,
                "name": names,
                "server_label": names,
                "arguments": written,
            }
        ),
        st.fixed_dictionaries({"type": st.just("function_call_output"), "call_id": ids, "output": values}),
        st.fixed_dictionaries({"type": st.just("mcp_call"), "id": ids, "name": names, "server_label": names}),
        st.fixed_dictionaries({"type": st.just("web_search_call"), "id": ids, "action": values}),
        st.fixed_dictionaries({"type": st.just("message"), "role": st.just("assistant"), "content": values}),
        st.fixed_dictionaries({"type": st.just("reasoning"), "id": ids, "summary": values}),
        st.fixed_dictionaries({"type": st.text(max_size=9), "output": values}),
    )
)
_hostile_responses = mangled(
    st.fixed_dictionaries({"status": st.just("completed") | _ends, "error": st.none(), "output": hostile_list(_item)})
)

ANTHROPIC = Shape("anthropic", anthropic_messages, "/v1/messages", _anthropic, _hostile_anthropic)
CHAT = Shape("chat", openai_chat, "/v1/chat/completions", _chat, _hostile_chat)
RESPONSES = Shape("responses", openai_responses, "/v1/responses", _responses, _hostile_responses)
SHAPES = [ANTHROPIC, CHAT, RESPONSES]

# --- objects instead of dicts -----------------------------------------------------------------------------------------


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True)


def as_models(value: Any) -> Any:
    """Dicts as pydantic models, as the SDKs build them: fields by name, unknown ones kept."""
    if isinstance(value, dict) and value and all(key.isidentifier() for key in value):
        fields: Any = {key: (Any, ...) for key in value if not key.startswith(("_", "model_"))}
        model = create_model("Model", __base__=_Model, **fields)
        return model.model_construct(**{key: as_models(item) for key, item in value.items()})
    return [as_models(item) for item in value] if isinstance(value, list) else value


def as_namespaces(value: Any) -> Any:
    """Dicts as plain objects."""
    if isinstance(value, dict) and value and all(key.isidentifier() for key in value):
        return SimpleNamespace(**{key: as_namespaces(item) for key, item in value.items()})
    return [as_namespaces(item) for item in value] if isinstance(value, list) else value


# --- a guard ----------------------------------------------------------------------------------------------------------

MANIFEST = Manifest.parse(
    {
        "version": 1,
        "tools": {
            "read_mail": {"returns": ["private:mail", "untrusted:mail"], "egress": "none"},
            "fetch": {"returns": ["untrusted:web"], "egress": "chosen", "destinations": {"url": "url"}},
            "send": {"returns": [], "egress": "chosen", "destinations": {"to": "email"}, "content": ["body"]},
            "now": {"returns": [], "egress": "none"},
            "write": {
                "returns": [],
                "egress": "none",
                "effect": "write",
                "destinations": {"path": "path"},
                "content": ["text"],
            },
        },
        "servers": {
            "tracker": {"tools": {"list_issues": {"returns": ["untrusted:issues"], "egress": "none"}}},
            "openai": {
                "tools": {"web_search": {"returns": ["untrusted:web"], "egress": "chosen", "opens": ["egress:search"]}}
            },
        },
    }
)

_LOCK = Interlock(manifest=MANIFEST, journal=MemoryJournal())


def fresh(said: str = "") -> Guard:
    """A guard of a new conversation, of an Interlock that all tests share."""
    return _LOCK.guard(Conversation.user(said) if said else Conversation.new())


def entries(guard: Guard) -> Iterator[Any]:
    """What the conversation's journal holds, oldest first."""
    from interlock.model.entries import decode

    journal: Any = _LOCK.journal
    return (decode(sealed.body) for sealed in journal.entries(guard.conversation.id))
