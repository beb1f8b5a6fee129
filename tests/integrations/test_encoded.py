"""Proves for all three codecs: a transcript of ours is a request that the API takes, with one result per call (T17).

The rules of the APIs stand in `provider_checks`, which knows nothing of how a transcript is encoded; the stand-in of
the examples is asked as well. That nothing is lost is read back with the codecs' own readers of recorded conversations.

Mutations that this file is shown to catch: texts before results; blank texts sent; ids, names or arguments as they
came; sides that are not merged; a text or an image left out; a result left out or sent twice.
"""

from __future__ import annotations

import base64
import copy
import functools
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.model.messages import Block, Image, Message, Role, Text, ToolAnswer, ToolUse
from interlock.model.sides import sent_id, sent_json, sent_name, sent_object, sides
from interlock.model.turns import NO_TEXT, Answered, Said, Turn, UnparsedText
from tests.integrations.provider_checks import (
    LOOKS,
    PICTURES,
    any_arguments,
    pictures,
    problem,
    problems,
    said_texts,
    tool_names,
    transcripts,
    valid_for_all,
)
from tests.integrations.shapes import ANTHROPIC, CHAT, RESPONSES, SHAPES, Shape

# By name, so that a failing example is not printed with all the strategies of its shape.
NAMED = {str(shape): shape for shape in SHAPES}
every = pytest.mark.parametrize("name", NAMED)

blocks: st.SearchStrategy[Block] = st.one_of(
    said_texts.map(Text),
    pictures,
    st.builds(ToolUse, st.sampled_from("ab"), tool_names, any_arguments),
    st.builds(ToolAnswer, st.sampled_from("ab"), said_texts, st.booleans()),
)
anything = st.lists(st.builds(Message, st.sampled_from(Role), st.lists(blocks, max_size=4).map(tuple)), max_size=6)


def history(shape: Shape, messages: list[Message], system: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shape.codec.encoded(messages, system=system)[shape.codec.MESSAGES]
    return found


def events(name: str, messages: list[Message]) -> list[Any]:
    return list(NAMED[name].codec.recorded(history(NAMED[name], messages)))


def meant(arguments: Any) -> Any:
    """Arguments as any JSON parser reads them: ours is stricter, and has no use for numbers beyond 2**53."""
    return json.loads(arguments.text if isinstance(arguments, UnparsedText) else json.dumps(arguments))


def lines(texts: list[str]) -> list[str]:
    """Texts as they can be read back: some APIs have one text where we have several. Of surrogates only `?` is left."""
    return "\n".join(text.replace("\ud800", "?") for text in texts if text.strip()).split("\n")


@given(messages=transcripts(), system=said_texts)
def test_t17_a_transcript_is_a_request_that_every_api_takes(messages: list[Message], system: str) -> None:
    assert problems(messages, system=system) == []
    assert valid_for_all(messages, system=system)
    for shape in SHAPES:
        assert shape.problem(history(shape, messages, system)) == ""


@every
@given(messages=transcripts())
def test_t17_every_call_has_exactly_one_result(name: str, messages: list[Message]) -> None:
    """Read back: as many calls as we had, in order, and as many results, each under the id of its own call."""
    uses = [use for message in messages for use in message.uses]
    given_answers = [one for message in messages for one in message.blocks if isinstance(one, ToolAnswer)]
    found = events(name, messages)
    calls = [call for event in found if isinstance(event, Turn) for call in event.calls]
    answered = [event for event in found if isinstance(event, Answered)]
    assert [call.name for call in calls] == [sent_name(use.name) for use in uses]
    assert [meant(call.arguments) for call in calls] == [meant(sent_object(use.arguments)) for use in uses]
    assert len({call.id for call in calls}) == len(calls)
    ids = iter(call.id for call in calls)
    wanted: dict[str, str] = {}  # an id may stand for another call in every round
    answering: list[str] = []
    for message in messages:
        wanted |= {use.id: next(ids) for use in message.uses}
        answering += [wanted[one.id] for one in message.blocks if isinstance(one, ToolAnswer)]
    assert [one.id for one in answered] == answering
    assert lines([one.text for one in answered]) == lines(
        [one.text if one.text.strip() or not one.is_error else NO_TEXT for one in given_answers]
    )


@every
@given(messages=transcripts())
def test_texts_and_pictures_survive_in_order(name: str, messages: list[Message]) -> None:
    mine: list[str] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        shown = [
            one.text if isinstance(one, Text) else _note(one) for one in message.blocks if isinstance(one, Text | Image)
        ]
        blank = not any(text.strip() for text in shown) and not message.images
        mine += [NO_TEXT] if blank and message.role is Role.USER else shown
    found = [event.text for event in events(name, messages) if isinstance(event, Said | Turn)]
    assert lines(found) == lines(mine)
    sent = [one for message in messages for one in message.images if _note(one) == ""]
    assert re.findall(r'(?<=base64,)[^"]*|(?<="data": ")[^"]*', json.dumps(history(NAMED[name], messages))) == [
        base64.b64encode(one.payload).decode() for one in sent
    ]


def _note(image: Image) -> str:
    return "" if image.media_type in PICTURES and image.payload else f"({image.media_type}: not shown)"


@given(messages=transcripts(), system=said_texts)
def test_system_messages_join_the_system_prompt(messages: list[Message], system: str) -> None:
    texts = [system, *(one.text for one in messages if one.role is Role.SYSTEM)]
    wanted = "\n\n".join(text.replace("\ud800", "?") for text in texts if text.strip())
    assert ANTHROPIC.codec.encoded(messages, system=system).get("system", "") == wanted
    assert RESPONSES.codec.encoded(messages, system=system).get("instructions", "") == wanted
    first = history(CHAT, messages, system)[0]
    assert (first["content"] if first["role"] == "system" else "") == wanted


@every
@given(messages=anything)
def test_nothing_that_is_a_message_raises_or_gives_what_is_no_json(name: str, messages: list[Message]) -> None:
    json.dumps(NAMED[name].codec.encoded(iter(messages)), allow_nan=False, ensure_ascii=False).encode()


@given(messages=anything)
def test_sides_take_turns_and_none_is_empty(messages: list[Message]) -> None:
    found = list(sides(messages, longest_id=40))
    assert all(one.by_model is not other.by_model for one, other in pairwise(found))
    for one in found:
        assert one.answers or one.shown or one.uses
        assert not (one.answers if one.by_model else one.uses)
        assert not (one.by_model and one.has_images)


@given(arguments=any_arguments)
def test_arguments_are_an_object_in_both_forms(arguments: Any) -> None:
    """What a model wrote as a text that is an object stays as it wrote it; both forms mean the same."""
    assert json.loads(sent_json(arguments)) == json.loads(json.dumps(sent_object(arguments)))
    assert isinstance(sent_object(arguments), dict)


@pytest.mark.parametrize("text", ['{"a": 1}', ' {"b":\n[1.50]} '])
def test_a_text_that_is_an_object_is_not_written_anew(text: str) -> None:
    assert sent_json(text) == text
    assert sent_object(text) == json.loads(text)


IDS = [
    "",
    "_",
    "a b",
    "a.b",
    "a_b",
    "é",
    "\ud800",
    "a\n",
    "x" * 41,
    "x" * 65,
    "x" * 65 + "y",
    "toolu_01A09q90qw90lq917835lq9",
]


@pytest.mark.parametrize("longest", [40, 64])
def test_ids_stay_apart_and_good_ones_stay(longest: int) -> None:
    sent = [sent_id(one, longest) for one in IDS]
    again = [sent_id(one, longest, times) for one in IDS for times in (1, 2, 11)]
    assert len({*sent, *again}) == 4 * len(IDS)
    good = re.compile(rf"[A-Za-z0-9_-]{{1,{longest}}}")
    assert all(good.fullmatch(one) for one in (*sent, *again))
    assert [one for one, mine in zip(sent, IDS, strict=True) if good.fullmatch(mine)] == list(
        filter(good.fullmatch, IDS)
    )


# --- the exact shapes -------------------------------------------------------------------------------------------------

DOT = Image("image/png", b"dot")
BARGED_IN = [
    Message.system("Be brief."),
    Message.user("look", DOT),
    Message.assistant("Looking.", ToolUse("a", "fetch", {"url": "u"}), ToolUse("b", "now", "{}")),
    Message(Role.TOOL, (ToolAnswer("b", "noon"),)),
    Message(Role.TOOL, (ToolAnswer("a", "", is_error=True), Text("wait"), Text("stop"))),
]


def test_anthropic_shape() -> None:
    assert ANTHROPIC.codec.encoded(BARGED_IN, system="You help.") == {
        "system": "You help.\n\nBe brief.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "ZG90"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "fetch", "input": {"url": "u"}},
                    {"type": "tool_use", "id": "b", "name": "now", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "b", "content": "noon", "is_error": False},
                    {"type": "tool_result", "tool_use_id": "a", "content": NO_TEXT, "is_error": True},
                    {"type": "text", "text": "wait"},
                    {"type": "text", "text": "stop"},
                ],
            },
        ],
    }


def test_chat_shape() -> None:
    assert CHAT.codec.encoded(BARGED_IN, system="You help.") == {
        "messages": [
            {"role": "system", "content": "You help.\n\nBe brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,ZG90"}},
                ],
            },
            {
                "role": "assistant",
                "content": "Looking.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "fetch", "arguments": '{"url": "u"}'}},
                    {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "b", "content": "noon"},
            {"role": "tool", "tool_call_id": "a", "content": NO_TEXT},
            {"role": "user", "content": "wait\nstop"},
        ]
    }


def test_responses_shape() -> None:
    assert RESPONSES.codec.encoded(BARGED_IN, system="You help.") == {
        "instructions": "You help.\n\nBe brief.",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,ZG90", "detail": "auto"},
                ],
            },
            {"role": "assistant", "content": "Looking."},
            {"type": "function_call", "call_id": "a", "name": "fetch", "arguments": '{"url": "u"}'},
            {"type": "function_call", "call_id": "b", "name": "now", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "b", "output": "noon"},
            {"type": "function_call_output", "call_id": "a", "output": NO_TEXT},
            {"role": "user", "content": "wait\nstop"},
        ],
    }


@every
def test_without_a_system_prompt_there_is_no_keyword_for_it(name: str) -> None:
    codec = NAMED[name].codec
    assert list(codec.encoded([Message.user("hi")], system=" ")) == [codec.MESSAGES]


@every
def test_a_person_who_said_nothing_still_had_a_turn(name: str) -> None:
    """Left out, the model's side would be the first, or two turns of the model would become one."""
    messages = [Message.user(""), Message.assistant("yes?"), Message.user(" "), Message.assistant("still there?")]
    assert problems(messages) == []
    assert [type(event) for event in events(name, messages)] == [Said, Turn, Said, Turn]


# --- the checks themselves --------------------------------------------------------------------------------------------

OPEN = [Message.user("x"), Message.assistant("", ToolUse("a", "now", {}))]
NO_GOOD: list[tuple[str, list[Message]]] = [
    ("a call without a result", OPEN),
    ("a call that is passed over", [*OPEN, Message.user("y")]),
    ("a second result", [*OPEN, *[Message(Role.TOOL, (ToolAnswer("a", "r"),))] * 2]),
    ("a result of no call", [Message(Role.TOOL, (ToolAnswer("a", "r"),))]),
    ("an id that stands twice", [*OPEN, Message(Role.TOOL, (ToolAnswer("a", "r"),)), *OPEN[1:]]),
    ("nothing", []),
]


@pytest.mark.parametrize("messages", [case[1] for case in NO_GOOD], ids=[case[0] for case in NO_GOOD])
def test_t17_the_checks_object_and_nothing_is_repaired(messages: list[Message]) -> None:
    assert len(problems(messages)) == len(LOOKS)


def keys(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict):
                yield (*path, key)
            if key != "input" or not path:  # a call's arguments are anybody's
                yield from keys(item, (*path, key))


@every
def test_the_checks_read_everything(name: str) -> None:
    """A key that is renamed, and a text that is another type, are found wherever they stand."""
    request = NAMED[name].codec.encoded(BARGED_IN, system="s")
    assert problem(name, request) == ""
    paths = list(keys(request))
    assert len(paths) > 20
    for path in paths:
        broken = copy.deepcopy(request)
        *way, last = path
        inner = functools.reduce(lambda value, key: value[key], way, broken)
        inner[f"{last}_"] = inner.pop(last)
        assert problem(name, broken), path
        inner[last] = 7
        del inner[f"{last}_"]
        assert problem(name, broken), path
