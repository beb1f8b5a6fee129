"""What the three APIs demand of a request, written down from their documentation and error messages. Proves nothing
by itself; knows nothing of the codecs but the name of their encoder.

``problems(messages)`` says what each API would object to, ``valid_for_all(messages)`` whether there is nothing, and
``transcripts()`` draws conversations of ours in which every call has exactly one result (T17).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from hypothesis import strategies as st

from interlock.integrations import anthropic_messages, openai_chat, openai_responses
from interlock.model.messages import Image, Message, Role, Text, ToolAnswer, ToolUse

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
PICTURES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

Request = Mapping[str, Any]


class Objection(Exception):
    """What an API would answer with status 400."""


def demand(condition: object, problem: str) -> None:
    if not condition:
        raise Objection(problem)


def _text(value: Any, where: str) -> None:
    demand(isinstance(value, str) and value.strip(), f"{where}: text must be non-blank, not {value!r}")


def _keys(value: Any, where: str, must: str, may: str = "") -> None:
    demand(isinstance(value, dict), f"{where}: must be an object")
    found = set(value)
    demand(set(must.split()) <= found <= {*must.split(), *may.split()}, f"{where}: has the keys {sorted(found)}")


def _picture(media_type: Any, data: Any, where: str) -> None:
    demand(media_type in PICTURES, f"{where}: no picture of type {media_type!r} is taken")
    demand(isinstance(data, str) and base64.b64decode(data, validate=True), f"{where}: no payload")


def _data_url(url: Any, where: str) -> None:
    found = re.fullmatch(r"data:([a-z/]+);base64,(.*)", url)
    demand(found, f"{where}: {url[:20]!r} is no data URL")
    assert found is not None
    _picture(found[1], found[2], where)


def _arguments(text: Any, where: str) -> None:
    demand(isinstance(text, str), f"{where}: arguments must be text")
    try:
        value = json.loads(text)
    except ValueError:
        raise Objection(f"{where}: arguments are not JSON: {text!r}") from None
    demand(isinstance(value, dict), f"{where}: arguments are no object: {text!r}")


# --- Anthropic --------------------------------------------------------------------------------------------------------


def look_anthropic(request: Request) -> None:
    """Roles alternate and the user begins; every call is answered in the next message, results first; no blanks."""
    _keys(request, "request", "messages", "system")
    if "system" in request:
        _text(request["system"], "system")
    demand(request["messages"], "messages: at least one message is required")
    owed: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(request["messages"]):
        where = f"messages.{place}"
        _keys(message, where, "role content")
        demand(message["role"] == ("assistant" if place % 2 else "user"), f"{where}: roles must alternate")
        demand(message["content"], f"{where}: content must be non-empty")
        kinds = [block["type"] for block in message["content"]]
        answered = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        demand(sorted(answered) == sorted(owed), f"{where}: results of {owed} must be here, each once, not {answered}")
        demand("tool_result" not in kinds[len(answered) :], f"{where}: tool_result blocks must come first")
        for index, block in enumerate(message["content"]):
            _anthropic_block(message["role"], block, f"{where}.content.{index}")
        owed = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        demand(len({*seen, *owed}) == len(seen) + len(owed), f"{where}: tool_use ids must be unique")
        seen.update(owed)
    demand(not owed, f"tool_use ids {owed} have no result")


def _anthropic_block(role: str, block: dict[str, Any], where: str) -> None:
    match role, block["type"]:
        case _, "text":
            _keys(block, where, "type text")
            _text(block["text"], where)
        case "user", "image":
            _keys(block, where, "type source")
            _keys(block["source"], where, "type media_type data")
            demand(block["source"]["type"] == "base64", f"{where}: source")
            _picture(block["source"]["media_type"], block["source"]["data"], where)
        case "user", "tool_result":
            _keys(block, where, "type tool_use_id content", "is_error")
            content = block["content"]
            demand(isinstance(content, str) and (not content or content.strip()), f"{where}: blank text")
            demand(type(block.get("is_error", False)) is bool, f"{where}: is_error must be true or false")
            demand(content or not block.get("is_error"), f"{where}: content can't be empty if is_error is true")
        case "assistant", "tool_use":
            _keys(block, where, "type id name input")
            demand(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), f"{where}: id {block['id']!r}")
            demand(NAME.fullmatch(block["name"]), f"{where}: name {block['name']!r}")
            demand(isinstance(block["input"], dict), f"{where}: input must be an object")
        case _:
            raise Objection(f"{where}: {block['type']!r} can't be in a message of {role!r}")


# --- Chat Completions -------------------------------------------------------------------------------------------------


def look_chat(request: Request) -> None:
    """The results of a turn stand directly after it, each once; at most one system message, the first; no blanks."""
    _keys(request, "request", "messages")
    demand(request["messages"], "messages: too short")
    owed: list[str] = []
    seen: set[str] = set()
    for place, message in enumerate(request["messages"]):
        where = f"messages[{place}]"
        if message["role"] == "tool":
            _keys(message, where, "role tool_call_id content")
            demand(message["tool_call_id"] in owed, f"{where}: {message['tool_call_id']!r} answers no call before it")
            demand(isinstance(message["content"], str), f"{where}: content must be text")
            owed.remove(message["tool_call_id"])
            continue
        demand(not owed, f"{where}: tool_call_ids {owed} have no result")
        match message["role"]:
            case "system":
                _keys(message, where, "role content")
                demand(place == 0, f"{where}: a second system message")
                _text(message["content"], where)
            case "user":
                _keys(message, where, "role content")
                _chat_parts(message["content"], where)
            case "assistant":
                _keys(message, where, "role content", "tool_calls")
                calls = message.get("tool_calls")
                demand(calls is None or calls, f"{where}: tool_calls is empty")
                if message["content"] is not None or not calls:
                    _text(message["content"], where)
                owed = [_chat_call(one, where) for one in calls or ()]
                demand(len({*seen, *owed}) == len(seen) + len(owed), f"{where}: ids must be unique")
                seen.update(owed)
            case role:
                raise Objection(f"{where}: role {role!r}")
    demand(not owed, f"tool_call_ids {owed} have no result")


def _chat_call(call: Any, where: str) -> str:
    _keys(call, where, "id type function")
    demand(call["type"] == "function", f"{where}: type {call['type']!r}")
    demand(0 < len(call["id"]) <= 40, f"{where}: id {call['id']!r} is too long or empty")
    _keys(call["function"], where, "name arguments")
    demand(NAME.fullmatch(call["function"]["name"]), f"{where}: name {call['function']['name']!r}")
    _arguments(call["function"]["arguments"], where)
    found: str = call["id"]
    return found


def _chat_parts(content: Any, where: str) -> None:
    if isinstance(content, str):
        _text(content, where)
        return
    demand(content, f"{where}: content is empty")
    for part in content:
        if part["type"] == "text":
            _keys(part, where, "type text")
            _text(part["text"], where)
        else:
            demand(part["type"] == "image_url", f"{where}: {part['type']!r}")
            _keys(part, where, "type image_url")
            _data_url(part["image_url"]["url"], where)


# --- Responses --------------------------------------------------------------------------------------------------------


def look_responses(request: Request) -> None:
    """Every call has one output after it, found by its call_id, before anything else is said; no blanks."""
    _keys(request, "request", "input", "instructions")
    if "instructions" in request:
        _text(request["instructions"], "instructions")
    demand(request["input"], "input: is empty")
    owed: set[str] = set()
    seen: set[str] = set()
    for place, item in enumerate(request["input"]):
        where = f"input[{place}]"
        match item.get("type", "message"):
            case "function_call":
                _keys(item, where, "type call_id name arguments")
                demand(0 < len(item["call_id"]) <= 64, f"{where}: call_id {item['call_id']!r} is too long or empty")
                demand(NAME.fullmatch(item["name"]), f"{where}: name {item['name']!r}")
                _arguments(item["arguments"], where)
                demand(item["call_id"] not in seen, f"{where}: call_ids must be unique")
                seen.add(item["call_id"])
                owed.add(item["call_id"])
            case "function_call_output":
                _keys(item, where, "type call_id output")
                demand(isinstance(item["output"], str), f"{where}: output must be text")
                demand(item["call_id"] in owed, f"{where}: no tool call found for {item['call_id']!r}")
                owed.remove(item["call_id"])
            case "message":
                _keys(item, where, "role content", "type")
                demand(not owed, f"{where}: no tool output found for {sorted(owed)}")
                demand(item["role"] in ("user", "assistant"), f"{where}: role {item['role']!r}")
                _responses_parts(item["role"], item["content"], where)
            case kind:
                raise Objection(f"{where}: type {kind!r}")
    demand(not owed, f"no tool output found for {sorted(owed)}")


def _responses_parts(role: str, content: Any, where: str) -> None:
    if isinstance(content, str):
        _text(content, where)
        return
    demand(role == "user" and content, f"{where}: content")
    for part in content:
        if part["type"] == "input_text":
            _keys(part, where, "type text")
            _text(part["text"], where)
        else:
            demand(part["type"] == "input_image", f"{where}: {part['type']!r}")
            _keys(part, where, "type image_url detail")
            demand(part["detail"] in ("auto", "low", "high"), f"{where}: detail {part['detail']!r}")
            _data_url(part["image_url"], where)


# --- all of them ------------------------------------------------------------------------------------------------------

LOOKS: Final[dict[str, tuple[Any, Callable[[Request], None]]]] = {
    "anthropic": (anthropic_messages, look_anthropic),
    "chat": (openai_chat, look_chat),
    "responses": (openai_responses, look_responses),
}


def problem(name: str, request: Request) -> str:
    """What the API of this name would say of a request; empty when it takes it."""
    try:
        json.dumps(request, allow_nan=False, ensure_ascii=False).encode()
        LOOKS[name][1](request)
    except (Objection, ValueError, TypeError, KeyError, AttributeError) as error:  # of a shape that it can't even read
        return str(error) or repr(error)
    return ""


def problems(messages: Iterable[Message], *, system: str = "") -> list[str]:
    """What the APIs would say of these messages as a request, each with the name of the API."""
    given = list(messages)
    said = ((name, problem(name, codec.encoded(given, system=system))) for name, (codec, _) in LOOKS.items())
    return [f"{name}: {one}" for name, one in said if one]


def valid_for_all(messages: Iterable[Message], *, system: str = "") -> bool:
    """Would every API take these messages as a request?"""
    return not problems(messages, system=system)


# --- conversations of ours --------------------------------------------------------------------------------------------

said_texts = st.text("ab é漢\n\u200b", max_size=6) | st.sampled_from(["", " ", "\n", "\ud800", "{}"])
pictures = st.builds(
    Image, st.sampled_from([*PICTURES, "image/svg+xml", ""]), st.binary(max_size=4)
)  # a type that nobody takes, and no payload, too
any_arguments = st.one_of(
    st.dictionaries(st.text("abé", max_size=3), st.integers(-9, 9) | st.text('abé\n"\\', max_size=5), max_size=2),
    st.dictionaries(st.text("ab", max_size=3), st.integers(0, 9), max_size=2).map(json.dumps),
    st.sampled_from(
        ["", "{", "[1]", "null", '{"a":1,"a":2}', '{"x":NaN}', "[" * 3000, "\ud800", '{"x":"\\ud800"}', None, 3, [1]]
    ),
    st.sampled_from([{"x": float("nan")}, {"x": 2**60}, {"x": "\ud800"}, {3: 4}, {"x": object()}, {"x": b""}]),
)
tool_names = st.sampled_from(["fetch", "crm/send", "a.b:c", "", "é", "x" * 70, "mail_read"])
# `#` is where the number of the call stands, `@` where its place in its round does, as with providers that begin again.
id_shapes = st.sampled_from(
    ["again_@", "@", "again @", "toolu_#", "call_#", "functions.fetch:#", "a b#", "é#", "#" + "x" * 50, "#" + "y" * 200]
)


@st.composite
def transcripts(draw: st.DrawFn, *, rounds: int = 4, whole: bool = True) -> list[Message]:
    """A conversation that begins with the person (after system messages, perhaps), in every form that we allow.

    Every call has exactly one result, in the next message or messages of the tool role, in any order there, and the
    person's words may be folded in after them. Several messages of one role may stand in a row.

    Args:
        rounds: how many at most.
        whole: end after any message; else only where it is the model's turn.
    """
    numbers = iter(range(10_000))
    found: list[Message] = [Message.system(draw(said_texts)) for _ in range(draw(st.integers(0, 2)))]
    found.append(draw(_person()))
    for _ in range(draw(st.integers(0, rounds))):
        uses = [
            ToolUse(_id(draw(id_shapes), next(numbers), place), draw(tool_names), draw(any_arguments))
            for place in range(draw(st.integers(0, 3)))
        ]
        found.append(Message.assistant(draw(said_texts), *uses))
        if uses:
            found += draw(_results(draw(st.permutations(uses))))
        else:
            found += draw(st.lists(_person(), min_size=1, max_size=2))
    if whole and draw(st.booleans()):
        found.append(Message.assistant(draw(said_texts)))
    return found


def _id(shape: str, number: int, place: int) -> str:
    return shape.replace("#", str(number)).replace("@", str(place))


@st.composite
def _person(draw: st.DrawFn) -> Message:
    blocks = draw(st.lists(said_texts.map(Text) | pictures, max_size=3))
    return Message(Role.USER, tuple(blocks))


@st.composite
def _results(draw: st.DrawFn, uses: list[ToolUse]) -> list[Message]:
    answers: Iterator[ToolAnswer] = (ToolAnswer(use.id, draw(said_texts), draw(st.booleans())) for use in uses)
    found: list[list[Any]] = [[]]
    for answer in answers:
        found[-1].append(answer)
        if draw(st.booleans()):
            found.append([])
    if not found[-1] and len(found) > 1:
        found.pop()
    found[-1] += draw(st.lists(said_texts.map(Text) | pictures, max_size=2))
    return [Message(Role.TOOL, tuple(blocks)) for blocks in found]
