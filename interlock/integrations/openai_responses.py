"""OpenAI's Responses API: output items into a turn, and outcomes into input items.

Most items are the model's own or those of tools that OpenAI runs; some are calls that the *caller* has to make. Each of
those is a proposal, under a name of its own when the model gives none, and each has its own shape of result. An item
whose result stands beside it has been run already: it is content, not a proposal.

Takes plain dicts and the SDK's objects alike, and imports no SDK.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from interlock.model.calls import Call
from interlock.model.messages import Image, Message
from interlock.model.results import Outcome
from interlock.model.sides import Shown, Side, data_url, sent_json, sent_name, sent_result, sides, system_text
from interlock.model.turns import (
    ATTACHED,
    IMAGE,
    UNKNOWN,
    Answer,
    Answered,
    Attached,
    Event,
    Hosted,
    Labels,
    Proposal,
    Said,
    Turn,
    answers,
    arguments_of,
    category,
    held,
    items,
    kind_of,
    mapping,
    sendable_text,
    text_of,
    unique_ids,
    urls_in,
    written,
)

MESSAGES: Final = "input"  # the keyword of a request that takes the history
_SERVER: Final = "openai"

_WEB: Final[Labels] = ("untrusted:web",)
_FILES: Final[Labels] = ("private:files", "untrusted:files")
_CODE: Final[Labels] = ("private:code", "untrusted:code")
_NOTHING: Final[Labels] = ()

# Items that the caller has to act on, and the type of the item that answers each.
_CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
_OUTPUTS: Final = frozenset(_CALLS.values())
# Items of tools that OpenAI runs, with the name under which a manifest may declare them (server `openai`).
_RUN_THERE: Final[Mapping[str, tuple[str, Labels]]] = {
    "web_search_call": ("web_search", _WEB),
    "file_search_call": ("file_search", _FILES),
    "code_interpreter_call": ("code_interpreter", _CODE),
    "image_generation_call": ("image_generation", _NOTHING),
}
# The same as entries under `tools`; of a dated type the beginning counts. Empty: the caller runs it.
_OFFERED: Final[Mapping[str, tuple[str, Labels]]] = {
    "web_search": ("web_search", _WEB),
    "file_search": ("file_search", _FILES),
    "code_interpreter": ("code_interpreter", _CODE),
}
_CALLERS: Final = (
    "function custom namespace computer local_shell shell apply_patch tool_search image_generation"
    " programmatic_tool_calling".split()
)
# What the model itself writes, and what is computed from results that we gave.
_OWN: Final = frozenset({"message", "reasoning", "compaction", "program", "program_output"})
_CITED: Final[Mapping[str, tuple[str, Labels]]] = {
    "url_citation": ("web_search", _WEB),
    "file_citation": ("file_search", _FILES),
    "file_path": ("code_interpreter", _CODE),
    "container_file_citation": ("code_interpreter", _CODE),
}
_BLANK: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


def read(response: Any, *, taken: Collection[str] = ()) -> Turn:
    """The turn in a response of the API.

    Args:
        response: the whole response, never a part of a stream; see :class:`Assembly`.
        taken: ids that calls of earlier turns carry.
    """
    whole = mapping(response)
    stop = text_of(whole.get("status"))
    return _turn(items(whole.get("output")), stop, taken, complete=stop == "completed" and not whole.get("error"))


def _turn(output: Sequence[Any], stop: str, taken: Collection[str], *, complete: bool, recorded: bool = False) -> Turn:
    found = [mapping(one) for one in output]
    pairs = _pairs(found)
    done = set(pairs.values())
    uses = [place for place, one in enumerate(found) if place not in done and _ours(one)]
    complete = complete and (recorded or all(_whole(found[place]) for place in uses))
    taken = {*taken, *(_wanted(found[place]) for place in done)} if done else taken
    ids = dict(zip(uses, unique_ids([_wanted(found[place]) for place in uses], taken), strict=True))
    sent = [_sent(one, ids.get(place)) for place, one in enumerate(found) if _returns(one, place in pairs)]
    return Turn(
        text="\n".join(text for one in found for text in _texts(one)),
        proposals=tuple(_proposal(found[place], ids[place]) for place in uses) if complete else (),
        hosted=tuple(_hosted(found, set(uses), pairs)),
        history=tuple(sent) if complete else (),
        complete=complete,
        stop=stop,
    )


def _pairs(found: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Places of results among the model's own items, each with the place of the call that it answers."""
    calls: dict[tuple[str, str], int] = {}
    pairs = {}
    for place, one in enumerate(found):
        kind, wanted = kind_of(one), _wanted(one)
        if kind in _CALLS and isinstance(wanted, str) and wanted:
            calls.setdefault((_CALLS[kind], wanted), place)
        elif kind in _OUTPUTS and isinstance(wanted, str) and (kind, wanted) in calls:
            pairs[place] = calls.pop((kind, wanted))
    return pairs


def _ours(item: Mapping[str, Any]) -> bool:
    """Does the caller have to act on this item, unless its result is there already?"""
    kind = kind_of(item)
    if kind == "shell_call":
        return kind_of(mapping(item.get("environment"))) != "container_reference"  # a container of OpenAI's
    return kind in _CALLS and (kind != "tool_search_call" or item.get("execution") == "client")


def _returns(item: Mapping[str, Any], paired: bool) -> bool:
    """Does the item go back? The API refuses items without a type, and results of no call."""
    kind = _kind(item)
    return paired or kind == "tool_search_output" or (kind != "" and kind not in _OUTPUTS)


def _kind(item: Mapping[str, Any]) -> str:
    """The type of an item. The API lets messages go without one."""
    return kind_of(item, "message" if "role" in item else "")


def _whole(item: Mapping[str, Any]) -> bool:
    """Has the model finished writing this call? A shell that waits for us is `in_progress` by its nature."""
    status = item.get("status")
    if kind_of(item) in ("function_call", "custom_tool_call"):
        return status in (None, "completed")
    return status in (None, "completed", "in_progress")


def _wanted(item: Mapping[str, Any]) -> Any:
    """The id by which a call and its result find each other."""
    return item.get("id" if kind_of(item) in ("mcp_approval_request", "local_shell_call_output") else "call_id")


def _key(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) and value else None


def _proposal(item: Mapping[str, Any], call_id: str) -> Proposal:
    kind = kind_of(item)
    name, server, arguments = text_of(item.get("name")), "", item.get("arguments")
    match kind:
        case "function_call":
            arguments = arguments_of(arguments)
        case "custom_tool_call":
            arguments = {"input": item.get("input")}
        case "mcp_approval_request":
            server, arguments = text_of(item.get("server_label")), arguments_of(arguments)
        case "computer_call":
            name, arguments = "computer", _some(item, "action", "actions")
        case "local_shell_call":
            name, arguments = "local_shell", item.get("action")
        case "shell_call":
            name, arguments = "shell", item.get("action")
        case "apply_patch_call":
            name, arguments = "apply_patch", item.get("operation")
        case _:
            name = "tool_search"
    if item.get("namespace"):
        # `/` stands in no name that the API takes, so no other tool has this one; and `run` is given this very name.
        name = f"{item['namespace']}/{name}"
    echo = _some(item, "caller")
    if kind == "shell_call":
        echo |= _some(mapping(item.get("action")), "max_output_length")
    call = Call(name, arguments, call_id, server)  # type: ignore[arg-type]  # nothing about it has been checked
    return Proposal(call, kind, _wanted(item), echo, there=kind == "mcp_approval_request")


def _some(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _sent(item: dict[str, Any], call_id: str | None) -> dict[str, Any]:
    """An item as it goes back, without what only the SDK added."""
    sent = {name: value for name, value in item.items() if name != "parsed_arguments"}
    if kind_of(item) == "message":
        parts = [mapping(one) for one in items(item.get("content"))]
        sent["content"] = [{name: value for name, value in part.items() if name != "parsed"} for part in parts]
    if call_id is None:
        return sent
    sent["id" if kind_of(item) == "mcp_approval_request" else "call_id"] = call_id
    if kind_of(item) == "custom_tool_call":
        sent |= {"name": text_of(item.get("name")) or "unknown", "input": text_of(item.get("input"))}
    if kind_of(item) in ("function_call", "mcp_approval_request"):
        sent |= {"name": text_of(item.get("name")) or "unknown", "arguments": sendable_text(item.get("arguments"))}
    return sent


def _texts(item: Mapping[str, Any]) -> Iterator[str]:
    if _kind(item) != "message":
        return
    content = item.get("content")
    if isinstance(content, str):
        yield text_of(content)
    for part in map(mapping, items(content)):
        if kind_of(part) == "output_text" and part.get("text"):
            yield text_of(part.get("text"))


# --- what the provider brought ----------------------------------------------------------------------------------------


def _hosted(found: Sequence[Mapping[str, Any]], ours: Collection[int], pairs: Mapping[int, int]) -> Iterator[Hosted]:
    for place, item in enumerate(found):
        kind = _kind(item)
        if kind in _RUN_THERE:
            name, labels = _RUN_THERE[kind]
            asks = _some(item, "action", "queries", "code")
            yield Hosted(_SERVER, name, labels, written(_without_id(item)), asks, urls_in(item))
        elif kind == "message":
            yield from _cited(item)
        elif kind == "mcp_call":
            content = written(_some(item, "output", "error"))
            server, name = text_of(item.get("server_label")), text_of(item.get("name"))
            yield Hosted(server, name, UNKNOWN, content, _lenient(item.get("arguments")))
        elif kind == "mcp_list_tools":
            server = text_of(item.get("server_label"))
            yield Hosted(server, "", (f"untrusted:server:{category(server)}",), written(item.get("tools")))
        elif kind in ("tool_search_call", "tool_search_output") and place not in ours:
            continue  # finds tools that the request itself defines
        elif kind in _OUTPUTS:
            yield _run_there(item, found[pairs[place]] if place in pairs else None)
        elif kind in _CALLS:
            if kind == "shell_call" and place not in ours:
                yield Hosted(_SERVER, "shell", _CODE, arguments=item.get("action"))
        elif kind not in _OWN:
            yield Hosted(_SERVER, "", UNKNOWN, written(item))


def _without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("id", "status")}


def _run_there(item: Mapping[str, Any], asked: Mapping[str, Any] | None) -> Hosted:
    """A call whose result stands in the model's own output: somebody else has made it."""
    text = written(item.get("output"))
    if asked is None:
        return Hosted(_SERVER, "", UNKNOWN, text)
    call = _proposal(asked, "call").call
    return Hosted(_SERVER, call.name, _CODE if kind_of(asked) == "shell_call" else UNKNOWN, text, call.arguments)


def _cited(item: Mapping[str, Any]) -> Iterator[Hosted]:
    """Citations show where text comes from, whether or not the search itself is shown."""
    for part in map(mapping, items(item.get("content"))):
        if kind_of(part) not in ("output_text", "refusal", "input_text", "text", "reasoning_text", "summary_text"):
            yield Hosted(_SERVER, "", UNKNOWN, written(part))
        for note in map(mapping, items(part.get("annotations"))):
            name, labels = _CITED.get(kind_of(note), ("", UNKNOWN))
            yield Hosted(_SERVER, name, labels, written(note), urls=urls_in(note))


def _lenient(text: Any) -> Any:
    """What a hosted tool was asked: it has run already, so this is only to be shown."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def offered(request: Mapping[str, Any]) -> tuple[Hosted, ...]:
    """What a request lets in unseen by the gate: tools that run there at any time, and history that is held there."""
    found = held(_SERVER, request, "previous_response_id", "conversation")
    for entry in map(mapping, items(request.get("tools"))):
        kind = kind_of(entry)
        if kind == "mcp":
            found += _server_offered(entry)
        elif kind == "shell" and kind_of(mapping(entry.get("environment"))) not in ("", "local"):
            found.append(Hosted(_SERVER, "shell", _CODE))
        elif not kind.startswith(tuple(_CALLERS)):
            name, labels = next((both for start, both in _OFFERED.items() if kind.startswith(start)), ("", UNKNOWN))
            found.append(Hosted(_SERVER, name, labels))
    return tuple(found)


def _server_offered(entry: Mapping[str, Any]) -> Iterator[Hosted]:
    server = text_of(entry.get("server_label"))
    yield Hosted(server, "", (f"untrusted:server:{category(server)}",))  # descriptions of tools are text of the server
    wanted = entry.get("allowed_tools")
    names = items(wanted) or items(mapping(wanted).get("tool_names"))
    for name in [one for one in names if isinstance(one, str)] or [""]:
        yield Hosted(server, name, UNKNOWN)


# --- back to the provider ---------------------------------------------------------------------------------------------


def results(turn: Turn, outcomes: Iterable[Outcome], *, also: str = "") -> list[dict[str, Any]]:
    """One input item per call, in order, found by its `call_id`; ``also`` is a user message after them.

    Raises:
        Refused: the outcomes are not those of this turn.
    """
    found: list[dict[str, Any]] = []
    for one in answers(turn, outcomes):
        found += _result(one)
    return [*found, user(also)] if also else found


def _result(one: Answer) -> Iterator[dict[str, Any]]:
    call_id, kind, echo = one.proposal.call.id, one.proposal.shape, one.proposal.echo
    value = one.outcome.result if one.outcome is not None and not one.is_error else None
    head = {"type": _CALLS[kind], "call_id": call_id}
    match kind:
        case "mcp_approval_request":
            yield {"type": _CALLS[kind], "approval_request_id": call_id, "approve": not one.is_error} | (
                {"reason": one.text} if one.is_error else {}
            )
        case "local_shell_call":
            yield {"type": _CALLS[kind], "id": call_id, "output": one.text}
        case "shell_call":
            whole = isinstance(value, list) and bool(value)
            code = {"type": "exit", "exit_code": 1 if one.is_error else 0}
            plain = {"stdout": "" if one.is_error else one.text, "stderr": one.text if one.is_error else ""}
            yield {**head, "output": value if whole else [{**plain, "outcome": code}], **echo}
        case "apply_patch_call":
            yield {**head, "status": "failed" if one.is_error else "completed", "output": one.text, **echo}
        case "tool_search_call":
            yield {**head, "execution": "client", "status": "completed", "tools": items(value), **echo}
        case "computer_call":
            # The API takes nothing but a picture here, so a refusal is a blank one, and its reason stands beside it.
            shown = isinstance(value, Mapping) and kind_of(value) == "computer_screenshot"
            picture = value if shown else {"type": "computer_screenshot", "image_url": _BLANK}
            yield {**head, "output": picture}
            if not shown:
                yield {"role": "developer", "content": one.text}
        case _:
            yield {**head, "output": one.text, **echo}


def user(text: str) -> dict[str, Any]:
    """What the person says, as an item."""
    return {"role": "user", "content": text}


# --- a whole transcript of ours ---------------------------------------------------------------------------------------

_LONGEST_ID: Final = 64


def encoded(messages: Iterable[Message], *, system: str = "") -> dict[str, Any]:
    """Our messages as the keywords ``input`` and, unless there is nothing to say in it, ``instructions``.

    System messages join ``instructions``. What the person said with results is a user message after them. The API
    takes the request if every call in ``messages`` has exactly one result (T17); nothing about that is repaired.
    Blank texts are left out.
    """
    given = list(messages)
    found = {"input": [item for side in sides(given, longest_id=_LONGEST_ID) for item in _side(side)]}
    told = system_text(system, given)
    return {"instructions": told, **found} if told else found


def _side(side: Side) -> Iterator[dict[str, Any]]:
    for one in side.answers:
        yield {"type": "function_call_output", "call_id": one.id, "output": sent_result(one)}
    if side.has_images:
        yield {"role": "user", "content": [_part(one) for one in side.shown]}
    elif side.shown:
        yield {"role": "assistant" if side.by_model else "user", "content": side.text}
    for use in side.uses:
        call = {"call_id": use.id, "name": sent_name(use.name)}
        yield {"type": "function_call", **call, "arguments": sent_json(use.arguments)}


def _part(shown: Shown) -> dict[str, Any]:
    if isinstance(shown, Image):
        return {"type": "input_image", "image_url": data_url(shown), "detail": "auto"}
    return {"type": "input_text", "text": shown.text}


# --- recorded conversations -------------------------------------------------------------------------------------------


def recorded(messages: Iterable[Any]) -> Iterator[Event]:
    """What happened in a recorded conversation, in order. Takes items, and whole responses in the place of items.

    Items do not say which of them came in one response: what stands together without a result in between is one turn.
    """
    taken: set[str] = set()
    waiting: list[dict[str, Any]] = []
    for item in map(mapping, messages):
        if "output" in item and kind_of(item) not in _OUTPUTS and kind_of(item) != "mcp_call":
            yield from _flushed(waiting, taken)
            waiting += [mapping(one) for one in items(item.get("output"))]
            yield from _flushed(waiting, taken)
        elif (event := _from_caller(item, waiting)) is None:
            waiting.append(item)
        else:
            yield from _flushed(waiting, taken)
            yield from event
    yield from _flushed(waiting, taken)


def _flushed(waiting: list[dict[str, Any]], taken: set[str]) -> Iterator[Turn]:
    if waiting:
        turn = _turn(waiting, "", taken, complete=True, recorded=True)
        taken.update(call.id for call in turn.calls)
        waiting.clear()
        yield turn


def _from_caller(item: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]]) -> list[Event] | None:
    """Events of an item that the caller wrote; None for one of the model's."""
    kind, role = _kind(item), item.get("role")
    if kind in _OUTPUTS:
        call_id = _key(item, "call_id")
        if any(kind_of(one) in _CALLS and _key(one, "call_id") == call_id and not _ours(one) for one in waiting):
            return None  # of a call that was run there
        if kind == "mcp_approval_response":
            approved = item.get("approve") is True
            return [Answered(item.get("approval_request_id"), text_of(item.get("reason")), not approved, approved)]
        return [Answered(_wanted(item), _joined(item.get("output")), item.get("status") == "failed")]
    if kind == "item_reference":
        return [Attached(UNKNOWN, "an item that is not in the record", written(item))]
    if kind != "message" or role == "assistant":
        return None
    if role in ("system", "developer"):
        return []
    if role != "user":
        return [Attached(UNKNOWN, "a message in an unknown role", written(item.get("content")))]
    return list(_from_user(item.get("content")))


def _from_user(content: Any) -> Iterator[Event]:
    if isinstance(content, str):
        yield Said(content)
    for part in map(mapping, items(content)):
        kind = kind_of(part)
        if kind in ("input_text", "text"):
            yield Said(text_of(part.get("text")))
        elif kind == "input_image":
            yield Attached(IMAGE, "image", written(_some(part, "image_url", "file_id")))
        elif kind in ("input_file", "input_audio"):
            yield Attached(ATTACHED, text_of(part.get("filename")) or "document", written(part))
        else:
            yield Attached(UNKNOWN, "an attachment of an unknown type", written(part))


def _joined(content: Any) -> str:
    parts = [mapping(one) for one in items(content)]
    if parts and all(kind_of(part) in ("input_text", "output_text") for part in parts):
        return "\n".join(text_of(part.get("text")) for part in parts)
    return written(content)


def resembles(message: Any) -> bool:
    """Does a recorded item have something that only this shape has?"""
    fields = mapping(message)
    kind = kind_of(fields)
    if isinstance(fields.get("output"), list) and "type" not in fields:
        return True  # a response
    if kind in _CALLS or kind in _OUTPUTS or kind in _RUN_THERE:
        return True
    parts = ("input_text", "output_text", "input_image", "input_file")
    return kind in ("reasoning", "mcp_call", "mcp_list_tools") or any(
        kind_of(mapping(one)) in parts for one in items(fields.get("content"))
    )


# --- streams ----------------------------------------------------------------------------------------------------------

_ENDS: Final = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


class Assembly:
    """Puts the events of a stream together. Nothing is decided before :meth:`response` is complete.

    The API sends each item whole when it is done, and all of them with the last event, so deltas are not needed: an
    item that never was done is not complete, and neither is a stream without its last event, or one whose last event
    contradicts what was done before.
    """

    def __init__(self) -> None:
        self._items: dict[int, dict[str, Any]] = {}
        self._done: set[int] = set()
        self._response: dict[str, Any] = {}
        self._status = "incomplete"
        self._ended = False

    def add(self, event: Any) -> None:
        """Take one event, in the order of the stream."""
        fields = mapping(event)
        kind, index = kind_of(fields), fields.get("output_index")
        if kind in _ENDS:
            self._response, self._ended = mapping(fields.get("response")), True
            self._status = text_of(self._response.get("status")) or _ENDS[kind]
            self._status = self._status if kind == "response.completed" else _ENDS[kind]
        elif kind in ("response.output_item.added", "response.output_item.done") and isinstance(index, int):
            self._items[index] = mapping(fields.get("item"))
            if kind.endswith("done"):
                self._done.add(index)

    def response(self) -> dict[str, Any]:
        """The response so far; complete only when the stream has said so itself."""
        seen = [self._items[index] for index in sorted(self._items)]
        told = [mapping(one) for one in items(self._response.get("output"))]
        output, status = told or seen, self._status
        if not told and self._items.keys() - self._done:
            status = "incomplete"
        done = {_said(self._items[index]) for index in self._done} - {None}
        if told and not done <= {_said(one) for one in told}:
            output, status = [*told, *seen], "incomplete"
        return {**self._response, "output": output, "status": status if self._ended else "incomplete"}


def _said(item: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """What makes a call this call; None for items that are none."""
    kind = kind_of(item)
    if kind not in _CALLS:
        return None
    rest = {name: item[name] for name in ("name", "arguments", "input", "action", "operation") if name in item}
    return str(kind), str(_wanted(item)), written(rest)
