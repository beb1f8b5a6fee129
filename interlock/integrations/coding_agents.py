"""The hook protocols of coding agents: an event in, an answer out, as pure text.

Each host says the same few things in words of its own. What it does with an answer differs more: which answers it
takes for a refusal was tried out, and stands in ``docs/hooks.md``. So a refusal is always a JSON answer with a reason,
and what is no answer is exit code 2 with the reason on standard error. Nothing here ever says "allow": that would skip
the host's own question to the person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from interlock.errors import NotCanonical, Refused
from interlock.model.canonical import check

Kind: TypeAlias = Literal["before", "after", "failed", "prompt", "start", "stop", "other"]

MAX_EVENT: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Event:
    """What a host says.

    Attributes:
        kind: before a call, after it, after it failed, a prompt, the start of a session, the end of a turn.
        name: the host's own word for it.
        session: the host's name of the conversation.
        agent: of the sub-agent it happened in; empty in the session itself.
        call_id: the host's id of the call; empty where it has none.
        server, tool: which tool; server is empty for the host's own.
        arguments: of the call, as the host says.
        content: the result, or the error.
        text: what the person typed, or what the assistant said last.
        transcript: path of the host's own record of the session.
        source: how a session started: ``startup``, ``resume``, ``clear``, ``compact``.
        mode: the host's permission mode.
        again: the assistant goes on because a hook wanted it to.
    """

    kind: Kind
    name: str
    session: str
    agent: str = ""
    call_id: str = ""
    server: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    content: Any = ""
    text: str = ""
    transcript: str = ""
    folder: str = ""
    source: str = ""
    mode: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is particular about one host.

    Attributes:
        events: its words for what concerns us. Every other word is refused.
        session: key of the session's name.
        ids: does it name calls, in its events and in its transcript?
        asks: permission modes in which its own question to the person can't answer itself; none where it has no
            question, or takes one for a yes.
    """

    events: Mapping[str, Kind]
    session: str = "session_id"
    ids: bool = True
    asks: frozenset[str] = frozenset()


_CLAUDE: Final[dict[str, Kind]] = {
    "PreToolUse": "before",
    "PostToolUse": "after",
    "PostToolUseFailure": "failed",
    "UserPromptSubmit": "prompt",
    "SessionStart": "start",
    "Stop": "stop",
    "SubagentStart": "other",
    "SubagentStop": "other",
    "PreCompact": "other",
    "PostCompact": "other",
    "SessionEnd": "other",
    "Notification": "other",
}

PROTOCOLS: Final[Mapping[str, Protocol]] = MappingProxyType(
    {
        "claude-code": Protocol(_CLAUDE, asks=frozenset({"default", "plan"})),
        "codex": Protocol({name: _CLAUDE[name] for name in _CLAUDE if name not in ("Notification", "PostCompact")}),
        "gemini": Protocol(
            {
                "BeforeTool": "before",
                "AfterTool": "after",
                "BeforeAgent": "prompt",
                "SessionStart": "start",
                "AfterAgent": "stop",
                "SessionEnd": "other",
                "PreCompress": "other",
                "Notification": "other",
            },
            ids=False,
        ),
        "cursor": Protocol(
            {
                "preToolUse": "before",
                "postToolUse": "after",
                "postToolUseFailure": "failed",
                "beforeSubmitPrompt": "prompt",
                "sessionStart": "start",
                "stop": "other",
                "sessionEnd": "other",
                "subagentStart": "other",
                "subagentStop": "other",
                "preCompact": "other",
            },
            session="conversation_id",
            ids=False,
        ),
    }
)


def read(host: str, body: bytes) -> Event:
    """Read one event.

    Raises:
        Refused: a field that decides is missing, or is not what it should be. Whoever asked is told no.
    """
    protocol = PROTOCOLS[host]
    if len(body) > MAX_EVENT:
        raise Refused(f"the event is larger than {MAX_EVENT >> 20} MiB")
    try:
        said = json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise Refused("standard input held no JSON object") from None
    if not isinstance(said, dict):
        raise Refused("standard input held no JSON object")
    name = _text(said, "hook_event_name", required=True)
    kind = protocol.events.get(name)
    if kind is None:
        raise Refused(f"{host} has no event {name[:60]!r} that Interlock knows; install a newer version, or run doctor")
    session = _text(said, protocol.session, required=True)
    if len(session) > 400 or not session.isprintable():
        raise Refused(f"{protocol.session} is not the name of a session")
    tool: dict[str, Any] = {}
    if kind in ("before", "after", "failed"):
        tool = _tool(host, said, kind)
    text = ""
    if kind == "prompt":
        text = _text(said, "prompt", required=True, empty=True)
    elif kind == "stop":
        text = _text(said, "prompt_response" if host == "gemini" else "last_assistant_message")
    return Event(
        kind,
        name,
        session,
        agent=_text(said, "agent_id"),
        text=text,
        transcript=_text(said, "transcript_path"),
        folder=_text(said, "cwd"),
        source=_text(said, "source"),
        mode=_text(said, "permission_mode"),
        again=said.get("stop_hook_active") is True,
        **tool,
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _text(said: Mapping[str, Any], key: str, *, required: bool = False, empty: bool = False) -> str:
    value = said.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value and not empty):
        raise Refused(f"the event's {key} is missing or no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"the event's {key} holds what is no text") from None
    return value


_RESULTS: Final = {"claude-code": "tool_response", "codex": "tool_response", "gemini": "tool_response"}


def _tool(host: str, said: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    name = _text(said, "tool_name", required=True)
    arguments = said.get("tool_input")
    if not isinstance(arguments, dict):
        raise Refused("the event's tool_input is missing or no object")
    try:
        check(arguments)
    except NotCanonical as error:
        raise Refused(f"the event's tool_input is refused at {error}") from None
    server, tool = _named(host, name, said)
    call_id = ""
    if PROTOCOLS[host].ids:
        call_id = _text(said, "tool_use_id", required=True)
        if len(call_id) > 256 or not call_id.isprintable():
            raise Refused("the event's tool_use_id is not the id of a call")
    content: Any = ""
    if kind == "failed":
        content = said.get("error", said.get("error_message", ""))
    elif kind == "after":
        content = said.get(_RESULTS.get(host, "tool_output"), "")
    return {"server": server, "tool": tool, "arguments": arguments, "call_id": call_id, "content": content}


_JOINED: Final = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)", re.DOTALL)


def _named(host: str, name: str, said: Mapping[str, Any]) -> tuple[str, str]:
    """Server and tool. A joined name that can be parted in two ways stays whole, so that nobody can pass off a tool of
    his server as one of another; the operator may declare it under that whole name."""
    context = said.get("mcp_context")
    if host == "gemini" and isinstance(context, dict):
        server, tool = context.get("server_name"), context.get("tool_name")
        if isinstance(server, str) and isinstance(tool, str) and server and tool:
            return server, tool
    found = _JOINED.fullmatch(name)
    if found is None or "__" in f"{found['server']}_" or "__" in f"_{found['tool']}":
        return "", name
    return found["server"], found["tool"]


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reply:
    """What the hook process does: what it prints, and how it ends."""

    exit: int
    out: str = ""
    err: str = ""


def failed(why: str) -> Reply:
    """No decision: nothing on standard output, and the exit code that hosts take for a refusal."""
    return Reply(2, "", why or "no decision")


def proceed() -> Reply:
    """Nothing to object to: the host goes on as it would without a hook."""
    return Reply(0, "{}")


def refuse(host: str, event: Event, reason: str) -> Reply:
    """The call must not run; the model is told why."""
    return _answer(host, event, "deny", reason)


def ask(host: str, event: Event, reason: str) -> Reply:
    """The person decides in the host, if its question can't answer itself; else the call must not run."""
    if event.agent or event.mode not in PROTOCOLS[host].asks:
        return refuse(host, event, reason)
    return _answer(host, event, "ask", reason)


def _answer(host: str, event: Event, verdict: Literal["ask", "deny"], reason: str) -> Reply:
    why = reason.strip() or "Not done: Interlock gave no reason."  # without one, some hosts run the call
    answer: dict[str, Any]
    if host == "gemini":
        answer = {"decision": verdict, "reason": why}
    elif host == "cursor":
        answer = {"permission": verdict, "user_message": why, "agent_message": why}
    else:
        answer = {
            "hookSpecificOutput": {
                "hookEventName": event.name,
                "permissionDecision": verdict,
                "permissionDecisionReason": why,
            }
        }
    return Reply(0, json.dumps(answer))


def object_to_text(reason: str) -> Reply:
    """The assistant's text led somewhere: it is asked to say it again without that."""
    why = f"{reason} What was just written held addresses or links of this sort; say it again without them."
    return Reply(0, json.dumps({"decision": "block", "reason": why}))


def object_to_result(host: str, reason: str) -> Reply:
    """A result must not be used. Whether the host still shows it to the model is the host's."""
    if host == "cursor":
        return Reply(0, json.dumps({"additional_context": reason}))
    return Reply(0, json.dumps({"decision": "deny" if host == "gemini" else "block", "reason": reason}))
